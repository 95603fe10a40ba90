"""Programs that know nothing of us get their ids from us (reference: libuuid's own clients)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tools import in_private_mounts, need, output
from uuidd.cli import arguments

SCRIPT = """
import json, subprocess, sys, uuid
from pathlib import Path
from tests.rig import Daemon

def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    return [done.returncode, done.stdout, done.stderr]

theirs, uuidgen = sys.argv[1:]
ours = [sys.executable, "-m", "uuidd"]
with Daemon(socket=Path("/run/uuidd/request")) as daemon:
    said = {name: run(*command) for name, command in {
        "uuidgen": [uuidgen, "-t"],
        "their time": [theirs, "-t"],
        "their bulk time": [theirs, "-t", "-n", "100"],
        "their random": [theirs, "-r", "-n", "10"],
        "our time": [*ours, "-t"],
        "our bulk time": [*ours, "-t", "-n", "100"],
        "our random": [*ours, "-r", "-n", "100"],
    }.items()}
    said["stdlib"] = [str(uuid.uuid1().is_safe), str(uuid.uuid1())]
    said["many"] = [str(uuid.uuid1()) for _ in range(20000)]
    said["their kill"] = run(theirs, "-k")
    said["exit status"] = daemon.process.wait(20)
    daemon.start()
    said["our kill"] = run(*ours, "-k")
    said["exit status again"] = daemon.process.wait(20)
    said["no daemon"] = run(*ours, "-t")
    head, body = (daemon.state / "state").read_text().split("\\n", 1)
    said["node"] = json.loads(body)["node"].removeprefix("0x")
    said["pids"] = [line.split("pid=")[1].split()[0] for line in daemon.lines if "pid=" in line]
json.dump(said, sys.stdout)
"""


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    """What the programs said, in a mount namespace of their own."""
    command = in_private_mounts(sys.executable, "-c", SCRIPT, need("uuidd"), need("uuidgen"))
    found: dict[str, Any] = json.loads(output(*command, timeout=120))
    return found


@pytest.mark.parametrize("name", ["uuidgen", "their time", "our time"])
def test_a_time_based_uuid_is_of_the_daemons_node(said: dict[str, Any], name: str) -> None:
    """One line, a v1 UUID under the node in the daemon's state."""
    status, out, err = said[name]
    assert (status, err) == (0, "")
    assert out[14] == "1"
    assert out.rstrip().endswith("-" + str(said["node"]))


@pytest.mark.parametrize("name", ["their bulk time", "our bulk time"])
def test_a_hundred_at_once_are_told_by_the_first(said: dict[str, Any], name: str) -> None:
    """Both programs print the first and how many follow."""
    status, out, _ = said[name]
    assert status == 0
    assert out.endswith(f"-{said['node']} and 99 subsequent UUIDs\n")


@pytest.mark.parametrize(("name", "count"), [("their random", 10), ("our random", 100)])
def test_random_uuids_come_as_a_list(said: dict[str, Any], name: str, count: int) -> None:
    """As many v4 UUIDs as were asked for, though one reply holds 63."""
    status, out, _ = said[name]
    head, *uuids = out.splitlines()
    assert (status, head) == (0, "List of UUIDs:")
    assert len(set(uuids)) == count
    assert {line[15] for line in uuids} == {"4"}


def test_pythons_own_uuid1_is_safe(said: dict[str, Any]) -> None:
    """uuid.uuid1() gets its ids from the daemon, and marks them."""
    is_safe, uuid = said["stdlib"]
    assert is_safe == "SafeUUID.safe"
    assert uuid.endswith("-" + str(said["node"]))


def test_pythons_own_uuid1_never_repeats(said: dict[str, Any]) -> None:
    """20,000 in a row, over libuuid's growing blocks."""
    assert len(set(said["many"])) == 20000
    assert all(uuid.endswith("-" + str(said["node"])) for uuid in said["many"])


@pytest.mark.parametrize(("name", "ended"), [("their kill", 0), ("our kill", 1)])
def test_kill_ends_the_daemon_and_names_its_pid(
    said: dict[str, Any], name: str, ended: int
) -> None:
    """-k asks for the pid, and sends SIGTERM; the daemon stops in order."""
    status, out, _ = said[name]
    assert status == 0
    assert out == f"Killed uuidd running at pid {said['pids'][ended]}.\n"
    assert said["exit status" + " again" * ended] == 0


def test_without_a_daemon_a_line_says_so(said: dict[str, Any]) -> None:
    """Status 1, the path, and the cause."""
    status, out, err = said["no daemon"]
    assert (status, out) == (1, "")
    assert (
        err
        == "uuidd: error calling uuidd daemon at /run/uuidd/request: No such file or directory\n"
    )


def test_the_default_paths_are_libuuids() -> None:
    """They are compiled into libuuid, so they cannot be chosen."""
    assert Path("/run/uuidd/request") == arguments.SOCKET
