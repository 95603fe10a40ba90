"""P8: the daemon's answer to the news that its machine was cloned, however often it comes."""

from __future__ import annotations

import os
import random
from contextlib import AbstractAsyncContextManager
from unittest.mock import Mock

import pytest
import trio

from tests.daemon.fakes import UID, Inside, MustPause, at_once, awaited, meanwhile
from tests.daemon.fleet import Engine, Host
from tests.rig import Daemon
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.timeline.state import Node
from uuidd.core.wire import rpc
from uuidd.core.wire.methods import RefusedError
from uuidd.fleet.record import Record
from uuidd.server.clones import SPAN
from uuidd.server.entropy import READ_AHEAD, of_this_moment
from uuidd.server.saver import FIRST_REACH

pytestmark = pytest.mark.usefixtures("autojump_clock")


@pytest.fixture
async def inside() -> Inside:
    return Inside(ahead=10)


def running(inside: Inside) -> AbstractAsyncContextManager[None]:
    """Let the saver run meanwhile, and join the renewals of many alarms."""
    return meanwhile(inside.saver.run, inside.clones.run)


async def test_nothing_is_given_out_before_the_save(inside: Inside) -> None:
    before = inside.take().node
    inside.clones.notice("test")
    with pytest.raises(MustPause):
        inside.take()
    async with inside.saving():
        block = await inside.take_waiting()
        assert block.node != before
        assert inside.disk.kept[-1].node.value == block.node


async def test_an_idle_daemon_saves_at_once(inside: Inside) -> None:
    """It need not wait for a request: the copy may crash, and start from the same state."""
    async with inside.saving():
        await trio.sleep(100)
        saves = len(inside.disk.kept)
        inside.clones.notice("test")
        await trio.sleep(1)
        assert len(inside.disk.kept) > saves
        assert inside.disk.kept[-1].node == inside.timeline.node


async def test_a_disk_that_is_full_leaves_a_volatile_node(inside: Inside) -> None:
    before = inside.take().node
    async with inside.saving():
        inside.disk.broken = True
        inside.clones.notice("test")
        block = await inside.take_waiting()
        assert block.node not in (before, inside.timeline.node.value)
        with pytest.raises(RefusedError, match="could not be saved"):
            await inside.take_steady_waiting()


async def test_a_clone_draws_other_random_bits_than_its_copy(inside: Inside) -> None:
    ahead = random.Random(1).randbytes(READ_AHEAD)
    used = ahead.index(inside.entropy.take(8)) + 8
    inside.clones.notice("test")
    assert inside.entropy.take(8) != ahead[used : used + 8]


async def test_a_clone_reaches_no_further_ahead_than_after_a_start(inside: Inside) -> None:
    """So a machine that is cloned again and again does not run ahead of UTC."""
    async with inside.saving():
        await trio.sleep(100)
        inside.clones.notice("test")
        await inside.take_waiting()
        assert inside.saver.status()["reach_seconds"] == pytest.approx(FIRST_REACH)


def test_a_generator_that_the_copy_has_too_draws_other_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clocks are mixed in, because the kernel may not have heard of the clone yet."""
    monkeypatch.setattr(os, "urandom", bytes)
    assert of_this_moment(16) != of_this_moment(16)


@pytest.mark.parametrize(
    ("node", "left"),
    [
        (None, ""),
        (
            Node(5 | MULTICAST, "given"),
            "; the node is fixed, so the v1 and v6 of two clones differ in 6 bits only, and Flakes"
            " may be the same",
        ),
    ],
)
async def test_the_log_has_a_line_with_the_signal_and_what_is_left(
    log: pytest.LogCaptureFixture, node: Node | None, left: str
) -> None:
    Inside(node=node).clones.notice("vmclock")
    assert log.messages[0] == f"this machine was cloned: signal=vmclock leases_ended=0{left}"
    assert log.messages[1].startswith("the clock sequence was changed, and so was the node")


async def test_the_status_tells_of_clones(inside: Inside) -> None:
    await trio.sleep(5)
    inside.clones.notice("vmclock")
    await trio.sleep(3)
    assert inside.clones.status() == {
        "noticed": 1,
        "renewed": 1,
        "last_by": "vmclock",
        "last_age": 3.0,
        "after_clone": "refuse",
        "signals": dict.fromkeys(("vmclock", "vmgenid", "clock"), "none here"),
    }


async def test_an_alarm_every_second_saves_one_renewal_in_ten_seconds(inside: Inside) -> None:
    async with running(inside):
        nodes = set[int]()
        for _ in range(100):
            inside.clones.notice("test")
            await trio.sleep(1)
            nodes.add(inside.disk.kept[-1].node.value)
        assert inside.clones.noticed == 100
        assert inside.clones.saved in (10, 11)
        assert len(nodes) <= inside.clones.saved + 1


async def test_each_alarm_ends_what_was_shared_until_then(inside: Inside) -> None:
    async with inside.saving():
        nodes = list[int]()
        flakes = list[int]()
        for _ in range(5):
            inside.clones.notice("test")
            nodes.append((await inside.take_waiting()).node)
            flakes.append((await inside.take_steady_waiting()).node)
            await trio.sleep(0.1)
    assert len({*nodes}) == len({*flakes}) == 5


async def test_what_was_joined_is_saved_when_the_span_is_over(inside: Inside) -> None:
    async with running(inside):
        inside.clones.notice("test")
        await trio.sleep(1)
        inside.clones.notice("test")
        volatile = [inside.timeline.volatile]
        await trio.sleep(SPAN)
        volatile.append(inside.timeline.volatile)
        assert inside.clones.saved == 2
        assert [node is None for node in volatile] == [False, True]
        assert (await inside.take_waiting()).node == inside.disk.kept[-1].node.value


async def test_alarms_do_not_run_steady_ahead_of_utc(inside: Inside) -> None:
    """A false one every ten seconds, for an hour, leaves the lead where one true one puts it."""
    leads = list[int]()
    async with inside.saving():
        for _ in range(360):
            inside.clones.notice("test")
            for _ in range(10):
                await inside.take_steady_waiting()
                await trio.sleep(1.01)
            at = inside.clock.read()
            leads.append(inside.steady.lead(now=at.now, elapsed=at.elapsed))
    assert max(leads) <= 21 * 10_000_000


async def test_alarms_do_not_flood_the_log(
    inside: Inside, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(1000):
        inside.clones.notice("test")
    assert len(caplog.messages) <= 6


async def test_a_worker_number_set_by_hand_is_refused() -> None:
    inside = Inside(worker=5, ahead=10)
    inside.clones.notice("test")
    async with inside.saving():
        with pytest.raises(RefusedError) as refused:
            await awaited(inside.allocator.take("snowflake", 1, False, uid=UID))
        assert (await inside.take_steady_waiting()).worker is None
    assert refused.value.code == "no_worker_id"
    assert refused.value.message.startswith(
        "this machine was cloned, so another one may have worker number 5 too; start uuidd with"
    )
    assert inside.report.status()["worker"]["why"] == refused.value.message


async def test_a_worker_number_set_by_hand_goes_on_if_that_was_chosen() -> None:
    inside = Inside(worker=5, go_on_after_clone=True, ahead=10)
    inside.clones.notice("test")
    async with inside.saving():
        assert (await inside.take_steady_waiting()).worker == 5


async def test_a_claimed_number_is_dropped_and_another_is_claimed() -> None:
    """The first one stays the copy's, if it goes on with it."""
    engine = Engine()
    host = Host(engine)
    async with host.running(), host.inside.saving():
        before = host.number
        host.inside.clones.notice("test")
        held = [host.number]
        await trio.sleep(1)
        held.append(host.number)
        assert held[0] is None
        assert held[1] not in (None, before)
        assert len(engine.kept) == 2
        block = await awaited(host.inside.allocator.take("snowflake", 1, False, uid=UID))
        assert block.worker == host.number  # type: ignore[union-attr]


async def test_a_claim_without_an_answer_is_dropped_too() -> None:
    """The copy finds its token in the register as well, and would go on with the number."""
    engine = Engine(losing=True)
    host = Host(engine)
    async with host.running(), host.inside.saving():
        (claimed,) = engine.kept
        host.inside.clones.notice("test")
        engine.losing = False
        await trio.sleep(10)
        assert host.number not in (None, claimed)


class Slow(Engine):
    """An engine whose writes are done, and answered once *answering* is set, if it holds them."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = False
        self.wrote, self.answering = trio.Event(), trio.Event()

    async def write(self, number: int, record: Record, found: Record | None) -> None:
        """See ``Registers``."""
        await super().write(number, record, found)
        if self.holds:
            self.wrote.set()
            await self.answering.wait()


async def test_a_renewal_of_the_claim_that_was_under_way_counts_for_nothing() -> None:
    """Its answer has come by then, unseen so far, and does not bring the number back."""
    engine = Slow()
    host = Host(engine)
    async with host.running(), host.inside.saving():
        before = host.number
        engine.holds = True
        await engine.wrote.wait()
        engine.answering.set()
        host.inside.clones.notice("test")
        await trio.sleep(2)
        assert host.number not in (None, before)


async def test_alarms_do_not_use_up_the_numbers_of_a_fleet() -> None:
    engine = Engine()
    host = Host(engine)
    async with host.running(), running(host.inside):
        for _ in range(60):
            host.inside.clones.notice("test")
            await trio.sleep(1)
        assert 2 <= len(engine.kept) <= 14


async def test_renew_answers_when_it_is_saved(inside: Inside) -> None:
    """So whoever asked, as a hook after a restore, can begin."""
    async with inside.saving():
        assert await awaited(inside.clones.renew()) == {"leases": 0, "saved": True}
        assert inside.disk.kept[-1].node == inside.timeline.node
        assert await awaited(inside.clones.renew()) == {"leases": 0, "saved": False}


async def test_a_renewal_after_those_that_were_joined_is_saved(inside: Inside) -> None:
    async with running(inside):
        for _ in range(2):
            inside.clones.notice("test")
        await trio.sleep(3 * SPAN)
        assert inside.clones.saved == 2
        assert await awaited(inside.clones.renew()) == {"leases": 0, "saved": True}


async def test_renew_says_that_it_is_not_saved(inside: Inside) -> None:
    node = inside.timeline.node
    async with inside.saving():
        inside.disk.broken = True
        with pytest.raises(RefusedError, match=r"^renewed, but the state could not be saved") as no:
            await awaited(inside.clones.renew())
    assert no.value.code == "unavailable"
    assert "(No space left on device)" in no.value.message
    assert inside.timeline.node != node


@pytest.mark.parametrize("uid", [0, 990])
async def test_root_and_the_daemons_user_may_renew(uid: int) -> None:
    inside = Inside(own_uid=990)
    with pytest.raises(MustPause):
        at_once(inside.service.answer(rpc.Request(1, "renew", []), Mock(uid=uid)))


async def test_another_user_may_not_renew(inside: Inside) -> None:
    before = inside.standing()
    async with inside.talking() as peer:
        reply = await peer.call("renew")
    assert reply.code == "not_permitted"
    assert reply.error is not None
    assert reply.error.endswith(f"and this is uid {UID}")
    assert inside.standing() == before
    assert inside.clones.noticed == 0


@pytest.mark.process
def test_a_restart_goes_on_as_the_clone_and_not_with_its_worker_number() -> None:
    """A crash does not bring the number back. Another number, or the option, ends that."""
    with Daemon("--worker=5") as daemon:
        with daemon.connect() as connection:
            before = connection.call("take", "utc", 1)["node"]
            assert connection.call("renew") == {"leases": 0, "saved": True}
            after = connection.call("take", "utc", 1)["node"]
            assert connection.call("status")["clones"]["last_by"] == "renew"
        daemon.kill()
        daemon.start()
        with daemon.connect() as connection:
            assert connection.call("take", "utc", 1)["node"] == after != before
            _, _, error, _ = connection.ask("make", "snowflake")
            assert error.startswith("no_worker_id: this machine was cloned, so another one may")
        for arguments in (["--worker=5", "--after-clone=go-on"], ["--worker=5"]):
            daemon.stop()
            daemon.arguments = arguments
            daemon.start()
            assert len(daemon.call("make", "snowflake")) == 1
