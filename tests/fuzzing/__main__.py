"""Fuzz both codecs, the state file, id texts, and the daemon over sockets.

For each target it is told how many inputs there were, how many a second, and what came of them.
The exit status is 1 when something else than a named error came of one; the smallest such input
stands there in hex.
"""

from __future__ import annotations

import argparse
import logging
import sys

from tests.fuzzing.running import Report, failure_of, fuzz
from tests.fuzzing.targets import TARGETS, shares

INPUTS = 200_000


def main() -> int:
    """Fuzz what was asked for; 0 when all is well, 1 when something is not."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("targets", metavar="TARGET", nargs="*", help=", ".join(TARGETS))
    parser.add_argument("--inputs", type=int, default=INPUTS, help="in all; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--replay", metavar="HEX", help="run one input, of one target")
    given = parser.parse_args()
    names: list[str] = given.targets or list(TARGETS)
    if unknown := sorted(set(names) - set(TARGETS)):
        parser.error(f"no target is called {unknown[0]}; there are {', '.join(TARGETS)}")
    if given.inputs < 1:
        parser.error("--inputs takes 1 or more")
    logging.getLogger("uuidd").addHandler(logging.NullHandler())
    if given.replay is not None:
        if len(names) != 1:
            parser.error("--replay takes one target")
        return _replay(names[0], given.replay)
    reports = []
    for name, inputs in shares(names, given.inputs).items():
        reports.append(fuzz(TARGETS[name], inputs, given.seed))
        _tell("\n".join(_lines(reports[-1])))
    failed = sum(len(report.failures) for report in reports)
    _tell(f"{sum(report.inputs for report in reports):,} inputs, {failed} failures")
    return 1 if failed else 0


def _lines(report: Report) -> list[str]:
    rate = report.inputs / max(report.seconds, 1e-9)
    outcomes = ", ".join(f"{name} {count:,}" for name, count in report.outcomes.most_common())
    return [
        f"{report.name}: {report.inputs:,} inputs, {rate:,.0f} a second, +{report.grown} MiB",
        f"    {outcomes}",
        *(f"    FAILED {failure.what}: {failure.data.hex()}" for failure in report.failures),
    ]


def _replay(name: str, told: str) -> int:
    failed = failure_of(TARGETS[name], bytes.fromhex(told))
    _tell(failed or "it does not fail")
    return 1 if failed else 0


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
