"""Programs that know nothing of us get their ids from us (reference: libuuid's own clients)."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tools import in_private_mounts, need, need_their_uuidd, output
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
    said["safe"] = str(uuid.uuid1().is_safe)
    said["many"] = [str(uuid.uuid1()) for _ in range(20000)]
    said["their kill"] = run(theirs, "-k")
    said["exit statuses"] = [daemon.process.wait(20)]
    daemon.start()
    said["our kill"] = run(*ours, "-k")
    said["exit statuses"].append(daemon.process.wait(20))
    said["no daemon"] = run(*ours, "-t")
    head, body = (daemon.state / "state").read_text().split("\\n", 1)
    said["node"] = json.loads(body)["node"].removeprefix("0x")
    said["pids"] = [line.split("pid=")[1].split()[0] for line in daemon.lines if "pid=" in line]
json.dump(said, sys.stdout)
"""


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    command = in_private_mounts(sys.executable, "-c", SCRIPT, need_their_uuidd(), need("uuidgen"))
    found: dict[str, Any] = json.loads(output(*command, timeout=120))
    return found


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        *((name, "{v1}\n") for name in ("uuidgen", "their time", "our time")),
        *((f"{whose} bulk time", "{v1} and 99 subsequent UUIDs\n") for whose in ("their", "our")),
        ("their random", "List of UUIDs:\n({v4}\n){{10}}"),
        ("our random", "List of UUIDs:\n({v4}\n){{100}}"),
        # "-k" asks for the pid, and sends SIGTERM.
        ("their kill", "Killed uuidd running at pid {pids[0]}.\n"),
        ("our kill", "Killed uuidd running at pid {pids[1]}.\n"),
    ],
)
def test_a_command_prints_what_the_daemon_gives(
    said: dict[str, Any], name: str, printed: str
) -> None:
    """A v1 is of the node in the daemon's state. Of many v1 the first is printed."""
    status, out, err = said[name]
    v1 = f".{{8}}-.{{4}}-1.{{3}}-.{{4}}-{said['node']}"
    # A list counts its lines, though one reply holds 63.
    v4 = r"\d*\t?.{8}-.{4}-4.{3}-.{4}-.{12}"
    assert (status, err) == (0, "")
    assert re.fullmatch(printed.format(v1=v1, v4=v4, pids=said["pids"]), out), out
    uuids = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", out)
    assert len({*uuids}) == len(uuids)


def test_a_daemon_that_was_killed_by_a_command_stops_in_order(said: dict[str, Any]) -> None:
    assert said["exit statuses"] == [0, 0]


def test_pythons_own_uuid1_is_safe_and_never_repeats(said: dict[str, Any]) -> None:
    """20,000 in a row, over libuuid's growing blocks."""
    assert said["safe"] == "SafeUUID.safe"
    assert len(set(said["many"])) == 20000
    assert all(uuid.endswith(f"-{said['node']}") for uuid in said["many"])


def test_without_a_daemon_a_line_says_so(said: dict[str, Any]) -> None:
    path = "/run/uuidd/request"
    line = f"uuidd: error calling uuidd daemon at {path}: No such file or directory\n"
    assert said["no daemon"] == [1, "", line]
    # It is compiled into libuuid, so it cannot be chosen.
    assert Path(path) == arguments.SOCKET
