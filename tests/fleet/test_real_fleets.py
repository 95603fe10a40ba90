"""Real daemons with an engine: claimed, renewed, away, back, fenced, released, wiped."""

from __future__ import annotations

import json
import platform
import shutil
import signal
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.fleet.fleets import Fleet, answered, reaches, refused, renews, take, told
from tests.fleet.offline import SOCKET_CALLS, offline
from tests.fleet.proxy import Proxy
from tests.fleet.servers import STARTED_SECONDS, Etcd, Server, real
from tests.fleet.spans import Seen
from tests.rig import Daemon, ended, until
from uuidd.cli import main
from uuidd.fleet.address import parse
from uuidd.fleet.engines import Away
from uuidd.fleet.record import Record
from uuidd.fleet.registers import connect

pytestmark = pytest.mark.process

nodes_of = pytest.mark.parametrize("engine", real("etcd", "zookeeper"), indirect=True)
in_a_folder = pytest.mark.parametrize("engine", ["folder"], indirect=True)


def test_a_clean_stop_hands_the_number_to_a_host_that_waits(engine: Server, tmp_path: Path) -> None:
    """It looks every second or two, and begins past the last tick."""
    fleet = Fleet(engine, tmp_path)
    with Daemon(*fleet.options) as first:
        _, _, end = take(first)
        with Daemon(*fleet.options) as second:
            why = reaches(second, state="full")["why"]
            assert why.startswith("no worker number of 3 to 3 is free; number 3 may be next, at ")
            assert first.stop() == 0
            assert any("released: worker=3" in line for line in first.lines)
            other, begin, _ = take(second)
            assert (other, begin >= end) == (3, True)
            assert told(second)["begin"] >= end
            assert told(second)["state"] == "held"
        first.start()


@pytest.mark.parametrize("engine", real(), indirect=True)
def test_while_the_engine_is_away_other_kinds_go_on(engine: Server, tmp_path: Path) -> None:
    """Snowflakes end at *until*, with the reason; when the engine is back they go on."""
    fleet = Fleet(engine, tmp_path)
    with Daemon(*fleet.options) as daemon:
        renews(daemon)
        _, _, end = take(daemon)
        nodes = list(engine.running)
        for node in nodes:
            engine.power_cut(node)
        try:
            reaches(daemon, state="away")
            assert "worker number 3 was reserved until" in refused(daemon)
        finally:
            for node in nodes:
                engine.start(node)
            until(engine.ready, STARTED_SECONDS)
        assert take(daemon)[1] >= end
        assert any("back: " in line for line in daemon.lines)


def test_a_host_whose_number_was_taken_claims_another(engine: Server, tmp_path: Path) -> None:
    fleet = Fleet(engine, tmp_path, 4)
    with Daemon(*fleet.options) as daemon:
        number, _, _ = take(daemon)
        fleet.steal(number)
        reaches(daemon, fenced=1, number=7 - number)
        [line] = [line for line in daemon.lines if f"fenced: worker number {number}" in line]
        assert "thief" in line


@nodes_of
def test_a_host_goes_on_while_a_minority_of_the_nodes_is_away(
    engine: Server, tmp_path: Path
) -> None:
    """Also if the leader is among them: each of three nodes is killed in turn."""
    fleet = Fleet(engine, tmp_path)
    with Daemon(*fleet.options) as daemon:
        take(daemon)
        for node in list(engine.running):
            engine.power_cut(node)
            renews(daemon)
            engine.start(node)
            until(engine.ready, STARTED_SECONDS)
        assert told(daemon)["claims"] == 1


@pytest.mark.parametrize("engine", real("etcd"), indirect=True)
def test_a_wiped_namespace_is_not_made_again(engine: Etcd, tmp_path: Path) -> None:
    fleet = Fleet(engine, tmp_path)
    path = f"{parse(fleet.url).path}/"
    with Daemon(*fleet.options) as daemon:
        take(daemon)
        engine.etcdctl("del", "--prefix", path)
        refused(daemon)
        assert engine.etcdctl("get", "--prefix", path) == ""


def test_the_command_changes_the_numbers(
    engine: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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


@nodes_of
def test_without_a_majority_nothing_is_confirmed(engine: Server, tmp_path: Path) -> None:
    """A write is done later or never; the register tells, and the next one replaces it."""
    fleet = Fleet(engine, tmp_path)
    record, other, last = (
        Record(token * 16, ticks, held=True)
        for token, ticks in (("1", 100), ("2", 200), ("3", 300))
    )

    def tell_minority(what: signal.Signals) -> None:
        for process in list(engine.running.values())[1:]:
            process.send_signal(what)

    async def write() -> None:
        async with fleet.connect() as registers:
            await registers.meta()
            await registers.write(3, record, None)
            written = await registers.read(3)
            tell_minority(signal.SIGSTOP)
            try:
                with pytest.raises(Away):
                    await registers.write(3, other, written)
                with pytest.raises(Away):
                    await registers.read(3)
            finally:
                tell_minority(signal.SIGCONT)

            async def replaced() -> Record | None:
                found = await registers.read(3)
                assert found is not None
                assert found in (record, other, last)
                if found != last:
                    # Changed if the write from before is done only now.
                    await registers.write(3, last, found)
                return await registers.read(3)

            assert await answered(replaced) == last

    trio.run(write)


@pytest.mark.parametrize("engine", real(), indirect=True)
def test_an_engine_that_was_started_again_while_a_host_rests_is_not_away(
    engine: Server, tmp_path: Path
) -> None:
    """There are minutes between two renewals."""
    fleet = Fleet(engine, tmp_path)

    async def ask() -> None:
        async with fleet.connect() as registers:
            meta = await registers.meta()
            registers.rest()
            nodes = list(engine.running)
            for node in nodes:
                engine.power_cut(node)
            for node in nodes:
                engine.start(node)
            await trio.to_thread.run_sync(until, engine.ready, STARTED_SECONDS)
            assert await registers.meta() == meta

    trio.run(ask)


@pytest.mark.parametrize("engine", real("zookeeper"), indirect=True)
def test_a_first_connection_may_take_longer_than_a_question(engine: Server, tmp_path: Path) -> None:
    """The next question goes on with it, and does not begin a new one."""
    address = parse(Fleet(engine, tmp_path).url)

    async def ask() -> None:
        async with trio.open_nursery() as nursery:
            proxy = Proxy([address.hosts[0][1]])
            await nursery.start(proxy.run)
            proxy.hold()
            held = replace(address, hosts=(("127.0.0.1", proxy.ports[0]),))
            async with connect(held) as registers:
                with pytest.raises(Away, match=r"^no connection within "):
                    await registers.meta()
                proxy.deliver()
                assert await registers.meta() is not None
            assert proxy.connections == 1
            nursery.cancel_scope.cancel()

    trio.run(ask)


@pytest.mark.parametrize("engine", real("postgresql"), indirect=True)
def test_a_host_of_postgresql_that_hangs_is_asked_no_more(engine: Server, tmp_path: Path) -> None:
    """Each question would wait for it. Beside two of them none would be answered in time."""
    address = Fleet(engine, tmp_path).address

    async def ask() -> None:
        async with trio.open_nursery() as nursery:
            proxy = Proxy([address.hosts[0][1]])
            await nursery.start(proxy.run)
            proxy.hold()
            hosts = (("127.0.0.1", proxy.ports[0]), *address.hosts)
            async with connect(replace(address, hosts=hosts)) as registers:
                for _ in range(2):
                    assert await registers.meta() is not None
                    registers.rest()
            assert proxy.connections == 1
            nursery.cancel_scope.cancel()

    trio.run(ask)


@in_a_folder
def test_a_restart_goes_on_while_the_engine_is_gone(engine: Server, tmp_path: Path) -> None:
    """After a crash and after a clean stop; v7 never waits for it."""
    fleet = Fleet(engine, tmp_path)
    with Daemon(f"--worker={fleet.url}") as daemon:
        _, _, end = take(daemon)
        path = Path(parse(fleet.url).path)
        path.rename(path.with_name("away"))
        daemon.kill()
        for leave in (daemon.kill, daemon.stop):
            daemon.start()
            # A start that was held up may have gone on with its number before it looked.
            assert " is gone from the folder " in reaches(daemon, state="away")["why"]
            before = end
            number, begin, end = take(daemon)
            assert (number, begin >= before) == (3, True)
            assert daemon.call("take", "steady", 1)["count"] == 1
            leave()
        daemon.start()
        assert take(daemon)[1] >= end


@in_a_folder
def test_daemons_with_copies_of_one_state_use_no_tick_twice(engine: Server, tmp_path: Path) -> None:
    """One goes on with the number, the other says in one line that it does not."""
    worker = f"--worker={Fleet(engine, tmp_path, 4).url}"
    first, copy = Daemon(worker), Daemon(worker)
    seen = Seen()
    with ExitStack() as stack:
        stack.callback(copy.__exit__)
        stack.enter_context(first)
        number, _, _ = take(first)
        first.kill()
        shutil.copytree(first.state, copy.state, dirs_exist_ok=True)
        for daemon in (first, copy):
            daemon.start()
        for _ in range(20):
            for daemon in (first, copy):
                seen.use(*take(daemon), str(daemon.pid))
        (line,) = [line for each in (first, copy) for line in each.lines if "fenced" in line]
    assert seen.overlaps == []
    assert len(seen.judge.spans) == 2
    assert f"worker number {number} of " in line
    assert " was taken by another daemon of " in line
    assert "a copy of this state" in line


def test_snowflakes_refused_in_a_fleet_are_logged_without_advice_that_was_followed(
    tmp_path: Path,
) -> None:
    """The daemon has the option --worker already, and no number only for now."""
    with Daemon(f"--worker=folder://{tmp_path}/none") as daemon:
        with daemon.connect() as connection:
            _, _, error, _ = connection.ask("make", "snowflake")
        assert error.startswith("no_worker_id: ")
        assert daemon.stop() == 0
    (line,) = [line for line in daemon.lines if "refused within" in line]
    assert line.endswith(
        ": 1 request for Snowflakes while there was no worker number (no_worker_id)"
    )


NO_NETWORK = (
    "this process may use no network: Address family not supported by protocol; if it is the"
    " service, run uuidd install-units --coordinator, systemctl daemon-reload and systemctl restart"
    " uuidd.service"
)


@pytest.mark.skipif(platform.machine() not in SOCKET_CALLS, reason="a call without a number here")
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("etcd://h1/uuidd", NO_NETWORK),
        ("zk://[::1]/uuidd", NO_NETWORK),
        ("postgresql://u@h1/ids", NO_NETWORK),
        # Its Unix socket is asked.
        ("postgresql:///ids?host=/none", "/none/.s.PGSQL.5432"),
    ],
)
def test_a_service_without_network_says_how_to_allow_it(url: str, words: str) -> None:
    with Daemon(f"--worker={url}", wrap=offline) as daemon:
        (away,) = until(lambda: [line for line in daemon.lines if " away: " in line])
        assert words in told(daemon)["why"]
    assert words in away


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--worker=etcd://u:geheim@h1/uuidd", "put it into a file"),
        ("--worker=folder:///tmp/x --worker-window=10", "'10' is not a span above 0 and up to 30d"),
        (
            "--worker=folder:///tmp/x --worker-window=10m --worker-hold=4m",
            "--worker-hold 240s is less than half of --worker-window 600s",
        ),
    ],
)
def test_a_fleet_that_cannot_be_asked_is_refused_in_one_line(options: str, words: str) -> None:
    """As a start is, and as ``--check`` says; a password is never shown."""
    status, out, err = ended(*options.split(), "--check", "--no-pid", "-s", "/tmp/none")
    assert status == 1
    assert words in out + err
    assert "geheim" not in out + err
