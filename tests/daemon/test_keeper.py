"""A host's worker number in a fleet: claimed, renewed, away, fenced, let go, and forgotten."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest
import trio

from tests.daemon.fakes import UID, awaited, meanwhile
from tests.daemon.fleet import META, NOW, WINDOW, Engine, Host
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import Claim, Fence
from uuidd.core.timeline.outcomes import NoneFree, NoNumber
from uuidd.core.timeline.state import Node, State
from uuidd.core.wire.methods import SAVE_SECONDS as SAVE_WAIT
from uuidd.core.wire.methods import RefusedError
from uuidd.fleet.administering import Administrator
from uuidd.fleet.fences import begin_fence, static_status
from uuidd.fleet.keeper import FULL_SECONDS, RESUME_SECONDS, SAVE_SECONDS, SPREAD, TRIES
from uuidd.fleet.record import Holder, Meta, Record
from uuidd.server.trust import Quality

pytestmark = pytest.mark.usefixtures("autojump_clock")

BACK = 6.0
"""Within so many seconds a host asks again after a question without an answer."""

HALF = WINDOW / 2 + 10
"""After so many seconds each host has renewed its claim once."""


@pytest.fixture
def engine() -> Engine:
    """An initialised fleet without a host."""
    return Engine()


@pytest.fixture
def claim(engine: Engine) -> Claim:
    """A claim to 17 that the engine has, as a state holds it: of a while ago, and for a while."""
    claim = Claim(META.id, 17, "b" * 16, NOW - 10**9, NOW + 100 * TICKS_PER_SECOND)
    engine.replace(17, Record(claim.token, claim.until, held=True, host="db1"))
    return claim


def register(engine: Engine, host: Host) -> Record:
    return engine.kept[host.claim.number]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def has_no_snowflake(host: Host) -> bool:
    """Return whether the host refuses Snowflakes, and makes another steady kind."""
    with pytest.raises(NoNumber):
        host.take()
    return host.take(fenced=False).worker is None


async def test_a_new_host_claims_a_number_with_two_questions(engine: Engine) -> None:
    """So that many can start at once."""
    host = Host(engine)
    async with host.running():
        assert host.take().worker == host.number
        record = register(engine, host)
        assert (record.claim, record.until) == (host.claim.token, host.claim.until)
        assert (record.host, record.held) == ("db1", True)
        assert host.saves > 0
        assert (engine.questions, host.keeper.status()["claims"]) == (2, 1)


async def test_a_request_for_snowflakes_waits_for_the_claim(engine: Engine) -> None:
    host = Host(engine)
    host.saving = trio.Event()
    async with host.inside.saving(), trio.open_nursery() as nursery:
        nursery.start_soon(host.keeper.run)

        async def claimed(saved: trio.Event) -> None:
            await trio.sleep(SAVE_WAIT / 2)
            saved.set()

        nursery.start_soon(claimed, host.saving)
        block = await awaited(host.inside.allocator.take("snowflake", 1, False, uid=UID))
        assert block.worker == host.number  # type: ignore[union-attr]
        assert trio.current_time() == pytest.approx(SAVE_WAIT / 2)
        nursery.cancel_scope.cancel()


async def test_a_number_is_used_once_the_state_holds_the_claim(engine: Engine) -> None:
    """A host that made a Snowflake makes more after a crash. A disk that hangs delays it little."""
    host = Host(engine)
    host.saving = trio.Event()
    async with host.running():
        assert isinstance(host.kept, Claim)
        assert [host.kept.number] == list(engine.kept)
        assert host.number is None
        await trio.sleep(SAVE_SECONDS)
        assert host.take().worker == host.kept.number


async def test_a_stop_before_the_claim_is_saved_lets_the_number_go(engine: Engine) -> None:
    host = Host(engine)
    host.saving = trio.Event()
    async with host.running():
        await host.stop()
        (found,) = engine.kept.values()
        assert not found.held


FAILS = 2 * TRIES


class Outrun(Engine):
    """An engine at which others are faster at the first FAILS numbers that a host tries."""

    async def write(self, number: int, record: Record, found: Record | None) -> None:
        """See ``Registers``."""
        if len(self.kept) < FAILS:
            self.replace(number, replace(record, claim="f" * 16, host=f"other{number}"))
        await super().write(number, record, found)


async def test_a_host_that_others_outran_looks_again_soon() -> None:
    """Each number that it tried is another's by now. It does not take the others for used."""
    engine = Outrun()
    host = Host(engine)
    async with host.running():
        assert len(engine.kept) == FAILS + 1
        assert host.number in engine.kept
        assert engine.looks == 1


async def test_a_claim_begins_where_the_record_before_it_ends(engine: Engine) -> None:
    """R1: also if that lies ahead of this host's clock; it waits then."""
    ahead = NOW + 5 * TICKS_PER_SECOND
    engine.replace(3, Record("a" * 16, ahead, held=False))
    host = Host(engine, low=3, high=3)
    async with host.running():
        assert host.claim.begin == ahead
        with pytest.raises(NoneFree):
            host.take()
        with pytest.raises(RefusedError) as refused:
            await awaited(host.inside.allocator.take("snowflake", 1, False, uid=UID))
        assert refused.value.code == "unavailable"
        assert refused.value.message.startswith("worker number 3 was used up to 4.000 s ahead of")
        await trio.sleep(5)
        assert host.take().first >= ahead


async def test_a_claim_is_renewed_when_half_of_the_window_is_over(engine: Engine) -> None:
    host = Host(engine)
    async with host.running():
        before, questions = host.claim.until, engine.questions
        early = WINDOW / SPREAD
        await trio.sleep(WINDOW / 2 - early - 10)
        assert engine.questions == questions
        await trio.sleep(early + 20)
        assert before < host.claim.until == register(engine, host).until


async def test_a_renewal_lowers_nothing_that_an_administrator_has_raised(engine: Engine) -> None:
    """The number may have been another host's up to there, before the engine was restored."""
    host = Host(engine)
    async with host.running():
        raised = host.claim.until + 10 * WINDOW * TICKS_PER_SECOND
        engine.change(host.claim.number, until=raised)
        await trio.sleep(HALF)
        assert host.claim.until == register(engine, host).until == raised


async def test_a_host_has_no_connection_between_two_renewals(engine: Engine) -> None:
    """An engine that is started again meanwhile is no engine without an answer."""
    host = Host(engine)
    async with host.running():
        assert engine.rests == 1


async def test_hosts_that_started_together_renew_apart(engine: Engine) -> None:
    """So that a fleet does not ask all at once, for ever."""
    hosts = [Host(engine, seed=seed) for seed in range(8)]
    async with meanwhile(*(host.keeper.run for host in hosts)):
        await trio.sleep(1)
        first = [host.claim.until for host in hosts]
        await trio.sleep(WINDOW / 2 - WINDOW / SPREAD / 2)
        assert {host.claim.until > until for host, until in zip(hosts, first, strict=True)} == {
            True,
            False,
        }


async def test_an_error_that_nobody_expected_is_one_without_an_answer(engine: Engine) -> None:
    """The daemon goes on, asks again, and says what it was."""
    engine.broken = ValueError("no such key")
    host = Host(engine)
    async with host.running():
        assert host.keeper.standing.trouble == "the folder /fleet does not answer (no such key)"
        engine.broken = None
        await trio.sleep(BACK)
        assert host.take().worker == host.number


async def test_a_silent_engine_stops_snowflakes_at_the_fence_and_nothing_else(
    engine: Engine,
) -> None:
    """And the refusal says what happened; they go on when the engine is back."""
    host = Host(engine)
    async with host.running():
        engine.away = "connection refused"
        await trio.sleep(WINDOW - 10)
        assert host.take().worker == host.number
        await trio.sleep(20)
        assert has_no_snowflake(host)
        why = host.inside.timelines.fence.why
        assert why.startswith(f"worker number {host.number} was reserved until ")
        assert why.endswith(
            "and the folder /fleet does not answer (connection refused); all other kinds go on"
        )
        engine.away = ""
        await trio.sleep(BACK)
        assert host.take().worker == host.number


async def test_the_log_tells_of_a_silent_engine_four_times_and_of_its_return(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """At once, when half and all of the time is over, and at the return, each time it is silent."""
    caplog.set_level(logging.INFO)
    host = Host(engine)
    async with host.running():
        caplog.clear()
        for _ in range(2):
            engine.away = "no route"
            await trio.sleep(2 * WINDOW)
            engine.away = ""
            await trio.sleep(BACK)
    said = [record.getMessage().split(":")[0] for record in caplog.records]
    assert said == ["away", "away", "away", "back"] * 2


def test_the_claim_of_a_state_waits_for_the_engine() -> None:
    claim = Claim(META.id, 17, "b" * 16, 0, 10**18)
    state = State(Node(1, "random"), "here", 0, {}, 0, 500, worker=claim)
    fence = begin_fence(state, None, in_fleet=True)
    assert (fence.number, fence.kept) == (None, claim.resumed(state.steady))


async def test_a_restart_goes_on_before_a_request_ends_if_the_engine_hangs(
    engine: Engine, claim: Claim
) -> None:
    """R4: up to the stored end. First it waits, for a copy of its state may ask for it too."""
    engine.hanging = True
    host = Host(engine, claim=claim)
    async with meanwhile(host.keeper.run):
        await trio.sleep(RESUME_SECONDS - 0.01)
        with pytest.raises(NoNumber):
            host.take()
        with trio.fail_after(SAVE_WAIT - RESUME_SECONDS):
            await host.keeper.renewed()
        assert host.take().worker == 17
        assert host.claim.until == claim.until
        assert host.keeper.status()["state"] == "resumed"


async def test_a_copy_of_a_state_takes_another_number(engine: Engine, claim: Claim) -> None:
    """The one whose write comes second makes no Snowflakes with the number that both began with."""
    first, second = Host(engine, claim=claim), Host(engine, "copy", low=17, high=18, claim=claim)
    engine.replace(18, Record("e" * 16, claim.until, held=True))
    async with first.running(), second.running():
        assert first.take().worker == 17
        assert has_no_snowflake(second)
        assert second.keeper.status()["fenced"] == 1
        engine.let_go(18)
        await trio.sleep(FULL_SECONDS[1] + 0.1)
        assert second.take().worker == 18


async def test_a_copy_that_went_on_without_the_engine_ends_when_it_answers(
    engine: Engine, claim: Claim, caplog: pytest.LogCaptureFixture
) -> None:
    """The other one may have used the same ticks. The log says once that this one went on."""
    caplog.set_level(logging.INFO)
    engine.away = "connection refused"
    host = Host(engine, low=17, high=17, claim=claim)
    async with host.running():
        await trio.sleep(BACK)
        assert host.take().worker == 17
        engine.steal(17)
        engine.away = ""
        await trio.sleep(BACK)
        assert has_no_snowflake(host)
    assert ["resumed: " in line for line in caplog.messages].count(True) == 1


async def test_a_lost_answer_to_a_claim_is_found_in_the_register(engine: Engine) -> None:
    """The host does not claim a second number, and uses the first only once it is confirmed."""
    engine.losing = True
    host = Host(engine)
    async with host.running():
        assert host.number is None
        engine.losing = False
        await trio.sleep(10)
        assert list(engine.kept) == [host.number]
        assert host.claim.until == register(engine, host).until


async def test_a_number_is_another_hosts_that_took_it_before_a_lost_claim(engine: Engine) -> None:
    """Nothing is written over the claim of a host that came first."""
    engine.delaying = True
    host = Host(engine, low=3, high=3)
    async with host.running():
        other = Record("f" * 16, NOW + 10**12, held=True, host="other")
        engine.replace(3, other)
        engine.delaying = False
        await trio.sleep(10)
        assert (host.number, host.keeper.standing.state) == (None, "full")
        assert engine.kept[3] == other


async def test_a_lost_answer_to_the_first_write_of_a_restart_is_found_in_the_register(
    engine: Engine, claim: Claim
) -> None:
    """Its new token is in force, and a copy of the state is not what wrote it."""
    engine.losing = True
    host = Host(engine, claim=claim)
    async with host.running():
        token = engine.kept[17].claim
        engine.losing = False
        await trio.sleep(10)
        assert (host.number, host.keeper.standing.state) == (17, "held")
        assert host.claim.token == register(engine, host).claim == token != claim.token


async def test_a_lost_answer_to_a_renewal_does_not_move_the_fence(engine: Engine) -> None:
    """R3: the register may be ahead, and is confirmed by the next write."""
    host = Host(engine)
    async with host.running():
        before = host.claim.until
        engine.losing = True
        await trio.sleep(HALF)
        assert register(engine, host).until > before == host.claim.until
        engine.losing = False
        await trio.sleep(10)
        assert host.claim.until == register(engine, host).until > before


async def test_a_fenced_host_uses_its_number_up_to_the_fence_and_claims_another(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    host = Host(engine, low=3, high=4)
    async with host.running():
        before, other = host.claim, 7 - host.claim.number
        engine.steal(before.number, "db7")
        engine.replace(other, Record("c" * 16, NOW + 10**12, held=True))
        await trio.sleep(HALF)
        assert host.claim == before
        assert host.take().worker == before.number
        assert host.keeper.status()["state"] == "fenced"
        engine.let_go(other)
        await trio.sleep(FULL_SECONDS[1] + 0.1)
        assert host.number == other
    [line] = [line for line in warnings(caplog) if "fenced" in line]
    assert f"worker number {before.number} of db1 was taken by db7" in line


async def test_a_clean_stop_frees_the_number_exactly(engine: Engine) -> None:
    """R5: the next host begins at the first tick that this one did not give out."""
    first, second = Host(engine, low=3, high=3), Host(engine, low=3, high=3)
    async with first.running():
        last = first.take().first
        await first.stop()
        assert first.inside.timelines.fence.kept is None
        async with second.running():
            assert second.claim.begin == last + 1
            assert second.take().first > last


async def test_a_stop_whose_state_was_not_saved_releases_nothing(engine: Engine) -> None:
    """R6: the state that stands has the claim, and the next start may go on with it."""
    host = Host(engine)
    async with host.running():
        before = dict(engine.kept)
        await host.stop(saved=False)
        assert engine.kept == before


async def test_a_number_that_a_stop_gave_up_is_not_gone_on_with(
    engine: Engine, claim: Claim
) -> None:
    """The state that is saved next must not have it, also if that takes a while after a start."""
    engine.hanging = True
    host = Host(engine, claim=claim)
    async with meanwhile(host.keeper.run):
        await trio.sleep(RESUME_SECONDS / 2)
        engine.hanging = False
        await host.keeper.prepare_stop()
        await trio.sleep(RESUME_SECONDS)
        assert host.inside.timelines.fence.kept is None


@pytest.mark.parametrize(("why", "what"), [("away", "no route"), ("broken", KeyError("kvs"))])
async def test_a_stop_while_the_engine_is_silent_keeps_the_claim(
    engine: Engine, why: str, what: object
) -> None:
    """So the next start makes Snowflakes without it."""
    host = Host(engine)
    async with host.running():
        claim = host.claim
        setattr(engine, why, what)
        await host.stop()
        assert host.inside.timelines.fence.kept == claim


async def test_a_stop_takes_three_seconds_at_most_while_the_engine_falls_silent(
    engine: Engine,
) -> None:
    """With the save, which lies between its two questions to the engine."""
    host = Host(engine)
    async with host.running():
        engine.slow = 0.99
        with trio.fail_after(3):
            await host.keeper.prepare_stop()
            # It has waited for the answer.
            assert host.inside.timelines.fence.kept is None
            await trio.sleep(0.2)
            engine.hanging = True
            await host.keeper.release(saved=True)


async def test_a_host_takes_over_the_reserved_number_that_it_had_by_hand(engine: Engine) -> None:
    engine.replace(5, Record("d" * 16, 0, held=False, reserved=True))
    host, other = Host(engine, had=5), Host(engine, low=5, high=5)
    async with other.running():
        assert (other.number, other.keeper.status()["state"]) == (None, "full")
        async with host.running():
            assert host.number == 5


class Touched(Engine):
    """An engine at which an administrator writes a register right before its first claim."""

    async def write(self, number: int, record: Record, found: Record | None) -> None:
        """See ``Registers``."""
        if self.writes == 1:
            self.replace(number, self.kept[number])
        await super().write(number, record, found)


async def test_a_host_tries_its_number_by_hand_again() -> None:
    """It does not take another one because the register was written meanwhile."""
    engine = Touched()
    engine.replace(5, Record("d" * 16, 0, held=False, reserved=True))
    host = Host(engine, had=5)
    async with host.running():
        assert host.number == 5


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (
            None,
            "the fleet is not initialised; run uuidd workers init folder:///fleet once, and with"
            " --new if no host ever had a number of it",
        ),
        # The same tick would be another Snowflake there.
        (
            replace(META, epoch=0),
            "the fleet's Snowflakes count from 0, and --epoch is 1288834974657; start uuidd with"
            " --epoch 0",
        ),
    ],
    ids=["not initialised", "of another epoch"],
)
async def test_a_fleet_without_a_number_for_this_host_names_the_way_out(
    engine: Engine, found: Meta | None, why: str
) -> None:
    """The host claims a number as soon as the administrator has gone that way."""
    engine.found = found
    host = Host(engine)
    async with host.running():
        assert host.keeper.status()["why"] == why
        assert host.number is None
        engine.found = META
        await trio.sleep(BACK)
        assert host.number is not None


async def test_a_host_makes_no_snowflake_of_another_epoch_than_its_fleet(engine: Engine) -> None:
    """Also if the fleet was made anew with that epoch while the host had a number."""
    host = Host(engine)
    async with host.running():
        engine.found = replace(META, epoch=0)
        await trio.sleep(HALF)
        assert has_no_snowflake(host)


@pytest.mark.parametrize("silent", [False, True])
async def test_a_claim_of_another_fleet_is_not_used_once_that_is_known(
    engine: Engine, claim: Claim, silent: bool
) -> None:
    """It was, while the engine was silent. In this fleet 17 may be another host's."""
    engine.steal(17)
    engine.away = "connection refused" if silent else ""
    host = Host(engine, low=17, high=17, claim=replace(claim, namespace="9" * 16))
    async with host.running():
        assert host.number == (17 if silent else None)
        engine.away = ""
        await trio.sleep(BACK)
        assert has_no_snowflake(host)
        engine.let_go(17)
        await trio.sleep(BACK)
        assert host.claim.namespace == META.id


@pytest.mark.parametrize(("number", "state"), [(None, "none"), (0, "static")])
def test_without_a_fleet_the_status_says_whether_there_is_a_number(
    number: int | None, state: str
) -> None:
    assert static_status(Fence(number))["state"] == state


async def test_a_clock_that_is_not_trusted_claims_nothing(engine: Engine) -> None:
    """It would mark a number as used up to a wrong time. The status has the words of refusals."""
    bad = Quality(synchronised=False, max_error=16.0)
    host = Host(engine, require_sync=0.5, quality=bad)
    async with host.running():
        assert engine.questions == 0
        standing = host.keeper.standing
        assert standing.state == "claiming"
        assert standing.trouble == host.inside.timelines.steady.withheld != ""


async def test_the_status_has_the_time_from_a_question_to_its_answer(engine: Engine) -> None:
    """In whole microseconds. The engine is not away any more then."""
    engine.slow = 0.25
    host = Host(engine)
    async with host.running():
        await trio.sleep(WINDOW)
        assert host.keeper.status()["round_trip_seconds"] == pytest.approx(0.25)
    standing = Host(engine).keeper.standing
    standing.away("no route")
    standing.answered(0.00123456)
    assert (standing.state, standing.trouble) == ("claiming", "")
    assert standing.status(lost=False)["round_trip_seconds"] == 0.001235


async def test_the_status_has_the_span_of_the_claim_and_the_age_of_its_renewal(
    engine: Engine,
) -> None:
    host = Host(engine)
    await trio.sleep(5)
    async with host.running():
        status, claim = host.keeper.status(), host.claim
        assert (status["begin"], status["until"]) == (claim.begin, claim.until)
        assert (status["until_in"], status["renewed_age"]) == (WINDOW - 1, 1)
        host.inside.timelines.fence.close()
        status = host.keeper.status()
        assert [status[name] for name in ("begin", "until", "until_in")] == [None] * 3


async def test_raising_asks_one_question_for_each_number(engine: Engine) -> None:
    """A large fleet is not to wait for it."""
    for number in range(META.high + 1):
        engine.replace(number, Record("c" * 16, 5, held=False))
    administrator = Administrator(engine, Holder("admin"), NOW)
    assert (await administrator.raise_all(0, cut_off=False))[0] == META.high + 1
    # And those for the namespace and for all registers.
    assert engine.questions == META.high + 1 + 2


async def test_a_host_that_the_backup_knows_keeps_its_number_through_raising(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    host = Host(engine, low=3, high=3)
    async with host.running():
        backup, first = dict(engine.kept), host.claim
        await trio.sleep(WINDOW)
        assert host.claim.until > first.until
        engine.kept = backup
        administrator = Administrator(engine, Holder("admin"), host.inside.clock.now())
        await administrator.raise_all(WINDOW * TICKS_PER_SECOND, cut_off=True)
        await trio.sleep(WINDOW)
        assert (host.claim.token, host.claim.begin) == (first.token, first.begin)
        assert host.take().worker == 3
    assert warnings(caplog) == []


def forget_registers(engine: Engine) -> None:
    """Restore a backup that was made right after the fleet was."""
    engine.kept.clear()


def forget_renewals(engine: Engine) -> None:
    """Restore a backup in which the time of each host ends a while earlier."""
    for number, found in engine.kept.items():
        engine.change(number, until=found.until - 10**9)


def has_namespace(meta: Meta | None) -> Callable[[Engine], None]:
    """Return what loses the namespace, and makes another one."""

    def change(engine: Engine) -> None:
        engine.kept.clear()
        engine.found = meta

    return change


forget_all = has_namespace(None)

LOST = (
    "the folder /fleet has lost writes, as after a restore from a backup, so worker number ",
    " is written there again; two hosts may have another number, so cut off all hosts from the"
    " engine, run uuidd workers raise folder:///fleet --worker-window 600s on its machine, with"
    " the longest window of all hosts, and then let the hosts reach the engine again",
)
GONE = (
    "the fleet of worker number ",
    " only; run uuidd workers init folder:///fleet with the options of the first time,"
    " except --new",
)
ANEW = (
    "worker number ",
    " was claimed in another fleet than the folder /fleet has now: namespace=0123456789abcdef",
)
OTHER_EPOCH = (
    "the fleet's Snowflakes count from 0, and --epoch is 1288834974657; ",
    "start uuidd with --epoch 0",
)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (forget_registers, LOST),
        (forget_renewals, LOST),
        (forget_all, GONE),
        (has_namespace(replace(META, id="9" * 16)), ANEW),
        (has_namespace(replace(META, id="9" * 16, epoch=0)), OTHER_EPOCH),
    ],
    ids=["registers", "renewals", "all", "anew", "epoch"],
)
@pytest.mark.parametrize("restarted", [False, True])
async def test_an_engine_that_forgot_is_told_of_in_one_line(
    engine: Engine,
    change: Callable[[Engine], None],
    line: tuple[str, str],
    restarted: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """All other kinds go on, before and after the host's time with its number is over."""

    async def goes_on(host: Host) -> None:
        for seconds in (HALF, WINDOW):
            assert host.take(fenced=False).count == 1
            await trio.sleep(seconds)
        assert host.take(fenced=False).count == 1

    host = Host(engine)
    async with host.running():
        change(engine)
        if not restarted:
            await goes_on(host)
    if restarted:
        host = Host(engine, claim=host.claim)
        async with host.running():
            await goes_on(host)
    [said] = warnings(caplog)
    begin, end = line
    assert (said.startswith(begin), said.endswith(end)) == (True, True), said


async def test_a_host_whose_fleet_is_gone_goes_on_until_its_time_is_over(engine: Engine) -> None:
    """And not longer; the refusal names the command that makes the fleet anew."""
    host = Host(engine)
    async with host.running():
        forget_all(engine)
        await trio.sleep(HALF)
        assert host.take().worker == host.number
        assert host.keeper.status()["namespace"] == META.id
        await trio.sleep(WINDOW)
        assert has_no_snowflake(host)
        assert host.inside.timelines.fence.why.endswith(
            "run uuidd workers init folder:///fleet with the options of the first time, except"
            " --new; all other kinds go on"
        )


@pytest.mark.parametrize("slow", [0.0, RESUME_SECONDS + 0.1])
async def test_a_restart_whose_fleet_is_gone_says_so_after_its_first_look(
    engine: Engine, claim: Claim, slow: float
) -> None:
    """Whether it goes on with its number because of the answer, or has not waited for it."""
    forget_all(engine)
    engine.slow = slow
    host = Host(engine, claim=claim)
    async with host.running():
        assert host.take().worker == 17
        assert host.keeper.status()["state"] == "away"
