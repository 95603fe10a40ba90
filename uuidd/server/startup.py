"""A daemon's start: takes its socket, its files and its state, or says in one line why not.

Theory of operation

1. What needs no file is checked first: descriptors, the kernel's word on the clock, the engine, the
   node, the epoch. What the start makes comes after that, and is undone in reverse order if a later
   step is refused. Else a pid file would name a process that is gone, and an empty state folder
   would look like one whose state was lost.
2. The socket comes before all files, so a second daemon at one path ends before it touches any. The
   folder of the state is locked before it is read, for the daemon that holds it writes to it.
3. Only root can read the product UUID and the kernel's log, so both are opened first. From the
   state on, root acts as the user of ``--user``, because that user may plant links in the folder.
   The way back to root is given up last: to remove a socket and a pid file may need it.
4. A state that is lost is told from a first start by the lock file in its folder, and by the
   witness beside the socket. A first start gives out steady ids at once, so after a loss taken for
   a first start they would come again.
5. The first horizon is saved before the daemon serves. Else a crash right after the first id would
   have the next start give it out again. Before that save the start waits for CHECK_SECONDS: a
   daemon from which the folder was moved away goes on for so long.
6. Signals are blocked until the daemon serves, which then stops in order. Else one that came in
   between would leave all that was made.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import select
import signal
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path

import trio

from uuidd import version
from uuidd.clock import Clock
from uuidd.clones import KernelLog, NoSignal, kernel_log
from uuidd.core.ids import snowflake, times
from uuidd.core.ids.ticks import TICKS_PER_MS, TICKS_PER_SECOND
from uuidd.core.timeline.state import NO_EPOCHS, Node, State
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.libuuid_clock import LIBUUID_CLOCK, LIBUUID_CONT, libuuid_mark
from uuidd.node import choose
from uuidd.privileges import acting_as, become, hand_over
from uuidd.product import product_hash
from uuidd.refused import Refused
from uuidd.server import events
from uuidd.server.assembly import timelines_from
from uuidd.server.daemon import SIGNALS, serve
from uuidd.server.entropy import Entropy
from uuidd.server.listeners import Listener, open_listener
from uuidd.server.page import Page, PageError
from uuidd.server.peers import outsiders_uid
from uuidd.server.pidfile import pid_file
from uuidd.server.saver import CHECK_SECONDS, FIRST_REACH
from uuidd.server.settings import SPARE_DESCRIPTORS, Settings
from uuidd.server.trust import Quality, check_sync, quality, withheld
from uuidd.statefile import machine_hash
from uuidd.store import FULL, FolderStore
from uuidd.systemd import inherited_kernel_log, inherited_socket, notifier

log = logging.getLogger("uuidd")

WITNESS = ".used"
"""What the name of the witness of earlier runs has after that of the socket."""

MAX_MARK_AHEAD = 24 * 3600 * TICKS_PER_SECOND
"""Ticks by which a mark of libuuid may be ahead of now. One further ahead was made while the clock
was wrong, and the fixed node would be out of use until then."""


@contextlib.contextmanager
def started(settings: Settings) -> Iterator[Callable[[], bool]]:
    """A daemon that is ready to serve: it listens, and has saved its first horizon, or tried to.

    It gives a function that serves until one of SIGNALS or the idle time-out. The function returns
    whether the state was saved.

    Raises Refused, and leaves nothing half made. At the end of the context the socket and the pid
    file are removed, and the state's lock is released.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    with contextlib.ExitStack() as undo:
        unblock = undo.enter_context(contextlib.ExitStack())
        unblock.callback(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        check_descriptors()
        check_sync(settings.require_sync)
        if settings.fleet is not None:
            # Only hosts of a fleet pay for it, and before --user: its user may not read the files.
            from uuidd.fleet import engines, keeper  # noqa: F401  (serve uses keeper)

            engines.check(settings.fleet.address)
        node = choose(settings.node)
        clock = Clock(events.step)
        check_epoch(settings, clock.now())
        # Before ``become``: only root can read the kernel's file.
        product = product_hash()
        opened_log = _kernel_log(undo)
        manager = undo.enter_context(contextlib.closing(notifier()))
        if settings.socket is None:
            listener = Listener(inherited_socket(), None)
        else:
            listener = open_listener(settings.socket)
        undo.callback(listener.close)
        if settings.pid_file is not None:
            undo.enter_context(pid_file(settings.pid_file))
        used, forget = "", undo.enter_context(contextlib.ExitStack())
        if settings.worker is not None or node is not None:
            # Without the state, Snowflakes or Flakes of before may come again.
            used = earlier_run(listener.sock.getsockname(), forget)
        user = settings.user
        if user is not None:
            hand_over(settings.state, user)
        # Root must not write where another user may plant links.
        with acting_as(user):
            store = FolderStore(settings.state, machine=machine_hash())
            undo.callback(store.close)
            page = _page(undo)
            timelines, at = begin_timelines(settings, node, store, clock, page, product, used)
        if user is not None:
            become(user)
            # The kernel counts watches by user.
            check_descriptors()
        if os.geteuid() == 0:
            log.info("running as root, which is not needed: see --user, or the unit for systemd")
        outsiders = outsiders_uid()
        if outsiders is not None:
            log.warning(
                "in a user namespace: users outside of it count as one, with one share and one"
                " limit; run uuidd outside to tell them apart: uid=%d",
                outsiders,
            )
        events.steady_at_start(timelines.steady, at)
        log.info(
            "started: version=%s pid=%d socket=%s state=%s node=0x%012x node_source=%r",
            version(),
            os.getpid(),
            settings.socket or f"{listener.sock.getsockname()} (systemd's)",
            settings.state,
            timelines.utc.node.value,
            timelines.utc.node.source,
        )
        # After a stop signals stay blocked: another must not end the process before its time.
        unblock.pop_all()
        forget.pop_all()
        yield partial(
            trio.run, serve, listener, store, timelines, at, manager, settings, page, opened_log
        )


def earlier_run(socket: str | bytes, forget: contextlib.ExitStack) -> str:
    """Return why ids may have been made at *socket* before, "" if none were since the boot.

    The witness is an empty file beside the socket. The state's folder cannot tell that it was
    emptied. That of the socket is another one, which most hosts keep from one boot to the next.

    If there is no witness yet, one is made, which *forget* removes. If it cannot be made, nobody
    knows.
    """
    if not socket or isinstance(socket, bytes):
        return "a socket without a path cannot show that no ids were made here before"
    path = Path(socket + WITNESS)
    try:
        # It is new, so no other user has led root elsewhere.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    except FileExistsError:
        return f"{path} shows that ids were made here before"
    except OSError as error:
        return f"{path} cannot be made, to show that no ids were made before: {error.strerror}"

    @forget.callback
    def remove() -> None:
        with contextlib.suppress(OSError):
            path.unlink()

    return ""


def _kernel_log(undo: contextlib.ExitStack) -> Callable[[], KernelLog]:
    """Open the kernel's log, which only root can where the kernel is set so, for ``Clones``."""
    try:
        log = undo.enter_context(contextlib.closing(kernel_log(inherited_kernel_log())))
    except NoSignal as found:
        lack = found

        def missing() -> KernelLog:
            raise lack

        return missing
    return lambda: log


def _page(undo: contextlib.ExitStack) -> Page | None:
    """Return the page of the leases, closed by *undo*; None, and log it, if there can be none."""
    try:
        return undo.enter_context(contextlib.closing(Page()))
    except PageError as error:
        log.warning("no leases, so all clients use blocks: %s", error)
        return None


def begin_timelines(
    settings: Settings,
    node: Node | None,
    store: FolderStore,
    clock: Clock,
    page: Page | None = None,
    product: str = "",
    used: str = "",
) -> tuple[Timelines, Reading]:
    """Return the timelines, after their first save, and the clock then.

    A state that a machine with another *product* has saved is used, so that steady does not go
    back, but not its node. If there is none, and ids may have been made before, as *used* says, the
    state was lost.
    """
    loaded = store.load()
    epochs = epochs_with(settings, loaded)
    lost = store.lost or (loaded is None and bool(used))
    if store.set_aside:
        log.error("the state could not be used, so a new one is made: %s", store.set_aside)
    elif lost:
        why = used or "the folder was used before"
        log.error("there is no state in %s, so a new one is made: %s", store.folder, why)
    # A daemon whose folder was moved away from here just before may give out ids for so long.
    # (time.sleep would fail where libfaketime sets the clock.)
    select.select((), (), (), CHECK_SECONDS)
    at = clock.read()
    # A state of the same fixed node has marks of its own.
    begins = node is not None and (loaded is None or not node.same_as(loaded.node))
    marks = libuuid_marks(at.now) if begins else []
    timelines = timelines_from(
        loaded,
        settings,
        at,
        machine=store.machine,
        random=Entropy().bits,
        product=product,
        node=node,
        lost=lost,
        epochs=epochs,
        floor=max((at.now + ahead for _, ahead in marks if ahead <= MAX_MARK_AHEAD), default=None),
        page=page,
    )
    _save_first(timelines, store, at)
    # Not before: a start that is refused the save has opened nothing.
    for path, ahead in marks:
        events.libuuid_mark(path, ahead, used=ahead <= MAX_MARK_AHEAD)
    events.openings(timelines.utc)
    return timelines, at


def check_descriptors() -> None:
    """Check that this user can accept connections at all. Raises Refused."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < SPARE_DESCRIPTORS:
        raise Refused(
            f"at most {hard} descriptors may be open, and uuidd needs {SPARE_DESCRIPTORS} beside"
            " its connections; raise the limit (ulimit -n, LimitNOFILE=)"
        )
    try:
        with select.epoll() as watching, select.epoll() as watched:
            watching.register(watched, select.EPOLLIN)
    except OSError as error:
        raise Refused(
            f"the kernel watches no more descriptors for this user: {error.strerror}; end other"
            " processes of this user, or raise fs.epoll.max_user_watches"
        ) from error


def check_epoch(settings: Settings, now: int, ask: Callable[[], Quality] = quality) -> None:
    """Check that Snowflakes can be made, if there is a worker number. Raises Refused.

    A clock that is not trusted yet proves nothing. *ask* is as in ``Trust``.
    """
    field = snowflake.time_field(settings.epoch)
    makes = settings.worker is not None or settings.fleet is not None
    fits = field.epoch <= now < field.end
    if makes and not fits and not withheld(settings.require_sync, ask):
        raise Refused(
            f"--epoch {_epoch(settings.epoch)}: a Snowflake's 41 bits then hold times from that to"
            f" {times.text(field.end - 1)}, and it is {times.text(now)} now; name an epoch before"
            " now, and less than 69 years ago, such as 2015-01-01T00:00:00Z"
        )


def epochs_with(settings: Settings, loaded: State | None) -> Mapping[int, int]:
    """Return the epochs of the state *loaded*, with that of *settings* if a worker number is set.

    A Snowflake holds the time since its epoch. Under a later epoch that time is shorter, so the
    Snowflakes of a past as long as the difference would come again: this raises Refused. Under an
    earlier one it is longer than any that was used so far, and keeps rising with the steady
    timeline.
    """
    known = NO_EPOCHS if loaded is None else loaded.epochs
    number, epoch = settings.worker, settings.epoch
    if number is None:
        return known
    earliest = known.get(number, epoch)
    if epoch > earliest:
        span = timedelta(milliseconds=epoch - earliest)
        raise Refused(
            f"--epoch {_epoch(epoch)}: Snowflakes of worker number {number} were made with"
            f" {_epoch(earliest)}, and a later epoch repeats those of the past, for {span}; keep"
            f" --epoch {earliest}, name a --worker that was never used, or accept repeats with"
            " uuidd --reset-epoch"
        )
    return {**known, number: epoch}


def _epoch(unix_ms: int) -> str:
    """Return an epoch in both forms in which it can be given."""
    return f"{unix_ms} ({times.text(snowflake.time_field(unix_ms).epoch, TICKS_PER_MS)})"


def libuuid_marks(now: int) -> list[tuple[Path, int]]:
    """Of each file of libuuid that can be read: how many ticks past *now* its mark lies.

    libuuid, without a daemon, has used no tick at or past its mark.
    """
    marks = [(path, libuuid_mark(path)) for path in (LIBUUID_CLOCK, LIBUUID_CONT)]
    return [(path, mark - now) for path, mark in marks if mark is not None]


def _save_first(timelines: Timelines, store: FolderStore, at: Reading) -> None:
    """Save the first horizon. Raises Refused if that fails, unless the disk is full.

    Callers of libuuid wait for as long as nobody serves, and a full disk may last.
    """
    state = timelines.begin_save(at=at, reach=int(FIRST_REACH * TICKS_PER_SECOND), bare_reach=0)
    try:
        store.save(state)
    except OSError as error:
        if error.errno not in FULL:
            raise Refused(
                f"the state cannot be saved in {store.folder}: {error.strerror or error};"
                " mend the folder, or name another with --state"
            ) from error
        log.error(
            "starting, although the state cannot be saved in %s: %s; make room",
            store.folder,
            error.strerror,
        )
        timelines.end_save(state, completed=False)
    else:
        timelines.end_save(state, completed=True)
