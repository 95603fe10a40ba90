"""``python -m tests.clones``: resume a snapshot of a machine twice, and compare their ids.

Each mode is a way in which the clones learn of it: ``vmgenid``, by QEMU's device and the kernel's
event; ``renew``, by ``uuidctl renew``, which is run 20 turns after the resume; ``none``, which
shows what comes twice without a signal. For each there is a table of the ids that were drawn before
the daemon knew, and after it. The exit status is 1 if an id of after it came twice, if a clone was
not noticed, or if both still have a node in common.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.clones import initramfs, kernel
from tests.clones.comparing import Turn, nodes, resumed, rows, table, turns
from tests.clones.machine import Line, Machine

ROOT = Path(__file__).parents[2]

DEVICES = {"vmgenid": ["-device", "vmgenid,guid=auto"], "renew": [], "none": []}
"""The modes, and the devices of QEMU in each."""

PROGRAMS = {"c": "in C", "python": "in Python"}
"""The ports of the programs that draw, and what their clients are written in."""

BEFORE = 20
"""Turns before the snapshot; and after it, before ``uuidctl renew``."""

NEWS = "this machine was cloned"
"""What the daemon's log says."""

NEEDED = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "cpio": "cpio",
    "cc": "gcc",
}
"""Programs, and their packages of Debian."""


def main() -> int:
    """Try the modes that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.clones", description=__doc__)
    parser.add_argument("modes", nargs="*", metavar="MODE", help=f"{', '.join(DEVICES)}; all")
    parser.add_argument("--turns", type=int, default=80, help="of each clone (default: 80)")
    parser.add_argument("--kernel", type=Path, help="default: Debian's, which is downloaded")
    given = parser.parse_args()
    if unknown := sorted({*given.modes} - {*DEVICES}):
        parser.error(f"no mode is called {', '.join(unknown)}; there are {', '.join(DEVICES)}")
    if given.turns <= BEFORE:
        parser.error(f"--turns {given.turns}: more than {BEFORE} are needed")
    if lacking := [name for program, name in NEEDED.items() if shutil.which(program) is None]:
        parser.error(f"not installed: {', '.join(lacking)} (Debian's names)")
    with TemporaryDirectory() as name:
        folder = Path(name)
        image = given.kernel or kernel.fetched(folder)
        archive = initramfs.written(ROOT, folder)
        well = [
            tried(mode, image, archive, folder / mode, given.turns)
            for mode in given.modes or DEVICES
        ]
    return 0 if all(well) else 1


def tried(mode: str, image: Path, archive: Path, folder: Path, count: int) -> bool:
    """Print what came in two clones of one machine; return whether all is well."""
    folder.mkdir()
    snapshot, options = folder / "snapshot", "--worker=7"
    with Machine(image, archive, folder / "original", DEVICES[mode], options=options) as original:
        original.go_on()
        for name in PROGRAMS:
            original.ports[name].wait(BEFORE)
        original.stop()
        original.write(snapshot)
    with ExitStack() as ends:
        clones = [
            ends.enter_context(
                Machine(image, archive, folder / f"clone{each}", DEVICES[mode], snapshot=snapshot)
            )
            for each in (1, 2)
        ]
        begun = [clone.go_on() for clone in clones]
        if mode == "renew":
            for clone in clones:
                clone.ports["c"].wait(BEFORE)
                clone.ports["shell"].send("python /site/bin/uuidctl renew")
        for clone in clones:
            for name in PROGRAMS:
                clone.ports[name].wait(count)
    noticed = [
        _seconds(clone.ports["console"].lines(), since)
        for clone, since in zip(clones, begun, strict=True)
    ]
    before: list[Turn] = []
    after: list[list[Turn]] = [[], []]
    for name, written_in in PROGRAMS.items():
        of_original = turns(original.ports[name].lines(), written_in)
        before += of_original
        for clone, some in zip(clones, after, strict=True):
            some += resumed(of_original, turns(clone.ports[name].lines(), written_in))
    found = rows(before, [*after[0], *after[1]])
    print(f"\n## {mode}\n\n{table(found)}\n")
    print("The log told of the clone:", ", ".join(map(_told, noticed)))
    one, two = (nodes(some, noticed=mode != "none") for some in after)
    print("Nodes of v1 that both clones have:", len(one & two), "of", len(one | two))
    repeated = sum(row.in_both_after for row in found)
    return mode == "none" or not (None in noticed or repeated or one & two)


def _seconds(lines: Sequence[Line], since: float) -> float | None:
    """Return how many seconds after the resume the log told of the clone, or None."""
    return next((line.at - since for line in lines if NEWS in line.text), None)


def _told(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.3f} s after the resume"


if __name__ == "__main__":
    sys.exit(main())
