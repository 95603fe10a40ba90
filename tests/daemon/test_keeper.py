"""A host's worker number in a fleet: claimed, renewed, away, fenced, and let go."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import UID, Inside, awaited
from tests.daemon.fleet import HOLD, META, WINDOW, Engine, Host
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import Claim, Fence
from uuidd.core.timeline.outcomes import NoneFree, NoNumber
from uuidd.core.timeline.state import Node, State
from uuidd.core.wire.methods import SAVE_SECONDS as SAVE_WAIT
from uuidd.core.wire.methods import RefusedError
from uuidd.fleet.fences import begin_fence
from uuidd.fleet.keeper import POLL_SECONDS, RESUME_SECONDS, SAVE_SECONDS, SPREAD, TRIES
from uuidd.fleet.record import Found, Record
from uuidd.fleet.standing import static_status
from uuidd.server.trust import Quality

pytestmark = pytest.mark.usefixtures("autojump_clock")


@pytest.fixture
def engine() -> Engine:
    """An initialised fleet without a host."""
    return Engine()


def register(engine: Engine, host: Host) -> Record:
    """Return what the engine has of the host's number."""
    return engine.kept[host.claim.number].record


async def test_a_new_host_claims_a_number(engine: Engine, autojump_clock: MockClock) -> None:
    """The register has its claim, and Snowflakes can be made up to what was written there."""
    host = Host(engine)
    async with host.running():
        assert host.take().worker == host.number
        record = register(engine, host)
        assert (record.claim, record.until) == (host.claim.token, host.claim.until)
        assert (record.host, record.held) == ("db1", True)
        assert host.saves > 0


async def test_a_request_for_snowflakes_waits_for_the_claim(engine: Engine) -> None:
    """It is answered as soon as the host has a number."""
    host = Host(engine)
    host.saving = trio.Event()
    async with host.inside.saving(), trio.open_nursery() as nursery:
        nursery.start_soon(host.keeper.run)

        async def claimed() -> None:
            await trio.sleep(SAVE_WAIT / 2)
            assert host.saving is not None
            host.saving.set()

        nursery.start_soon(claimed)
        block = await awaited(host.inside.allocator.take("snowflake", 1, False, uid=UID))
        assert block.worker == host.number  # type: ignore[union-attr]
        assert trio.current_time() == pytest.approx(SAVE_WAIT / 2)
        nursery.cancel_scope.cancel()


async def test_a_number_is_used_once_the_state_holds_the_claim(engine: Engine) -> None:
    """So a host that made a Snowflake makes more after a crash, while the engine is down."""
    host = Host(engine)
    host.saving = trio.Event()
    async with host.running():
        (number,) = engine.kept
        assert isinstance(host.kept, Claim)
        assert host.kept.number == number
        assert host.number is None
        host.saving.set()
        await trio.sleep(1)
        assert host.take().worker == number


async def test_a_disk_that_hangs_holds_no_number_back_for_long(engine: Engine) -> None:
    """Snowflakes then wait for the horizon, as all kinds do."""
    host = Host(engine)
    host.saving = trio.Event()
    async with host.running():
        await trio.sleep(SAVE_SECONDS)
        assert host.take().worker == host.number


async def test_a_stop_before_the_claim_is_saved_lets_the_number_go(engine: Engine) -> None:
    """Nothing was made with it."""
    host = Host(engine)
    host.saving = trio.Event()
    async with host.running():
        await host.stop()
        (found,) = engine.kept.values()
        assert not found.record.held


async def test_hosts_that_begin_at_the_same_place_get_different_numbers(engine: Engine) -> None:
    """The one that comes second tries the next."""
    first, second = Host(engine), Host(engine)
    async with first.running(), second.running():
        assert first.number != second.number


class Outrun(Engine):
    """An engine at which others are faster, until they have TRIES numbers."""

    async def write(self, number: int, record: Record, found: Found | None) -> Found:
        """See ``Registers``."""
        if len(self.kept) < TRIES:
            self.replace(number, replace(record, claim="f" * 16, host=f"other{number}"))
        return await super().write(number, record, found)


async def test_a_host_that_others_outran_looks_again_soon() -> None:
    """Each number that it tried is another's by now. It does not take the others for used."""
    engine = Outrun()
    host = Host(engine)
    async with host.running():
        assert len(engine.kept) == TRIES + 1
        assert host.number in engine.kept
        assert engine.looks == 0


async def test_a_claim_begins_where_the_record_before_it_ends(engine: Engine) -> None:
    """R1: also if that lies ahead of this host's clock; it waits then."""
    ahead = Inside().clock.now() + 5 * TICKS_PER_SECOND
    engine.kept[3] = Found(Record("a" * 16, ahead, held=False), 1)
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
    """Not long before; the fence then moves to what was written."""
    host = Host(engine)
    async with host.running():
        before, questions = host.claim.until, engine.questions
        early = WINDOW / SPREAD
        await trio.sleep(WINDOW / 2 - early - 10)
        assert engine.questions == questions
        await trio.sleep(early + 20)
        assert host.claim.until > before
        assert host.claim.until == register(engine, host).until


async def test_hosts_that_started_together_renew_apart(engine: Engine) -> None:
    """So that a fleet does not ask all at once, for ever."""
    hosts = [Host(engine, f"db{seed}", seed=seed) for seed in range(8)]
    async with trio.open_nursery() as nursery:
        for host in hosts:
            nursery.start_soon(host.keeper.run)
        await trio.sleep(1)
        first = {host.name: host.claim.until for host in hosts}
        await trio.sleep(WINDOW / 2 - WINDOW / SPREAD / 2)
        renewed = [host.claim.until > first[host.name] for host in hosts]
        nursery.cancel_scope.cancel()
    assert set(renewed) == {True, False}


async def test_an_error_of_an_engines_library_is_one_without_an_answer(engine: Engine) -> None:
    """The daemon goes on, asks again, and says what it was on one line."""
    engine.broken = KeyError("mod_revision")
    host = Host(engine)
    async with host.running():
        assert host.keeper.standing.trouble == (
            "the folder /fleet does not answer (KeyError: 'mod_revision')"
        )
        engine.broken = None
        await trio.sleep(6)
        assert host.take().worker == host.number


async def test_a_stop_goes_on_after_an_error_of_an_engines_library(engine: Engine) -> None:
    """The claim stays in the state, for the next start."""
    host = Host(engine)
    async with host.running():
        claim = host.claim
        engine.broken = KeyError("mod_revision")
        await host.keeper.prepare_stop()
        await host.keeper.release(saved=True)
        assert host.claim == claim


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
        with pytest.raises(NoNumber):
            host.take()
        assert host.take(fenced=False).worker is None
        why = host.inside.timelines.fence.why
        assert why.startswith(f"worker number {host.number} was reserved until ")
        assert why.endswith(
            "and the folder /fleet does not answer (connection refused); all other kinds go on"
        )
        engine.away = ""
        await trio.sleep(6)
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
            await trio.sleep(6)
    said = [record.getMessage().split(":")[0] for record in caplog.records]
    assert said == ["away", "away", "away", "back"] * 2


def before_restart(engine: Engine, number: int = 17) -> Claim:
    """Return a claim that the engine has, as a state holds it: of a while ago, and for a while."""
    now = Inside().clock.now()
    claim = Claim(META.id, number, "b" * 16, now - 10**9, now + 100 * TICKS_PER_SECOND)
    engine.kept[number] = Found(Record(claim.token, claim.until, held=True, host="db1"), 1)
    return claim


async def test_a_restart_goes_on_while_the_engine_is_silent(engine: Engine) -> None:
    """R4: at once, and up to the stored end only."""
    claim = before_restart(engine)
    engine.away = "connection refused"
    host = Host(engine, claim=claim)
    async with host.running():
        assert host.take().worker == 17
        assert host.claim.until == claim.until


def test_the_claim_of_a_state_waits_for_the_engine() -> None:
    """It is kept for the next save meanwhile."""
    claim = Claim(META.id, 17, "b" * 16, 0, 10**18)
    state = State(Node(1, "random"), "here", 0, {}, 0, 500, worker=claim)
    fence = begin_fence(state, None, in_fleet=True)
    assert (fence.number, fence.kept) == (None, claim.resumed(state.steady))


async def test_a_restart_goes_on_before_a_request_ends_if_the_engine_hangs(
    engine: Engine,
) -> None:
    """It waits for a confirmation first, for a copy of its state may ask for it too."""
    claim = before_restart(engine)
    engine.hanging = True
    host = Host(engine, claim=claim)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(host.keeper.run)
        await trio.sleep(RESUME_SECONDS - 0.01)
        with pytest.raises(NoNumber):
            host.take()
        with trio.fail_after(SAVE_WAIT - RESUME_SECONDS):
            await host.keeper.renewed()
        assert host.take().worker == 17
        nursery.cancel_scope.cancel()


async def test_a_restart_confirms_its_claim_under_a_new_token(engine: Engine) -> None:
    """So a copy of its state cannot go on with it, too."""
    claim = before_restart(engine)
    host = Host(engine, claim=claim)
    async with host.running():
        assert host.number == 17
        assert host.claim.token == register(engine, host).claim != claim.token
        assert host.claim.begin == claim.begin


async def test_a_copy_of_a_state_takes_another_number(engine: Engine) -> None:
    """The one whose write comes second is fenced."""
    claim = before_restart(engine)
    first, second = Host(engine, claim=claim), Host(engine, "copy", claim=claim)
    async with first.running(), second.running():
        assert first.number == 17
        assert second.number != 17
        assert second.keeper.status()["fenced"] == 1


async def test_a_copy_of_a_state_that_comes_second_makes_no_snowflakes_with_its_number(
    engine: Engine,
) -> None:
    """The one that came first goes on from where both began."""
    claim = before_restart(engine)
    first, second = Host(engine, claim=claim), Host(engine, "copy", low=17, high=17, claim=claim)
    async with first.running(), second.running():
        assert first.take().worker == 17
        assert second.number is None
        with pytest.raises(NoNumber):
            second.take()


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


async def test_a_lost_answer_to_a_renewal_does_not_move_the_fence(engine: Engine) -> None:
    """R3: the register may be ahead, and is confirmed by the next write."""
    host = Host(engine)
    async with host.running():
        before = host.claim.until
        engine.losing = True
        await trio.sleep(WINDOW / 2 + 10)
        assert register(engine, host).until > before == host.claim.until
        engine.losing = False
        await trio.sleep(10)
        assert host.claim.until == register(engine, host).until > before


async def test_a_fenced_host_uses_its_number_up_to_the_fence_and_claims_another(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """Both hosts are named in the log."""
    host = Host(engine, low=3, high=4)
    async with host.running():
        before = host.claim
        engine.steal(before.number, "db7")
        engine.kept[7 - before.number] = Found(
            Record("c" * 16, host.inside.clock.now() + 10**12, held=True), 1
        )
        await trio.sleep(WINDOW / 2 + 10)
        assert host.claim == before
        assert host.take().worker == before.number
        assert host.keeper.status()["state"] == "fenced"
        other = engine.kept[7 - before.number]
        released = replace(other.record, until=0, held=False)
        await engine.write(7 - before.number, released, other)
        await trio.sleep(POLL_SECONDS[1] + 0.1)
        assert host.number == 7 - before.number
    [line] = [record.getMessage() for record in caplog.records if "fenced" in record.getMessage()]
    assert f"worker number {before.number} of db1 was taken by db7" in line


async def test_an_engine_that_lost_a_renewal_is_written_again(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a restore from a backup."""
    host = Host(engine)
    async with host.running():
        old = replace(register(engine, host), until=host.claim.until - 10**9)
        engine.kept[host.claim.number] = Found(old, "restored")
        await trio.sleep(WINDOW / 2 + 10)
        assert register(engine, host).until == host.claim.until
    assert "has lost writes" in caplog.text


async def test_a_clean_stop_frees_the_number_exactly(engine: Engine) -> None:
    """R5: the next host begins at the first tick that this one did not give out."""
    first, second = Host(engine, low=3, high=3), Host(engine, "db2", low=3, high=3)
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
        before = register(engine, host)
        await host.stop(saved=False)
        assert [found.record for found in engine.kept.values()] == [before]


async def test_a_stop_while_the_engine_is_silent_keeps_the_claim(engine: Engine) -> None:
    """So the next start makes Snowflakes without it."""
    host = Host(engine)
    async with host.running():
        claim = host.claim
        engine.away = "connection refused"
        await host.stop()
        assert host.inside.timelines.fence.kept == claim


async def test_a_host_takes_over_the_reserved_number_that_it_had_by_hand(engine: Engine) -> None:
    """Nobody else takes a reserved one."""
    engine.kept[5] = Found(Record("d" * 16, 0, held=False, reserved=True), 1)
    host, other = Host(engine, had=5), Host(engine, "db2", low=5, high=5)
    async with other.running():
        assert other.number is None
        assert other.keeper.status()["state"] == "full"
        async with host.running():
            assert host.number == 5


async def test_a_silent_holders_number_is_free_after_the_hold(engine: Engine) -> None:
    """Not before."""
    crashed, host = Host(engine, low=3, high=3), Host(engine, "db2", low=3, high=3)
    async with crashed.running():
        until = crashed.claim.until
    async with host.running():
        await trio.sleep(WINDOW + HOLD - 10)
        assert host.number is None
        await trio.sleep(40)
        assert host.claim.begin == until


async def test_a_number_used_by_a_wrong_clock_is_left_to_itself(engine: Engine) -> None:
    """A clock years ahead costs the fleet one number."""
    years = Inside().clock.now() + 10**15
    engine.kept[3] = Found(Record("e" * 16, years, held=False), 1)
    host = Host(engine, low=3, high=3)
    async with host.running():
        assert host.number is None
        assert host.inside.timelines.fence.why.startswith("no worker number of 3 to 3 is free")


async def test_a_fleet_that_is_not_initialised_is_named(engine: Engine) -> None:
    """With the command that does it; the host claims as soon as it was done."""
    engine.found = None
    host = Host(engine)
    async with host.running():
        assert host.keeper.status()["why"] == (
            "the fleet is not initialised; run uuidd workers init folder:///fleet once, and with"
            " --new if no host ever had a number of it"
        )
        engine.found = META
        await trio.sleep(6)
        assert host.number is not None


async def test_a_fleet_of_another_epoch_gives_no_number(engine: Engine) -> None:
    """The same tick would be another Snowflake there."""
    engine.found = replace(META, epoch=0)
    host = Host(engine)
    async with host.running():
        assert host.number is None
        assert host.keeper.status()["why"].endswith("start uuidd with --epoch 0")


async def test_a_claim_of_another_fleet_is_not_used_once_that_is_known(engine: Engine) -> None:
    """The URL was changed between two starts."""
    claim = replace(before_restart(engine), namespace="9" * 16)
    host = Host(engine, claim=claim)
    async with host.running():
        assert host.claim.namespace == META.id
        assert host.number != 17


async def test_a_claim_of_another_fleet_is_not_used_while_this_one_is_full(engine: Engine) -> None:
    """It was, while the engine was silent. In this fleet 17 may be another host's."""
    claim = replace(before_restart(engine), namespace="9" * 16)
    host = Host(engine, low=17, high=17, claim=claim)
    engine.steal(17)
    engine.away = "connection refused"
    async with host.running():
        assert host.take().worker == 17
        engine.away = ""
        await trio.sleep(6)
        with pytest.raises(NoNumber):
            host.take()


async def test_the_status_has_the_round_trip_in_whole_microseconds(engine: Engine) -> None:
    """It is rounded."""
    standing = Host(engine).keeper.standing
    standing.answered(0.00123456)
    assert standing.status(None, fenced=False)["round_trip_seconds"] == 0.001235


async def test_a_round_trip_is_the_time_from_a_question_to_its_answer(engine: Engine) -> None:
    """Whenever it is asked."""
    engine.slow = 0.25
    host = Host(engine)
    async with host.running():
        await trio.sleep(WINDOW)
        status = host.keeper.standing.status(None, fenced=False)
        assert status["round_trip_seconds"] == pytest.approx(0.25)


async def test_a_host_without_a_number_claims_one_once_the_engine_answers(engine: Engine) -> None:
    """It is not away any more."""
    standing = Host(engine).keeper.standing
    standing.away("no route")
    standing.answered(0.1)
    assert (standing.state, standing.trouble) == ("claiming", "")


@pytest.mark.parametrize(("number", "state"), [(None, "none"), (0, "static")])
def test_without_a_fleet_the_status_says_whether_there_is_a_number(
    number: int | None, state: str
) -> None:
    """The number 0 is one."""
    assert static_status(Fence(number))["state"] == state


async def test_the_status_says_why_a_clock_that_is_not_trusted_claims_nothing(
    engine: Engine,
) -> None:
    """In the words of the refusals."""
    host = Host(engine, require_sync=0.5, quality=Quality(synchronised=False, max_error=16.0))
    async with host.running():
        standing = host.keeper.standing
        assert standing.state == "claiming"
        assert standing.trouble == host.inside.timelines.steady.withheld != ""


async def test_nothing_is_claimed_by_a_clock_that_is_not_trusted(engine: Engine) -> None:
    """It would mark a number as used up to a wrong time."""
    bad = Quality(synchronised=False, max_error=16.0)
    host = Host(engine, require_sync=0.5, quality=bad)
    async with host.running():
        assert engine.questions == 0
