"""trio: one id is made at once, many are made in a thread."""

import trio

from uuidd_client import Client

client = Client()


async def handle(made):
    """Add an id, as each request needs one."""
    made.append(client.uuid7())


async def load(count):
    """Return many ids, while other tasks go on."""
    return await trio.to_thread.run_sync(client.make, "v7", count)


async def main():
    """Make the first id before there are requests: it connects to the daemon."""
    made = [client.uuid7()]
    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(handle, made)
    made += await load(10_000)
    print(len(made), len(set(made)))


if __name__ == "__main__":
    trio.run(main)
