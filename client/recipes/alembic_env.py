"""Alembic: ``env.py``, in which ``render_item`` imports the types in migrations."""

from alembic import context
from sqlalchemy import create_engine
from with_sqlalchemy import Base

from uuidd_client.sqlalchemy import render_item

engine = create_engine(context.config.get_main_option("sqlalchemy.url"))
with engine.connect() as connection:
    context.configure(connection, target_metadata=Base.metadata, render_item=render_item)
    with context.begin_transaction():
        context.run_migrations()
