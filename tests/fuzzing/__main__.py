"""Run the tests of this folder with many random inputs, for some seconds, and print a failing one.

Each run of the tests has a seed of its own. The next run tries a failing input first, whatever its
seed is. The exit status is 1 after a failure.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent


def main() -> int:
    """Run the tests until the time is over; 1 at the first run that fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first run; default: 0")
    parser.add_argument(
        "--seconds", type=int, default=60, help="begin no run after these; default: %(default)s"
    )
    parser.add_argument("-k", metavar="NAME", default="", help="only tests with this in their name")
    given = parser.parse_args()
    pytest = [sys.executable, "-m", "pytest", "-qx", "--hypothesis-profile=fuzzing", "-k", given.k]
    end = time.monotonic() + given.seconds
    for seed in itertools.count(given.seed):
        if subprocess.run([*pytest, f"--hypothesis-seed={seed}", FOLDER], check=False).returncode:
            return 1
        if time.monotonic() >= end:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
