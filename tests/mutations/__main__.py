"""``python -m tests.mutations``: break the code in each way of the catalogue."""

from __future__ import annotations

import argparse
import signal
import sys

from tests.mutations.catalogue import MUTATIONS
from tests.mutations.run import JOBS, check, run, sample


def main() -> int:
    """Try the mutations that were asked for; 1 if one survives, or nothing could be told."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", action="append", metavar="NAME", help="may be repeated")
    which.add_argument("--sample", type=int, metavar="N", help="try N mutations only")
    parser.add_argument("--seed", default="0", help="which N those are; such as a commit's hash")
    parser.add_argument("--jobs", type=int, default=JOBS, help="side by side; default: %(default)s")
    parser.add_argument(
        "--check", action="store_true", help="only see whether each finds its place and its tests"
    )
    given = parser.parse_args()
    # As on Ctrl-C: no other run is begun, and the copies are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wanted = MUTATIONS if given.sample is None else sample(given.sample, given.seed)
    if given.only:
        wanted = [mutation for mutation in MUTATIONS if mutation.name in given.only]
        if unknown := sorted({*given.only} - {mutation.name for mutation in wanted}):
            parser.error(f"no mutation is called {', '.join(unknown)}")
    done = check(wanted) if given.check else run(wanted, jobs=given.jobs)
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
