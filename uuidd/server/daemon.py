"""The daemon: serves, and stops so that nothing is lost."""

from __future__ import annotations

import logging
import os
import resource
import signal
from collections.abc import Callable
from functools import partial

import trio

from uuidd.clock import Clock
from uuidd.clones import KernelLog
from uuidd.core.timeline.state import State
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.server.assembly import Assembly
from uuidd.server.listeners import Listener
from uuidd.server.page import Page
from uuidd.server.peers import outsiders_uid
from uuidd.server.saver import Saver
from uuidd.server.service import Service
from uuidd.server.settings import SPARE_DESCRIPTORS, Limits, Settings
from uuidd.server.status import supervise
from uuidd.store import FolderStore
from uuidd.systemd import Notifier

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Those that stop the daemon."""

STOP_SECONDS = 2.0
"""How long a stopping daemon goes on with the requests that it has begun to answer."""

LAST_SAVE_SECONDS = 10.0
"""How long a stopping daemon waits for its last saves; without them it loses a generation."""

IDLE_CHECKS = 10
"""How many times in its idle time-out the daemon checks whether requests came."""

log = logging.getLogger("uuidd")


async def serve(
    listener: Listener,
    store: FolderStore,
    timelines: Timelines,
    since: Reading,
    manager: Notifier,
    settings: Settings,
    page: Page | None,
    kernel_log: Callable[[], KernelLog],
) -> bool:
    """Serve until one of SIGNALS or the idle time-out. Return whether the state was saved.

    The socket, the store and a saved horizon are there. *since* is the clock when *timelines*
    began; they hear of each step of UTC after it.
    """

    def write(state: State) -> None:
        # This thread outlives the handlers. A signal that it took then would end the process.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        store.save(state)

    async def save(state: State) -> None:
        # Without a service manager, only a save looks whether the socket's file is still there.
        listener.unreachable()
        # Abandoned only at the end of a stop, if the disk hangs for too long.
        try:
            await trio.to_thread.run_sync(write, state, abandon_on_cancel=True)
        except RuntimeError as error:
            # No thread can be started: the host, or the service's cgroup, has no process left.
            raise OSError(str(error)) from error

    _keep_below_descriptors(settings.limits)
    keeper_of = None
    if (fleet := settings.fleet) is not None:
        # Only hosts of a fleet pay for it.
        from uuidd.fleet.keeper import Keeper
        from uuidd.fleet.record import this_host

        def keeper_of(timelines: Timelines, read: Callable[[], Reading], saver: Saver) -> Keeper:
            return Keeper(fleet, timelines, read, saver.want, saver.settled_anew, this_host())

    parts = Assembly(
        settings,
        timelines,
        clock=partial(Clock, since=since),
        save=save,
        unusable=store.moved_away,
        page=page,
        own_uid=os.geteuid(),
        outsiders=outsiders_uid(),
        keeper=keeper_of,
        unreachable=listener.unreachable,
        log=kernel_log,
    )
    acceptor = parts.acceptor(listener.sock)
    with parts.clones, trio.open_signal_receiver(*SIGNALS) as signals:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        async with trio.open_nursery() as saving:
            for part in (parts.saver, parts.refusals, parts.trust, parts.clones, parts.keeper):
                if part is not None:
                    saving.start_soon(part.run)
            async with trio.open_nursery() as serving:
                serving.start_soon(acceptor.run)
                async with trio.open_nursery() as watched:
                    watched.start_soon(supervise, manager, parts.report.line)
                    if idle := settings.idle_timeout:
                        watched.start_soon(until_idle, parts.service, idle, watched.cancel_scope)
                    async for number in signals:
                        log.info("stopping: signal=%s", signal.Signals(number).name)
                        watched.cancel_scope.cancel()
                        break
                manager.notify(stopping=1, status="Stopping")
                listener.stop_listening()
                acceptor.stop(drain=listener.path is not None)
                serving.cancel_scope.deadline = trio.current_time() + STOP_SECONDS
            listener.close()
            parts.refusals.log()
            if parts.keeper is not None:
                await parts.keeper.prepare_stop()
            saved = await parts.saver.finish(LAST_SAVE_SECONDS)
            if parts.keeper is not None:
                await parts.keeper.release(saved=saved)
            saving.cancel_scope.cancel()
        # At the end of this block trio raises signals again that came meanwhile: block them.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    if saved:
        log.info("stopped: state saved")
    else:
        log.error(
            "stopped without saving the exact state, so the next start changes the clock sequence:"
            " %s",
            parts.saver.trouble or f"the disk took longer than {LAST_SAVE_SECONDS:g} s",
        )
    return saved


async def until_idle(service: Service, seconds: int, done: trio.CancelScope) -> None:
    """Cancel *done* once no request has come for so many seconds."""
    seen, quiet = -1, 0
    while quiet < IDLE_CHECKS:
        await trio.sleep(seconds / IDLE_CHECKS)
        asked = service.rpc.requests + service.libuuid.requests
        seen, quiet = asked, quiet + 1 if asked == seen else 0
    log.info("stopping: no request for %d s", seconds)
    done.cancel()


def _keep_below_descriptors(limits: Limits) -> None:
    """Raise the process's limit of descriptors to the maximum, and keep connections below it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    room = max(1, hard - SPARE_DESCRIPTORS)
    if hard == resource.RLIM_INFINITY or room >= limits.connections:
        return
    log.warning(
        "only %d descriptors may be open, so at most %d connections are accepted; see LimitNOFILE="
        " or ulimit -n",
        hard,
        room,
    )
    limits.connections = room
    limits.connections_per_uid = min(limits.connections_per_uid, max(1, room // 2))
