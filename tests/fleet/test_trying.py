"""The script that tries a fleet on one machine."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.tools import need, run

SCRIPT = Path(__file__).parents[2] / "systemd" / "try-fleet.sh"


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
    done = run(need(shell), SCRIPT, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    made = [int(line) >> 12 & 1023 for line in done.stdout.splitlines() if line.isdigit()]
    listed = [int(number) for number in re.findall(r"^ *(\d+)  held ", done.stdout, re.MULTILINE)]
    assert len(set(made)) == 3, done.stdout
    assert sorted(made) == listed
    assert list(tmp_path.iterdir()) == []
