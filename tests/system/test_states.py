"""A state that is not where or what the daemon left: nothing comes twice, and all is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.judge import assert_no_id_twice
from tests.rig import Daemon, until
from tests.system.callers import OF_STEADY, Callers, under_load
from tests.system.fake_time import FakeTime
from tests.system.far import far_reaching
from tests.system.holders import await_leases, leases
from uuidd.statefile import FORMAT, machine_hash


def signed(body: bytes, version: int = FORMAT) -> bytes:
    return f"uuidd-state {version} sha256:{hashlib.sha256(body).hexdigest()}\n".encode() + body


def of_another_host(state: bytes) -> bytes:
    body = json.loads(state.partition(b"\n")[2])
    assert body["machine"] == machine_hash()
    return signed(json.dumps({**body, "machine": "0" * 64}).encode())


OTHER_FILES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda state: b"", "it is damaged"),
    "torn": (lambda state: state[: len(state) // 2], "it is damaged"),
    "of another host": (of_another_host, "it is of another host"),
    "newer": (lambda state: signed(state.partition(b"\n")[2], FORMAT + 1), "it has format "),
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_a_daemon_sets_aside_what_it_cannot_use(
    daemon: Daemon, fake_time: FakeTime, name: str
) -> None:
    change, cause = OTHER_FILES[name]
    callers = Callers(daemon, ahead=lambda: 60)
    callers.draw()
    callers.hang_up()
    # One way or the other: both are ends.
    (daemon.kill if name in ("empty", "newer") else daemon.stop)()
    path = daemon.state / "state"
    changed = change(path.read_bytes())
    path.write_bytes(changed)
    daemon.start()
    assert (daemon.state / "state.unusable-1").read_bytes() == changed
    (line,) = [line for line in daemon.lines if "ERROR: the state could not be used" in line]
    assert cause in line
    assert "set aside as state.unusable-1" in line
    callers.draw()
    assert len(callers.nodes) == 2
    for refused in callers.refused:
        assert refused.startswith("unavailable: the state was lost, so the steady kinds begin in ")
    assert len(callers.refused) == len(OF_STEADY)
    fake_time.set(21)

    def are_served() -> bool:
        before = len(callers.refused)
        callers.draw()
        return len(callers.refused) == before

    # Our client repeats the refusal for a quarter of a second before it asks again.
    until(are_served)
    callers.hang_up()
    assert callers.refused_to.keys() == set(OF_STEADY)
    assert all(len({*refused}) == 1 for refused in callers.refused_to.values())
    callers.assert_sound()


@pytest.mark.parametrize("end", [Daemon.kill, Daemon.stop])
def test_an_older_state_of_the_same_host_repeats_nothing_while_utc_goes_on(
    daemon: Daemon, fake_time: FakeTime, end: Callable[[Daemon], object]
) -> None:
    """A backup that is put back knows less, and what it does not know of lies before now."""
    callers = Callers(daemon, ahead=lambda: 60)
    backups: list[bytes] = []
    for seconds in range(1, 5):
        backups.append((daemon.state / "state").read_bytes())
        callers.take_wide()
        callers.draw(3)
        callers.hang_up()
        end(daemon)
        (daemon.state / "state").write_bytes(backups[len(backups) // 2])
        # Past what steady was ahead by.
        fake_time.set(seconds)
        daemon.start()
    callers.draw(3)
    callers.take_wide()
    callers.hang_up()
    callers.assert_sound()
    assert not callers.refused
    assert len(callers.nodes) == 1
    assert not [path for path in daemon.state.iterdir() if "unusable" in path.name]


def emptied(daemon: Daemon) -> None:
    daemon.kill()
    for file in daemon.state.iterdir():
        file.unlink()


@pytest.fixture
def numbered(fake_time: FakeTime) -> Iterator[Daemon]:
    with far_reaching(20, "--worker=5", environment=fake_time.environment) as daemon:
        yield daemon


def test_an_emptied_state_folder_repeats_no_snowflake(
    numbered: Daemon, fake_time: FakeTime
) -> None:
    """They were made ahead of UTC, because the daemon had crashed; the next start waits for it."""
    numbered.kill()
    numbered.start()
    before = numbered.call("make", "snowflake", 1000)
    emptied(numbered)
    seen = len(numbered.lines)
    numbered.start()
    with numbered.connect() as connection:
        _, _, error, _ = connection.ask("make", "snowflake", 1)
    assert error.startswith("unavailable: the state was lost")
    (told,) = [line for line in numbered.lines[seen:] if "ERROR" in line]
    assert told.endswith(
        f"there is no state in {numbered.state}, so a new one is made:"
        f" {numbered.socket}.used shows that ids were made here before"
    )
    fake_time.set(21)
    assert min(numbered.call("make", "snowflake", 1000)) > max(before)


def moved(daemon: Daemon) -> Path:
    away = daemon.state.with_name("away")
    daemon.state.rename(away)
    daemon.state.mkdir()
    return away


def in_its_place(daemon: Daemon) -> Daemon:
    """Return another daemon, with another socket, whose state folder is at the same path."""
    second = Daemon("--worker=5")
    second.state.rmdir()
    second.state = daemon.state
    return second


@pytest.fixture
def first() -> Iterator[Daemon]:
    with Daemon("--worker=5") as daemon:
        daemon.call("make", "snowflake", 1000)
        yield daemon


def test_two_daemons_on_one_path_give_no_tick_twice(first: Daemon, tmp_path: Path) -> None:
    with under_load(first, tmp_path, 3) as (callers, drawing):
        callers.more()
        moved(first)
        with (
            in_its_place(first) as second,
            under_load(second, tmp_path, 3) as (others, their_drawing),
        ):
            others.more()
            await_leases(first, 0)
            told = leases(first)
            assert told["revoked"] == told["granted"] >= 3
            for holder in drawing + their_drawing:
                holder.more()
    # The lanes of two daemons are apart by their nodes; of v7, only the whole ids are.
    assert not callers.nodes & others.nodes
    assert_no_id_twice([each.id for each in one.drawn()] for one in drawing + their_drawing)


def test_the_second_daemons_state_is_its_own(first: Daemon) -> None:
    """What the first saves never comes over it, also at its end."""
    away = moved(first)
    before = (away / "state").read_bytes()
    with in_its_place(first) as second:
        second.stop()
        kept = (second.state / "state").read_bytes()
        first.call("take", "utc", 1)
        assert first.stop() == 1
        assert (second.state / "state").read_bytes() == kept
    assert (away / "state").read_bytes() == before
