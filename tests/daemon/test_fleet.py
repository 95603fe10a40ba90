"""Whole daemons that get their worker number from an engine: here, a folder."""

from __future__ import annotations

import platform
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from tests.fleet.offline import SOCKET_CALLS, offline
from tests.fleet.spans import Seen
from tests.rig import Daemon, ended, until
from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.fleet.address import Access, parse
from uuidd.fleet.record import Meta
from uuidd.fleet.registers import connect

pytestmark = pytest.mark.system


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A fleet that has one number, 3."""
    return made(tmp_path / "fleet", high=3)


def made(folder: Path, *, high: int) -> Path:
    """Return the folder of a fleet that has the numbers 3 to *high*."""

    async def make() -> None:
        async with connect(parse(f"folder://{folder}"), Access()) as engine:
            await engine.create(Meta("0123456789abcdef", TWITTER_EPOCH, 3, high), {})

    trio.run(make)
    return folder


def snowflake(daemon: Daemon) -> int:
    """Return a Snowflake, once the daemon has a number."""
    with daemon.connect() as connection:
        assert until(lambda: connection.ask("make", "snowflake")[2] is None)
        (text,) = connection.call("make", "snowflake")
    found = int(text)
    assert found >> 12 & 1023 == 3
    return found


def taken(daemon: Daemon) -> tuple[int, int, int]:
    """Return the number and the ticks of a block for Snowflakes, once there is one."""
    with daemon.connect() as connection:
        block = until(lambda: connection.ask("take", "snowflake", 100)[3])
    return block["worker"], block["first"], block["first"] + block["count"]


def test_a_clean_stop_hands_the_number_to_the_next_host(fleet: Path) -> None:
    """At once, and the next host's Snowflakes come after all of the first one's."""
    worker = f"--worker=folder://{fleet}"
    with Daemon(worker) as second:
        second.kill()
        with Daemon(worker) as first:
            last = snowflake(first)
            with first.connect() as connection:
                before = connection.call("take", "snowflake", 100)
            assert first.stop() == 0
        second.start()
        assert snowflake(second) > last
        with second.connect() as connection:
            told = connection.call("status")["worker"]
        assert told["begin"] >= before["first"] + before["count"]


def test_a_restart_goes_on_while_the_engine_is_gone(fleet: Path) -> None:
    """After a crash and after a clean stop; v7 never waits for it."""
    with Daemon(f"--worker=folder://{fleet}") as daemon:
        last = snowflake(daemon)
        fleet.rename(fleet.with_name("away"))
        daemon.kill()
        for end in (daemon.kill, daemon.stop):
            daemon.start()
            with daemon.connect() as connection:
                (text,) = connection.call("make", "snowflake")
                assert connection.call("take", "steady", 1)["count"] == 1
                # "none" once it has looked: a folder that is gone is one without a namespace.
                told = connection.call("status")["worker"]
                assert (told["number"], told["state"]) in [
                    (3, state) for state in ("resumed", "none")
                ]
            assert int(text) > last
            last = int(text)
            end()
        daemon.start()
        assert snowflake(daemon) > last


def test_daemons_with_copies_of_one_state_use_no_tick_twice(tmp_path: Path) -> None:
    """One goes on with the number, the other says in one line that it does not."""
    worker = f"--worker=folder://{made(tmp_path / 'fleet', high=4)}"
    first, copy = Daemon(worker), Daemon(worker)
    with ExitStack() as stack:
        stack.callback(copy.__exit__)
        stack.enter_context(first)
        number, _, _ = taken(first)
        first.kill()
        shutil.copytree(first.state, copy.state, dirs_exist_ok=True)
        with ThreadPoolExecutor() as threads:
            for start in [threads.submit(each.start) for each in (first, copy)]:
                start.result()
        seen = Seen()
        for _ in range(20):
            for daemon in (first, copy):
                used, begin, end = taken(daemon)
                seen.use(used, begin, end, str(daemon.pid))
        assert seen.overlaps == []
        assert len(seen.judge.spans) == 2
        fenced = [line for each in (first, copy) for line in each.lines if "fenced" in line]
    (line,) = fenced
    assert f"worker number {number} was taken by another daemon of" in line
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


@pytest.mark.skipif(platform.machine() not in SOCKET_CALLS, reason="a call without a number here")
@pytest.mark.parametrize("url", ["etcd://h1/uuidd", "zk://[::1]/uuidd", "postgresql://u@h1/ids"])
def test_a_service_without_network_says_how_to_allow_it(url: str) -> None:
    with Daemon(f"--worker={url}", wrap=offline) as daemon:
        away = until(lambda: [line for line in daemon.lines if " away: " in line])
        why = daemon.call("status")["worker"]["why"]
    assert len(away) == 1
    assert "run uuidd install-units --coordinator, systemctl daemon-reload and" in away[0]
    assert "this process may use no network: Address family not supported by protocol;" in why


@pytest.mark.skipif(platform.machine() not in SOCKET_CALLS, reason="a call without a number here")
def test_a_database_on_this_host_needs_no_network(tmp_path: Path) -> None:
    """Its Unix socket is asked also by a service without network."""
    with Daemon(f"--worker=postgresql:///ids?host={tmp_path}", wrap=offline) as daemon:
        (away,) = until(lambda: [line for line in daemon.lines if " away: " in line])
    assert f"{tmp_path}/.s.PGSQL.5432" in away


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--worker=redis://h1/0", "Redis may forget what it has confirmed"),
        ("--worker=etcd://u:geheim@h1/uuidd", "put it into a file"),
        ("--worker=5 --worker-window=10m", "--worker-window needs a URL as --worker"),
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
