"""``python -m tests.mutations``: break the code in each way of the catalogue, or by rule."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.mutations.auto import SLOWEST, auto
from tests.mutations.catalogue import MUTATIONS
from tests.mutations.executed import executed
from tests.mutations.matrix import lost, matrix, needed
from tests.mutations.run import JOBS, check, end_by_signal, run, sample


def main() -> int:
    """Try the mutations that were asked for; 1 if one survives, or nothing could be told."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", action="append", metavar="NAME", help="may be repeated")
    which.add_argument("--sample", type=int, metavar="N", help="try N mutations only")
    parser.add_argument("--seed", default="0", help="which N those are; such as a commit's hash")
    which.add_argument(
        "--auto", type=int, metavar="N", help="try N mutants that rules make, drawn from the seed"
    )
    which.add_argument(
        "--matrix",
        type=int,
        metavar="N",
        help="find all tests that see each entry of the catalogue and N mutants by rule",
    )
    which.add_argument(
        "--lost", nargs="+", metavar="TEST", help="print what nobody sees without these tests"
    )
    which.add_argument("--for", dest="path", metavar="FILE", help="print the quick tests of a file")
    which.add_argument(
        "--map", action="store_true", help="see again which quick tests execute which lines"
    )
    parser.add_argument(
        "--again", action="store_true", help="only mutants by rule that survived before a change"
    )
    parser.add_argument(
        "--entries", type=int, metavar="N", help="N entries for the matrix; default: all"
    )
    parser.add_argument("--paths", nargs="+", default=[], help="only mutants by rule of these")
    parser.add_argument("--changed", metavar="COMMIT", help="only of lines changed since then")
    parser.add_argument(
        "--slowest",
        type=float,
        default=SLOWEST,
        metavar="SECONDS",
        help="run no test that takes longer; default: %(default)s",
    )
    parser.add_argument(
        "--executed",
        type=Path,
        metavar="FILE",
        help="which test executes which line, as python -m tests.coverage --map FILE wrote it",
    )
    parser.add_argument("--seconds", type=float, help="begin no mutant by rule after so long")
    parser.add_argument("--jobs", type=int, default=JOBS, help="side by side; default: %(default)s")
    parser.add_argument(
        "--check", action="store_true", help="only see whether each finds its place and its tests"
    )
    given = parser.parse_args()
    end_by_signal()
    if given.auto is not None:
        done = auto(
            given.auto,
            given.seed,
            paths=given.paths,
            changed=given.changed,
            again=given.again,
            slowest=given.slowest,
            seconds=given.seconds,
            jobs=given.jobs,
            file=given.executed,
        )
    elif given.matrix is not None:
        done = matrix(
            given.matrix,
            given.seed,
            entries=given.entries,
            paths=given.paths,
            slowest=given.slowest,
            seconds=given.seconds,
            jobs=given.jobs,
        )
    elif given.map:
        done = bool(executed().seconds)
    elif given.lost:
        done = lost(given.lost)
    elif given.path:
        done = needed(given.path)
    else:
        done = _of_catalogue(parser, given)
    return 0 if done else 1


def _of_catalogue(parser: argparse.ArgumentParser, given: argparse.Namespace) -> bool:
    wanted = MUTATIONS if given.sample is None else sample(given.sample, given.seed)
    if given.only:
        wanted = [mutation for mutation in MUTATIONS if mutation.name in given.only]
        if unknown := sorted({*given.only} - {mutation.name for mutation in wanted}):
            parser.error(f"no mutation is called {', '.join(unknown)}")
    return check(wanted) if given.check else run(wanted, jobs=given.jobs)


if __name__ == "__main__":
    sys.exit(main())
