"""Fuzz one target guided by coverage, with atheris, which nothing else here needs.

Run ``python -m tests.fuzzing.guided TARGET FOLDER [OPTION...]`` where atheris is installed; inputs
that reach new lines are kept in FOLDER. The options are libFuzzer's, such as ``-runs=1000000``.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main() -> None:
    """Fuzz, until something fails or the options say to stop."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["uuidd", "json", "msgpack"]):
        targets = importlib.import_module("tests.fuzzing.targets")
    target = targets.TARGETS[name]
    folder.mkdir(exist_ok=True)
    for place, (data, _) in enumerate(targets.CORPUS.get(name, [])):
        (folder / f"kept-{place}").write_bytes(data)

    def one(data: bytes) -> None:
        target.run(data)

    atheris.Setup([sys.argv[0], str(folder), *sys.argv[3:]], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
