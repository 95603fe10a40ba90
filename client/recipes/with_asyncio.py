"""asyncio: no task waits because another one asks the daemon.

It needs the extra ``async``.
"""

import asyncio

from uuidd_client.aio import AsyncClient

ids = AsyncClient()


async def handle(item):
    """Return an id, as each request needs one."""
    return await ids.uuid7(), item


async def main():
    """Handle requests, make a list, and read from an endless iterator."""
    handled = await asyncio.gather(*map(handle, range(100)))
    made = [id for id, _ in handled]
    made += await ids.make("v7", 10_000)
    async for id in ids.iter("v7"):
        made.append(id)
        if len(made) == 11_000:
            break
    print(len(made), len(set(made)))


if __name__ == "__main__":
    asyncio.run(main())
