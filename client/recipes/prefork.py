"""Processes that are forked after the first id, as Celery's are: each makes ids of its own.

It needs ``billiard``, which Celery installs.
"""

import billiard

from uuidd_client import uuid7

FIRST = uuid7()


def task(count):
    """Return new ids."""
    return [uuid7() for _ in range(count)]


if __name__ == "__main__":
    with billiard.get_context("fork").Pool(4) as pool:
        made = [FIRST, *(id for ids in pool.map(task, [500] * 8) for id in ids)]
    print(len(made), len(set(made)))
