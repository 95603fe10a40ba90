"""asyncio: one id is made at once, many are made in a thread."""

import asyncio

from uuidd_client import Client

client = Client()


async def handle(item):
    """Return an id, as each request needs one."""
    return client.uuid7(), item


async def load(count):
    """Return many ids, while other tasks go on."""
    return await asyncio.to_thread(client.make, "v7", count)


async def main():
    """Make the first id before there are requests: it connects to the daemon."""
    client.uuid7()
    handled = await asyncio.gather(*map(handle, range(100)))
    made = [id for id, _ in handled] + await load(10_000)
    print(len(made), len(set(made)))


if __name__ == "__main__":
    asyncio.run(main())
