from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import chain

import pytest

from tests.benchmarks import makers
from tests.rig import PATIENCE, Daemon

pytestmark = pytest.mark.usefixtures("implementation")

RUN = "import json, sys\nfor code in json.load(sys.stdin): exec(code, {})"

GROUPS = (
    makers.WITHOUT_DAEMON,
    makers.BESIDE_UTIL_LINUX,
    makers.FEW,
    makers.ONE,
    makers.BULK,
    makers.KINDS,
)


@pytest.mark.process
def test_each_maker_of_ours_can_be_run() -> None:
    """The benchmarks have their code as text, in which no type checker finds a wrong name."""
    ours = [comparison.mine for comparison in chain(*GROUPS)]
    ours += [maker for maker in makers.PROMISING if "uuidd_client" in maker.setup]
    codes = {f"{maker.setup}\n{maker.statement}" for maker in ours}
    with Daemon(f"--worker={makers.WORKER}") as daemon:
        done = subprocess.run(
            [sys.executable, "-c", RUN],
            input=json.dumps(sorted(codes)),
            env={**os.environ, "UUIDD_SOCKET": str(daemon.socket), "UUIDD_FALLBACK": "0"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    assert (done.returncode, done.stderr) == (0, "")
