"""psycopg: UUIDs in a column of PostgreSQL's type ``uuid``, many at once, and those of a day.

It needs ``psycopg[binary]``.
"""

import os
from datetime import UTC, datetime, timedelta

import psycopg

from uuidd_client import Client, bounds

today = datetime.now(UTC)

with Client() as client, psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    connection.execute("CREATE TABLE IF NOT EXISTS readings (id uuid PRIMARY KEY, value int)")
    with connection.cursor().copy("COPY readings FROM STDIN") as copy:
        for value, id in enumerate(client.make("v7", 1000)):
            copy.write_row((id, value))
    lowest, _ = bounds("v7", today - timedelta(hours=24))
    found = connection.execute("SELECT count(*) FROM readings WHERE id >= %s", (lowest,))
    print(found.fetchone()[0])
