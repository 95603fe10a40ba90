"""trio: no task waits because another one asks the daemon.

It needs ``trio`` and the extra ``async``.
"""

import trio

from uuidd_client.aio import AsyncClient

ids = AsyncClient()


async def handle(made):
    """Add an id, as each request needs one."""
    made.append(await ids.uuid7())


async def main():
    """Handle requests, make a list, and read from an endless iterator."""
    made = []
    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(handle, made)
    made += await ids.make("v7", 10_000)
    async for id in ids.iter("v7"):
        made.append(id)
        if len(made) == 11_000:
            break
    print(len(made), len(set(made)))


if __name__ == "__main__":
    trio.run(main)
