"""Real daemons with a real engine: claimed, renewed, away, back, fenced, released, wiped."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.fleet.fleets import SECONDS, Fleet, answered, reaches, renews, take, told
from tests.fleet.proxy import Proxy
from tests.fleet.servers import KINDS, AnyEngine, Etcd, power_cut, running
from tests.rig import Daemon, until
from uuidd.cli import main
from uuidd.fleet.address import Access, parse
from uuidd.fleet.engines import Away
from uuidd.fleet.record import Found, Record
from uuidd.fleet.registers import connect

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module", params=KINDS)
def engine(request: pytest.FixtureRequest) -> Iterator[AnyEngine]:
    """A real engine that runs."""
    with running(KINDS[request.param]) as engine:
        yield engine


def test_a_clean_stop_hands_the_number_to_a_host_that_waits(
    engine: AnyEngine, tmp_path: Path
) -> None:
    """It is told, long before it would look itself, and begins past the last tick."""
    fleet = Fleet(engine, tmp_path, 3)
    with Daemon(*fleet.options) as first:
        _, _, end = take(first)
        with Daemon(*fleet.options) as second:
            why = reaches(second, "full")["why"]
            assert why.startswith("no worker number of 3 to 3 is free; number 3 may be next, at ")
            assert first.stop() == 0
            assert any("released: worker=3" in line for line in first.lines)
            other, begin, _ = take(second)
            assert (other, begin >= end) == (3, True)
            assert told(second)["begin"] >= end
            assert told(second)["state"] == "held"
        first.start()


def test_while_the_engine_is_away_other_kinds_go_on(engine: AnyEngine, tmp_path: Path) -> None:
    """Snowflakes end at *until*, with the reason; when the engine is back they go on."""
    fleet = Fleet(engine, tmp_path, 3)
    with Daemon(*fleet.options) as daemon:
        renews(daemon)
        _, _, end = take(daemon)
        nodes = list(engine.nodes.running)
        for node in nodes:
            power_cut(engine, node)
        try:
            reaches(daemon, "away")
            with daemon.connect() as connection:
                until(lambda: connection.ask("take", "snowflake", 1)[2] is not None, SECONDS)
                assert "worker number 3 was reserved until" in str(
                    until(lambda: connection.ask("take", "snowflake", 1)[2], SECONDS)
                )
                assert connection.call("take", "steady", 1)["count"] == 1
        finally:
            for node in nodes:
                engine.start(node)
            until(engine.ready, 60)
        assert take(daemon)[1] >= end
        assert any("back: " in line for line in daemon.lines)


def test_a_host_whose_number_was_taken_claims_another(engine: AnyEngine, tmp_path: Path) -> None:
    fleet = Fleet(engine, tmp_path, 4)
    with Daemon(*fleet.options) as daemon:
        number, _, _ = take(daemon)
        fleet.steal(number)
        until(lambda: told(daemon)["fenced"] == 1, SECONDS, instead=lambda: daemon.lines)
        until(lambda: told(daemon)["number"] == 7 - number, SECONDS, instead=lambda: daemon.lines)
        assert any(f"fenced: worker number {number}" in line for line in daemon.lines)
        assert any("thief" in line for line in daemon.lines)


@pytest.mark.parametrize("engine", ["etcd", "zookeeper"], indirect=True)
def test_a_host_goes_on_while_a_minority_of_the_nodes_is_away(
    engine: AnyEngine, tmp_path: Path
) -> None:
    """Also if the leader is among them: each of three nodes is killed in turn."""
    fleet = Fleet(engine, tmp_path, 3)
    with Daemon(*fleet.options) as daemon:
        take(daemon)
        for node in list(engine.nodes.running):
            power_cut(engine, node)
            renews(daemon)
            engine.start(node)
            until(engine.ready, 60)
        assert told(daemon)["claims"] == 1


@pytest.mark.parametrize("engine", ["etcd"], indirect=True)
def test_a_wiped_namespace_is_not_made_again(engine: AnyEngine, tmp_path: Path) -> None:
    assert isinstance(engine, Etcd)
    fleet = Fleet(engine, tmp_path, 3)
    with Daemon(*fleet.options) as daemon:
        take(daemon)
        engine.wipe(fleet.namespace)
        with daemon.connect() as connection:
            until(lambda: connection.ask("take", "snowflake", 1)[2], SECONDS)
        assert engine.etcdctl("get", "--prefix", f"/{fleet.namespace}/") == ""


def test_the_command_changes_the_numbers(
    engine: AnyEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = Fleet(engine, tmp_path, 30)

    def says(command: str, *words: str) -> str:
        assert main(["workers", command, fleet.url, *words, *fleet.access_options]) == 0
        return capsys.readouterr().out

    says("reserve", "3-7")
    says("free", "5", "--yes")
    assert "raised 28 numbers; none begins before " in says("raise", "--worker-window", "1h")
    rows = json.loads(says("list", "--json"))["numbers"]
    assert [row["number"] for row in rows] == list(range(3, 31))
    assert [row["number"] for row in rows if row["state"] == "reserved"] == [3, 4, 6, 7]
    assert all(row["until_in"] > 3000 for row in rows)


@pytest.mark.parametrize("engine", ["etcd", "zookeeper"], indirect=True)
def test_without_a_majority_nothing_is_confirmed(engine: AnyEngine, tmp_path: Path) -> None:
    """A write is done later or never; the register tells, and the next one replaces it."""
    fleet = Fleet(engine, tmp_path, 3)
    stopped = list(engine.nodes.running)[1:]

    async def write() -> None:
        record = Record("1" * 16, 100, held=True)
        other = replace(record, claim="2" * 16, until=200)
        async with fleet.connect() as coordinator:
            await coordinator.meta()
            written = await coordinator.write(3, record, None)
            for node in stopped:
                engine.nodes.signal(node, signal.SIGSTOP)
            try:
                with pytest.raises(Away):
                    await coordinator.write(3, other, written)
                with pytest.raises(Away):
                    await coordinator.read(3)
            finally:
                for node in stopped:
                    engine.nodes.signal(node, signal.SIGCONT)
            last = replace(record, claim="3" * 16, until=300)

            async def replaced() -> Found | None:
                found = await coordinator.read(3)
                assert found is not None
                assert found.record in (record, other, last)
                if found.record != last:
                    # Changed if the write from before is done only now.
                    await coordinator.write(3, last, found)
                return await coordinator.read(3)

            found = await answered(replaced)
            assert found is not None
            assert found.record == last

    trio.run(write)


@pytest.mark.parametrize("engine", ["zookeeper"], indirect=True)
def test_a_first_connection_may_take_longer_than_a_question(
    engine: AnyEngine, tmp_path: Path
) -> None:
    """The next question goes on with it, and does not begin a new one."""
    fleet = Fleet(engine, tmp_path, 3)

    async def ask() -> None:
        async with trio.open_nursery() as nursery:
            proxy = Proxy([port for _, port in parse(fleet.url).hosts][:1])
            await nursery.start(proxy.run)
            proxy.hold()
            url = f"zk://127.0.0.1:{proxy.ports[0]}/{fleet.namespace}"
            async with connect(parse(url), Access()) as registers:
                with pytest.raises(Away, match=r"^no connection within "):
                    await registers.meta()
                proxy.deliver()
                assert await registers.meta() is not None
            assert proxy.connections == 1
            nursery.cancel_scope.cancel()

    trio.run(ask)
