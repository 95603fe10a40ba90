from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import warnings
import weakref
from collections.abc import Callable
from types import FrameType

import pytest

from tests.client.breaking import profiled
from tests.client.raw import raw_fork
from uuidd_client import fork_guard
from uuidd_client.fork_guard import ForkGuard, alive, wipe_all

YES, NO = 41, 42


def in_fork(check: Callable[[], bool]) -> bool:
    """Return what *check* finds in a child of os.fork."""
    return _in_child(os.fork, check)


def in_raw_fork(check: Callable[[], bool]) -> bool:
    """Return what *check* finds in a child that a system call forked, of which no hook knows."""
    return _in_child(raw_fork, check)


def in_multiprocessing(check: Callable[[], bool]) -> bool:
    """Return what *check* finds in a child that multiprocessing forked."""
    child = multiprocessing.get_context("fork").Process(
        target=lambda: os._exit(YES if check() else NO)
    )
    child.start()
    child.join(20)
    assert child.exitcode in (YES, NO)
    return child.exitcode == YES


def _in_child(fork: Callable[[], int], check: Callable[[], bool]) -> bool:
    with warnings.catch_warnings():
        # That other threads may run, of which the child does nothing.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = fork()
    if not pid:
        try:
            os._exit(YES if check() else NO)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (YES, NO)
    return status == YES


FORKS = [in_fork, in_multiprocessing, in_raw_fork]


@pytest.fixture
def unwiped(monkeypatch: pytest.MonkeyPatch) -> ForkGuard:
    """Return a page as it is on a kernel that cannot wipe it."""
    monkeypatch.setattr(fork_guard, "MADV_WIPEONFORK", 9999)
    return ForkGuard()


def test_a_slot_holds_its_value() -> None:
    """What is put into a slot is read from it, as often as one likes."""
    slot = ForkGuard().slot(12.5)
    assert (slot[0], slot[0]) == (12.5, 12.5)


def test_a_slot_can_be_set() -> None:
    """A slot holds what was put into it last."""
    slot = ForkGuard().slot(12.5)
    slot[0] = 0.0
    assert slot[0] == 0.0


def test_many_slots_are_apart() -> None:
    """Some 500 slots hold a value each."""
    fork_guard = ForkGuard()
    slots = [fork_guard.slot(float(number)) for number in range(500)]
    assert [slot[0] for slot in slots] == [float(number) for number in range(500)]


def test_no_slot_is_the_one_that_tells_a_fork() -> None:
    """However many slots are given out, the page goes on to be alive where it was made."""
    fork_guard = ForkGuard()
    for _ in range(2000):
        fork_guard.slot(0.0)
    assert fork_guard.alive[0] == 1.0


def test_a_slot_outlives_its_page() -> None:
    """A run that is still drawn from may read its deadline when its session is gone."""
    slot = ForkGuard().slot(3.0)
    gc.collect()
    assert slot[0] == 3.0


@pytest.mark.process
@pytest.mark.parametrize("fork", FORKS)
def test_a_child_finds_the_page_empty(fork: Callable[[Callable[[], bool]], bool]) -> None:
    """After a fork of any kind all slots are 0.0 in the child."""
    fork_guard = ForkGuard()
    slots = [fork_guard.slot(1e9) for _ in range(500)]
    assert fork(lambda: not fork_guard.alive[0] and not any(slot[0] for slot in slots))


@pytest.mark.process
@pytest.mark.parametrize("fork", FORKS)
def test_the_parent_keeps_its_page(fork: Callable[[Callable[[], bool]], bool]) -> None:
    """A fork changes nothing where it came from."""
    fork_guard = ForkGuard()
    slot = fork_guard.slot(7.0)
    fork(lambda: True)
    assert (fork_guard.alive[0], slot[0]) == (1.0, 7.0)


@pytest.mark.process
@pytest.mark.parametrize("fork", [in_fork, in_multiprocessing])
def test_a_child_finds_the_page_empty_on_an_older_kernel(
    unwiped: ForkGuard, fork: Callable[[Callable[[], bool]], bool]
) -> None:
    """Where the kernel cannot wipe it, Python's own forks do."""
    slots = [unwiped.slot(1e9) for _ in range(500)]
    assert fork(lambda: not unwiped.alive[0] and not any(slot[0] for slot in slots))


def test_the_kernel_alone_wipes_the_page() -> None:
    """Where the kernel can wipe it, no hook has to."""
    assert ForkGuard() not in fork_guard._unwiped


def test_a_page_that_nobody_uses_is_not_kept(unwiped: ForkGuard) -> None:
    """The hook keeps no page alive that its session has left."""
    other = weakref.ref(ForkGuard())
    gc.collect()
    assert other() is None
    assert unwiped in fork_guard._unwiped


def test_two_threads_at_once_find_the_same_slot() -> None:
    """Otherwise the next renewal would wipe that of one thread alone."""
    other = []

    def overtake(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is ForkGuard.__init__.__code__:
            # As if another thread ran now.
            sys.setprofile(None)
            other.append(alive())

    wipe_all()
    found = profiled(alive, overtake)
    wipe_all()
    assert (found[0], *(slot[0] for slot in other)) == (0.0, 0.0)
