"""``python -m tests.mutations``: break the code in each way of the catalogue, or by rule."""

from __future__ import annotations

import argparse
import random
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.coverage.measuring import TOP
from tests.mutations.auto import Wanted, auto, run_git
from tests.mutations.catalogue import MUTATIONS
from tests.mutations.executed import executed
from tests.mutations.matrix import lost, matrix, needed
from tests.mutations.mutation import Mutation, check, run


def main(words: Sequence[str] | None = None) -> int:
    """Try the mutations that *words* ask for; 1 if one survives, or nothing could be told."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    which, add = parser.add_mutually_exclusive_group(), parser.add_argument
    which.add_argument("--only", action="append", metavar="NAME", help="may be repeated")
    which.add_argument("--sample", type=int, metavar="N", help="try N mutations only")
    which.add_argument("--auto", type=int, metavar="N", help="try N mutants that rules make")
    which.add_argument(
        "--matrix", type=int, metavar="N", help="find all tests that see each entry and N mutants"
    )
    which.add_argument(
        "--lost", nargs="+", metavar="TEST", help="print what nobody sees without these tests"
    )
    which.add_argument("--for", dest="path", metavar="FILE", help="print the quick tests of a file")
    which.add_argument(
        "--map", action="store_true", help="see again which quick tests execute which lines"
    )
    add("--seed", default="0", help="which N those are; such as a commit's hash")
    add("--check", action="store_true", help="only see whether each finds its place and its tests")
    add("--paths", nargs="+", default=[], help="only mutants by rule of these")
    add("--changed", metavar="COMMIT", help="only mutants by rule of lines changed since then")
    add("--executed", type=Path, metavar="FILE", help="what tests.coverage --map FILE wrote")
    add("--seconds", type=float, help="begin no mutant by rule after so long")
    add("--jobs", type=int, default=2, help="side by side; default: %(default)s")
    given = parser.parse_args(words)
    for named in (*(given.lost or ()), *filter(None, [given.path])):
        if not (TOP / named.partition("::")[0]).exists():
            parser.error(f"there is no file {named.partition('::')[0]} in {TOP}")
    by_rule = given.auto is not None or given.matrix is not None
    if not by_rule and (given.paths or given.changed):
        parser.error("--paths and --changed are of mutants by rule: add --auto N")
    if given.changed and run_git("rev-parse", "--quiet", "--verify", given.changed).returncode:
        parser.error(f"there is no commit {given.changed}")
    # So that nothing is left, and Ctrl-C needs no traceback.
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, lambda number, _: sys.exit(128 + number))
    wanted = Wanted(given.seed, given.paths, given.changed, given.seconds, given.jobs)
    if given.auto is not None:
        done = auto(given.auto, wanted, given.executed)
    elif given.matrix is not None:
        done = matrix(given.matrix, MUTATIONS, wanted)
    elif given.map:
        done = bool(executed().tests)
    elif given.lost:
        done = lost(given.lost)
    elif given.path:
        # So that "head", which needs no more, ends this without a traceback.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        done = needed(given.path)
    else:
        mutations = _sample(given.sample, given.seed)
        if given.only:
            mutations = [mutation for mutation in MUTATIONS if mutation.name in given.only]
            if unknown := sorted({*given.only} - {mutation.name for mutation in mutations}):
                parser.error(f"no mutation is called {', '.join(unknown)}")
        done = check(mutations) is not None if given.check else run(mutations, given.jobs)
    return 0 if done else 1


def _sample(count: int | None, seed: str) -> Sequence[Mutation]:
    """Return *count* mutations of the catalogue, or all: the same ones for the same *seed*."""
    if count is None:
        return MUTATIONS
    return random.Random(seed).sample(MUTATIONS, min(count, len(MUTATIONS)))


if __name__ == "__main__":
    sys.exit(main())
