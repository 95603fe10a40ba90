"""``--epoch`` from start to start: a later one is refused, for it would repeat Snowflakes."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rig import PATIENCE, Daemon
from uuidd.core.timeline.state import State
from uuidd.refused import Refused
from uuidd.server.settings import Settings
from uuidd.server.startup import started
from uuidd.statefile import decode

EPOCH = 1_420_070_400_000
LATER = EPOCH + 1000
REFUSED = (
    f"--epoch {LATER}: Snowflakes of worker number 5 were made with {EPOCH}, and a later epoch"
    f" repeats those of the past, for 0:00:01; keep --epoch {EPOCH}, name a --worker that was"
    " never used, or accept repeats with uuidd --reset-epoch"
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A short folder, with that of a state in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        (Path(name) / "state").mkdir()
        yield Path(name)


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """A start blocks the signals that the daemon handles; the tests go on with them."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def begun(place: Path, worker: int | None, epoch: int) -> State:
    """Start in *place* and stop; give the state that is kept."""
    settings = Settings(place / "s", place / "state", worker=worker, epoch=epoch)
    with started(settings):
        pass
    return kept(place)


def kept(place: Path) -> State:
    return decode((place / "state" / "state").read_bytes())


def run(*arguments: str) -> tuple[int, str, str]:
    """Return exit status and both outputs of the command."""
    done = subprocess.run(
        [sys.executable, "-m", "uuidd", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_epoch_is_saved_before_any_snowflake(place: Path) -> None:
    """It is in the first save, without which nothing is given out."""
    assert begun(place, 5, EPOCH).epochs == {5: EPOCH}


def test_an_earlier_epoch_is_taken_over(place: Path) -> None:
    """Its Snowflakes are higher than those so far; the way back is one to a later epoch."""
    begun(place, 5, LATER)
    assert begun(place, 5, EPOCH).epochs == {5: EPOCH}


def test_a_later_epoch_is_refused_in_a_line_and_changes_nothing(place: Path) -> None:
    """The line names both epochs, for how long ids would come again, and the ways out."""
    begun(place, 5, EPOCH)
    before = (place / "state" / "state").read_bytes()
    with pytest.raises(Refused) as refused:
        begun(place, 5, LATER)
    assert str(refused.value) == REFUSED
    assert (place / "state" / "state").read_bytes() == before


def test_another_number_may_have_another_epoch(place: Path) -> None:
    """Ids of two numbers never meet; the first number's epoch is not forgotten over it."""
    begun(place, 5, EPOCH)
    assert begun(place, 6, LATER).epochs == {5: EPOCH, 6: LATER}
    with pytest.raises(Refused):
        begun(place, 5, LATER)


def test_without_a_number_any_epoch_will_do(place: Path) -> None:
    """No Snowflake is made with it, and what is known of epochs stays."""
    begun(place, 5, EPOCH)
    assert begun(place, None, LATER).epochs == {5: EPOCH}


def test_without_a_number_the_daemon_starts_before_the_epoch(place: Path) -> None:
    """A board without a clock of its own begins in 1970, and makes UUIDs."""
    far = 4_102_444_800_000
    assert begun(place, None, far).epochs == {}
    with pytest.raises(Refused, match="name an epoch before now"):
        begun(place, 5, far)


# --- the commands


@pytest.mark.system
def test_a_later_epoch_is_refused_by_the_daemon_and_by_its_check() -> None:
    """One line and status 1 each; with the old epoch it starts again."""
    with Daemon("--worker=5", f"--epoch={EPOCH}") as daemon:
        daemon.stop()
        options = [f"--state={daemon.state}", f"--socket={daemon.socket}", "-P", "--worker=5"]
        for mode in "-F", "--check":
            assert run(mode, *options, f"--epoch={LATER}") == (1, "", f"uuidd: {REFUSED}\n")
        daemon.start()


@pytest.mark.system
def test_a_reset_lets_a_later_epoch_be_named(place: Path) -> None:
    """It says what that gives up, and changes nothing else; again, it has nothing to do."""
    begun(place, 5, EPOCH)
    before = kept(place)
    command = ("--reset-epoch", f"--state={place / 'state'}")
    assert run(*command) == (
        0,
        f"reset: any --epoch may be named now. One that is later than {EPOCH} (worker number 5) may"
        " repeat Snowflakes that were made so far\n",
        "",
    )
    assert kept(place) == replace(before, epochs={})
    assert run(*command) == (
        0,
        f"nothing to reset: no Snowflakes were made from the state in {place / 'state'}\n",
        "",
    )
    assert begun(place, 5, LATER).epochs == {5: LATER}
