"""The script that tries a fleet on one machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.tools import need

SCRIPT = Path(__file__).parents[2] / "systemd" / "try-fleet.sh"

SECONDS = 300.0
"""For the script, on a busy machine."""


@pytest.mark.thorough
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_three_daemons_show_three_numbers(shell: str, tmp_path: Path) -> None:
    """Their Snowflakes contain the numbers; nothing is left behind."""
    need("etcd")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
    }
    environment.pop("UUIDD_SOCKET", None)
    # A group of its own, so that a script that hangs leaves no engine and no daemon behind.
    with subprocess.Popen(
        [need(shell), SCRIPT], env=environment, stdout=PIPE, text=True, start_new_session=True
    ) as script:
        try:
            said, _ = script.communicate(timeout=SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(script.pid, signal.SIGTERM)
    assert script.returncode == 0
    made = [int(line) >> 12 & 1023 for line in said.splitlines() if line.isdigit()]
    listed = [int(number) for number in re.findall(r"^ *(\d+)  held ", said, re.MULTILINE)]
    assert len(set(made)) == 3, said
    assert sorted(made) == listed
    assert list(tmp_path.iterdir()) == []
