"""``python -m tests.benchmarks.promises``: try for what the ids of each library can be relied on.

It prints a table, and takes about three minutes. ``trials.py`` has the trials.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.benchmarks.daemons import ours, util_linux
from tests.benchmarks.makers import PROMISING, Maker
from tests.benchmarks.making import versions
from tests.benchmarks.trials import SPARSE
from tests.benchmarks.workspace import THIS, run_in_private_mounts, workspace
from tests.system.fake_time import FakeTime

TRIALS = Path(__file__).with_name("trials.py")

HEADS = {
    "order": "in order",
    "processes": "in order, all processes",
    "set_back": "UTC set back by 10 s",
    "fork": "forks",
    "fork_in_c": "forks by C code",
    "copy": "copies of a machine",
    "bits": "random bits",
}
"""The column of each trial."""

TRIES = dict.fromkeys(("fork", "fork_in_c", "copy"), 3)
"""How often a trial is made whose result is, in part, an accident."""

WORST = ["differ", "the same bits", "the same ids"]
"""What such a trial finds, the worst last."""

READ = re.compile(r"(?:getrandom\(|read\(\d+</dev/u?random>).* = (\d+)$", re.MULTILINE)
"""How many random bytes a process was given, as strace shows it."""


def main() -> int:
    """Try everything with each maker, and print the table."""
    run_in_private_mounts("tests.benchmarks.promises")
    found: dict[str, dict[str, str]] = {maker.name: {} for maker in PROMISING}
    with workspace() as space:
        trace = space.folder / "trace"
        around = {
            "copy": ["unshare", "--pid", "--fork", "--kill-child"],
            "bits": ["strace", "-f", "-y", "-e", "trace=getrandom,read", "-o", str(trace)],
        }
        with util_linux(space), ours(space) as daemon:
            for trial, maker in ((trial, maker) for trial in HEADS for maker in PROMISING):
                if trial == "set_back":
                    continue
                program = trial, maker, daemon.environment, around.get(trial, [])
                # On a busy machine two processes seldom make ids at one moment.
                words = [_tried(*program) for _ in range(TRIES.get(trial, 1))]
                word = max(words, key=WORST.index) if trial in TRIES else words[0]
                found[maker.name][trial] = word or _source(trace.read_text())
        clock = FakeTime(space.folder)
        faked = replace(space, environment=space.environment | clock.environment)
        with util_linux(faked), ours(faked) as daemon:
            for maker in PROMISING:
                clock.set(0)
                found[maker.name]["set_back"] = _tried("set_back", maker, daemon.environment, [])
    rows = [("", *HEADS.values()), ("---",) * (len(HEADS) + 1)]
    rows += [(f"`{name}`", *(found[name][trial] for trial in HEADS)) for name in found]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    peers = ", ".join(f"{name} {version}" for name, version in versions().items())
    sys.stdout.write("\n".join([*lines, "", peers, ""]))
    return 0


def _tried(trial: str, maker: Maker, environment: dict[str, str], around: list[str]) -> str:
    done = subprocess.run(
        [*around, *THIS.command(TRIALS, trial)],
        env=environment,
        input=json.dumps([maker.setup, maker.statement]),
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def _source(trace: str) -> str:
    """Return where random bits come from, by what strace saw."""
    return "the system's" if sum(map(int, READ.findall(trace))) > 4 * SPARSE else "its own"


if __name__ == "__main__":
    sys.exit(main())
