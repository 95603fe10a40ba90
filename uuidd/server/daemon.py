"""The daemon put together: started, served, and stopped so that nothing is lost."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import resource
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import trio

from uuidd import __version__
from uuidd.clock import Clock
from uuidd.core.ids import snowflake, times
from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.ids.timebased import TICKS_PER_SECOND
from uuidd.core.timeline.state import State
from uuidd.core.timeline.steady import MAX_LEAD_SECONDS, Rollback, Steady
from uuidd.core.timeline.timelines import FAR, Reading, Timelines
from uuidd.core.timeline.utc import Opening, Utc
from uuidd.node import choose, libuuid_clock_seq
from uuidd.server.acceptor import Acceptor
from uuidd.server.admission import Admission
from uuidd.server.doors import Door, open_door
from uuidd.server.entropy import Entropy
from uuidd.server.issuer import Issuer
from uuidd.server.limits import LAST_SAVE_SECONDS, SPARE_DESCRIPTORS, STOP_SECONDS, Limits
from uuidd.server.pidfile import pid_file
from uuidd.server.report import Report
from uuidd.server.saver import FIRST_LEAD, Saver
from uuidd.server.service import Service
from uuidd.store import FolderStore, StoreError, machine_hash
from uuidd.systemd import inherited_socket

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

IDLE_LOOKS = 10
"""How often in its idle time-out the daemon looks whether it was used."""

log = logging.getLogger("uuidd")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the administrator chose.

    *socket* is None when systemd passes it; *pid_file* is None when none is wanted; *idle_timeout*
    is in seconds, 0 for never. *worker* is the machine number of Snowflakes, *epoch* theirs in Unix
    milliseconds; *max_lead*, in seconds, and *rollback* are the steady timeline's.
    """

    socket: Path | None
    state: Path
    node: str = "random"
    pid_file: Path | None = None
    idle_timeout: int = 0
    limits: Limits = field(default_factory=Limits)
    worker: int | None = None
    epoch: int = TWITTER_EPOCH
    max_lead: float = MAX_LEAD_SECONDS
    rollback: Rollback = "slew"


class EpochError(Exception):
    """No Snowflake can be made with the epoch that was chosen; one line that says why."""


class Daemon:
    """A daemon that holds its socket, its store and a saved horizon, ready to serve."""

    def __init__(
        self,
        door: Door,
        store: FolderStore,
        timelines: Timelines,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._door = door
        self._store = store
        self._timelines = timelines
        self._clock = clock
        self._settings = settings

    def serve(self) -> bool:
        """Serve until SIGTERM, SIGINT or the idle time-out; whether the exact state was saved."""
        return trio.run(self._serve)

    async def _serve(self) -> bool:
        limits = _within_descriptors(self._settings.limits)
        admission = Admission(limits, own_uid=os.geteuid())
        saver = Saver(self._timelines, self._save, self._clock.read)
        report = Report(self._timelines, saver, self._clock, admission, limits)
        issuer = Issuer(self._timelines, saver, self._clock.read)
        service = Service(issuer, Entropy(), report.status)
        acceptor = Acceptor(self._door.sock, service, admission, limits)
        with trio.open_signal_receiver(*STOP_SIGNALS) as signals:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
            async with trio.open_nursery() as saving:
                saving.start_soon(saver.run)
                async with trio.open_nursery() as serving:
                    serving.start_soon(acceptor.run)
                    await _until_stopped(signals, service, self._settings.idle_timeout)
                    acceptor.stop()
                    serving.cancel_scope.deadline = trio.current_time() + STOP_SECONDS
                self._door.close()
                saved = await saver.finish(LAST_SAVE_SECONDS)
                saving.cancel_scope.cancel()
        _note_stop(saved, saver)
        return saved

    async def _save(self, state: State) -> None:
        # Abandoned only at the very end, when a hung disk outlasts the daemon's patience.
        await trio.to_thread.run_sync(
            functools.partial(self._store.save, state), abandon_on_cancel=True
        )


@contextlib.contextmanager
def started(settings: Settings) -> Iterator[Daemon]:
    """Give a daemon that is ready to serve: it listens, and its first horizon is saved.

    Raises DoorError, StoreError, PidFileError, NodeError, EpochError or ActivationError, one line
    each, and leaves nothing half made. At the end of the context socket, lock and pid file are
    given back.
    """
    with contextlib.ExitStack() as undo:
        node = choose(settings.node)
        clock = Clock(_note_step)
        _check_epoch(settings.epoch, clock.now())
        if settings.socket is None:
            door = Door(inherited_socket(), None)
        else:
            door = open_door(settings.socket)
        undo.callback(door.close)
        store = FolderStore(settings.state, machine=machine_hash())
        undo.callback(store.close)
        loaded = store.load()
        if store.set_aside:
            log.error("state unusable, begun anew: cause=%r", store.set_aside)
        entropy = Entropy()
        news = _News()
        at = clock.read()
        utc = Utc(
            loaded,
            machine=store.machine,
            now=at.now,
            random=entropy.bits,
            node=node,
            avoid=libuuid_clock_seq,
            tell=news.tell,
        )
        steady = Steady(
            None if loaded is None else loaded.steady,
            now=at.now,
            elapsed=at.elapsed,
            lost=store.lost,
            rollback=settings.rollback,
            max_lead=max(1, int(settings.max_lead * TICKS_PER_SECOND)),
        )
        timelines = Timelines(utc, steady, worker=settings.worker, epoch=settings.epoch)
        _save_first(timelines, store, at)
        if settings.pid_file is not None:
            undo.enter_context(pid_file(settings.pid_file))
        # Whoever reads that it has started may stop it at once: until trio listens, signals wait.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        news.publish()
        _note_steady(steady, at)
        log.info(
            "started: version=%s pid=%d socket=%s state=%s node=%012x node_source=%r",
            __version__,
            os.getpid(),
            settings.socket,
            settings.state,
            utc.node.value,
            utc.node.source,
        )
        yield Daemon(door, store, timelines, clock, settings)


def _check_epoch(epoch: int, now: int) -> None:
    """See to it that Snowflakes can be made. Raises EpochError."""
    try:
        snowflake.time_field(epoch).raw(now)
    except ValueError:
        field = snowflake.time_field(epoch)
        raise EpochError(
            f"--epoch {epoch}: a Snowflake's 41 bits then tell {times.text(field.epoch)} to"
            f" {times.text(field.end - 1)}, and it is {times.text(now)} now; name an epoch before"
            " now, in Unix milliseconds, and less than 69 years ago"
        ) from None


def _note_steady(steady: Steady, at: Reading) -> None:
    """Say at the start what the steady timeline will not do for a while, and why."""
    if steady.held_until:
        log.warning(
            "the state was lost, steady ids are held back: seconds=%d",
            (steady.held_until - at.now) / TICKS_PER_SECOND,
        )
    lead = steady.lead(now=at.now, elapsed=at.elapsed)
    if lead > FAR:
        log.warning(
            "the steady timeline is ahead of UTC: seconds=%.3f max_lead=%g rollback=%s",
            lead / TICKS_PER_SECOND,
            steady.max_lead / TICKS_PER_SECOND,
            steady.rollback,
        )


def _save_first(timelines: Timelines, store: FolderStore, at: Reading) -> None:
    """Save the first horizon: a daemon that cannot save from the start is not started."""
    state = timelines.begin_save(at=at, lead=int(FIRST_LEAD * TICKS_PER_SECOND), bare_lead=0)
    try:
        store.save(state)
    except OSError as error:
        raise StoreError(
            f"the state cannot be saved in {store.folder}: {error.strerror};"
            " make room or mend the folder, or name another with --state"
        ) from error
    timelines.end_save(state, completed=True)


async def _until_stopped(signals: AsyncIterator[int], service: Service, idle_timeout: int) -> None:
    """Wait for a signal or, if there is an idle time-out, for a time without requests."""
    async with trio.open_nursery() as nursery:
        if idle_timeout:
            nursery.start_soon(_until_idle, service, idle_timeout, nursery.cancel_scope)
        async for number in signals:
            log.info("stopping: signal=%s", signal.Signals(number).name)
            nursery.cancel_scope.cancel()
            return


async def _until_idle(service: Service, seconds: int, done: trio.CancelScope) -> None:
    seen, quiet = -1, 0
    while quiet < IDLE_LOOKS:
        await trio.sleep(seconds / IDLE_LOOKS)
        asked = service.rpc.requests + service.libuuid.requests
        seen, quiet = asked, quiet + 1 if asked == seen else 0
    log.info("stopping: idle=%ds", seconds)
    done.cancel()


def _within_descriptors(limits: Limits) -> Limits:
    """Raise the process's limit of descriptors as far as it goes, and keep connections below it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    room = max(1, hard - SPARE_DESCRIPTORS)
    if hard == resource.RLIM_INFINITY or room >= limits.connections:
        return limits
    log.warning("fewer connections than asked for: descriptors=%d connections=%d", hard, room)
    return replace(
        limits, connections=room, connections_per_uid=min(limits.connections_per_uid, room // 2)
    )


def _note_step(nanoseconds: int) -> None:
    log.warning("UTC stepped: seconds=%+.3f", nanoseconds / 1e9)


class _News:
    """Logs openings; those of a start not before it has succeeded, for one that fails has none."""

    def __init__(self) -> None:
        self._held: list[Opening] | None = []

    def tell(self, opening: Opening) -> None:
        """Log an opening, now or once the daemon has started."""
        if self._held is not None:
            self._held.append(opening)
            return
        log.log(
            logging.INFO if opening.reason in _ROUTINE else logging.WARNING,
            "clock sequence opened: reason=%r generation=%d node=%012x back=%.3fs",
            opening.reason,
            opening.generation,
            opening.node,
            opening.back / TICKS_PER_SECOND,
        )

    def publish(self) -> None:
        """Log what was held back, and from here on at once."""
        held, self._held = self._held or [], None
        for opening in held:
            self.tell(opening)


_ROUTINE = ("no state", "saved again")


def _note_stop(saved: bool, saver: Saver) -> None:
    if saved:
        log.info("stopped: state saved")
    else:
        log.error("stopped: the exact state was not saved: cause=%r", saver.trouble or "slow")
