"""The daemon and the client of the last release get on with those of this checkout."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.documents import ROOT
from tests.rig import PATIENCE, Daemon
from tests.tools import need, output, run

OLDEST = "8390c009f5cab0d06df8b64b76853ed3692b0429"
"""The oldest commit that has to get on with this one, until there is a release."""

DRAW = """
import sys, time, uuidd, warnings
from uuid import SafeUUID
from uuidd.core.ids.kinds import KINDS
from uuidd_client import Client

warnings.simplefilter("ignore")
client = Client(sys.argv[1])
client.make("v1", 3)
print("made without a daemon", flush=True)
input()
while client.uuid1().is_safe is not SafeUUID.safe:
    time.sleep(0.01)
ids = [str(id) for kind in KINDS for _ in range(3) for id in client.make(kind, 100)]
print(uuidd.version(), len(set(ids)) // 300 == len(KINDS), client.stats().leased)
"""
"""What a program does that begins before its daemon."""


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which Python imports the last release."""
    git = (need("git"), "-C", ROOT)
    found = run(*git, "describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD^")
    commit = found.stdout.strip() or OLDEST
    if run(*git, "cat-file", "-e", f"{commit}^{{commit}}").returncode:
        # The whole history has it.
        assert run(*git, "rev-parse", "--is-shallow-repository").stdout != "false\n", commit
        pytest.skip(f"the history of this checkout does not reach back to {commit}")
    folder = tmp_path_factory.mktemp("earlier")
    archive = folder / "archive.tar"
    output(*git, "archive", f"--output={archive}", commit, "uuidd", "client")
    output("tar", "-xf", archive, "-C", folder)
    (folder / "uuidd" / "version").write_text("earlier")
    path = f"{folder}:{folder / 'client'}"
    return {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "UUIDD_EXTENSION": "off"}


@pytest.mark.parametrize("older", ["daemon", "client"])
def test_a_program_of_one_version_uses_the_daemon_of_the_other(
    earlier: dict[str, str], older: str
) -> None:
    """It makes ids of each kind, gets a lease, and tells of the ids that it made before."""
    of_daemon, of_client = (earlier, {}) if older == "daemon" else ({}, earlier)
    daemon = Daemon("--worker=5", environment=of_daemon, fresh=True)
    with subprocess.Popen(
        [sys.executable, "-c", DRAW, daemon.socket],
        env={**os.environ, **of_client},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "made without a daemon\n"
            with daemon:
                told, _ = program.communicate("\n", timeout=PATIENCE)
                version = daemon.call("status")["version"]
        finally:
            program.kill()
    assert (version == "earlier") == (older == "daemon")
    assert told.startswith("earlier ") == (older == "client")
    assert told.endswith(" True True\n")


@pytest.mark.parametrize("older", ["first", "last"])
def test_a_daemon_of_one_version_goes_on_with_the_state_of_the_other(
    earlier: dict[str, str], older: str
) -> None:
    """The node is random, so another state would have another one."""
    before, after = (earlier, {}) if older == "first" else ({}, earlier)
    with Daemon(environment=before, fresh=True) as daemon:
        node = daemon.call("status")["node"]
        daemon.stop()
        with Daemon(f"--state={daemon.state}", environment=after, fresh=True) as other:
            status = other.call("status")
    assert status["node"] == node
    assert (status["version"] == "earlier") == (older == "last")
