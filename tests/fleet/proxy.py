"""A TCP proxy between a daemon and its engine that holds data back, delivers it late, or cuts."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import trio

_GONE = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


class Proxy:
    """Listens at ports of its own, one for each port in *targets*, all on loopback.

    *connections* counts those of the daemon.
    """

    def __init__(self, targets: list[int]) -> None:
        self._targets = targets
        self.ports: list[int] = []
        self.connections = 0
        self._gate = trio.Event()
        self._gate.set()
        self._near: set[trio.SocketStream] = set()

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            for target in self._targets:
                serve = partial(trio.serve_tcp, partial(self._serve, target), 0, host="127.0.0.1")
                (listener,) = await nursery.start(serve)
                self.ports.append(listener.socket.getsockname()[1])
            task_status.started()

    def hold(self) -> None:
        """Keep all data from now on, in both directions."""
        self._gate = trio.Event()

    def deliver(self) -> None:
        """Pass on what was kept, and all that comes."""
        self._gate.set()

    async def cut(self) -> None:
        """Close the daemon's connections. What it has sent is still delivered."""
        for near in list(self._near):
            await trio.aclose_forcefully(near)

    async def _serve(self, target: int, near: trio.SocketStream) -> None:
        self.connections += 1
        self._near.add(near)
        with suppress(*_GONE):
            async with (
                await trio.open_tcp_stream("127.0.0.1", target) as far,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(self._pass_on, far, near)
                await self._pass_on(near, far)
                nursery.cancel_scope.cancel()
        self._near.discard(near)
        await trio.aclose_forcefully(near)

    async def _pass_on(self, source: trio.SocketStream, sink: trio.SocketStream) -> None:
        with suppress(*_GONE):
            while data := await source.receive_some(65536):
                await self._gate.wait()
                await sink.send_all(data)
        with suppress(*_GONE):
            await sink.send_eof()
