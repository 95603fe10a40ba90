"""A state file that is not what the daemon left: nothing comes twice, and the file is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.rig import Daemon, until
from tests.system.callers import Callers
from tests.system.fake_time import FakeTime
from tests.system.far import far_reaching
from uuidd.statefile import FORMAT, machine_hash


def signed(body: bytes, version: int = FORMAT) -> bytes:
    """Return a state file of *body* whose checksum is right."""
    return f"uuidd-state {version} sha256:{hashlib.sha256(body).hexdigest()}\n".encode() + body


def of_another_host(state: bytes) -> bytes:
    """Return the same state as another host left it."""
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
    """It says so, keeps the file, goes on under another node, and holds steady back for 20 s."""
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
    for caller in callers.of_steady:
        (refused,) = caller.refused
        assert refused.startswith("unavailable: the state was lost, so steady starts in ")
    fake_time.set(21)

    def are_served() -> bool:
        before = [len(caller.refused) for caller in callers.of_steady]
        callers.draw()
        return before == [len(caller.refused) for caller in callers.of_steady]

    # Our client repeats the refusal for a quarter of a second before it asks again.
    until(are_served)
    callers.hang_up()
    assert all(len({*caller.refused}) == 1 for caller in callers.of_steady)
    assert all(not caller.refused for caller in callers.of_utc)
    callers.assert_sound()


@pytest.mark.parametrize("kill", [False, True])
def test_an_older_state_of_the_same_host_repeats_nothing_while_utc_goes_on(
    daemon: Daemon, fake_time: FakeTime, kill: bool
) -> None:
    """A backup that is put back knows less, and what it does not know of lies before now."""
    callers = Callers(daemon, ahead=lambda: 60)
    end = daemon.kill if kill else daemon.stop
    backups: list[bytes] = []
    for seconds in range(1, 5):
        backups.append((daemon.state / "state").read_bytes())
        callers.take_wide()
        callers.draw(3)
        callers.hang_up()
        end()
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
    """Kill a daemon, and empty the folder of its state."""
    daemon.kill()
    for file in daemon.state.iterdir():
        file.unlink()


@pytest.fixture
def numbered(fake_time: FakeTime) -> Iterator[Daemon]:
    """A daemon with a worker number whose saves reach 20 s ahead."""
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


def test_a_host_that_was_booted_without_a_state_makes_snowflakes_at_once(numbered: Daemon) -> None:
    """As a new one does: the folder of its socket is empty, too."""
    emptied(numbered)
    Path(f"{numbered.socket}.used").unlink()
    numbered.start()
    assert len(numbered.call("make", "snowflake", 1000)) == 1000
