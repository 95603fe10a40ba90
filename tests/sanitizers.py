"""Test the C extension with the sanitizers of the compiler, which see what only happens to work.

The address sanitizer sees memory that is read or written past its end, or after it was freed. The
other one sees what C does not define, such as a shift by too many bits, or a number that overflows.
The extension is compiled into a copy of the checkout. A report ends the process and so the tests.
Those of the address sanitizer are printed at the end, also those of processes that a test started.
The exit status is 1 if there is any, or if a test fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import uuidd
from extension.build_hook import CannotCompile, compiled, put_in_place
from tests.mutations.trial import copied, environment

SANITIZERS = ("address", "undefined")

CFLAGS = (
    f"-fsanitize={','.join(SANITIZERS)} -fno-sanitize-recover=all -fno-omit-frame-pointer -g -O1"
)

TESTS = (
    "tests/client/test_core_*.py",
    "tests/client/test_cutter*.py",
    "tests/client/test_life.py",
    "tests/client/test_forks.py",
)


PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
# What runs with both implementations runs with C. The reports on the standard error are not
# captured, because they end the process.
PYTEST += ["-k", "not [python", "--capture=sys"]


def main() -> int:
    """Compile the extension, and run its tests; 0 if they pass, and no sanitizer has reported."""
    parser = argparse.ArgumentParser(prog="python -m tests.sanitizers", description=__doc__)
    parser.add_argument("files", nargs="*", default=TESTS, help="run only the tests of these")
    given = parser.parse_args()
    os.environ["CFLAGS"] = CFLAGS
    with copied() as tree, tempfile.TemporaryDirectory() as folder:
        try:
            put_in_place(tree, compiled(tree, Path(folder), uuidd.__version__))
            runtime = _runtime()
        except (CannotCompile, OSError) as error:
            sys.stderr.write(f"the extension cannot be compiled with sanitizers: {error}\n")
            return 1
        reports = Path(folder, "reports")
        reports.mkdir()
        files = [
            str(path.relative_to(tree)) for name in given.files for path in sorted(tree.glob(name))
        ]
        # Python itself leaks a little at its end, and its own allocator hides the ends of objects.
        options = f"log_path={reports}/report:detect_leaks=0:print_stacktrace=1"
        done = subprocess.run(
            [*PYTEST, *files],
            cwd=tree,
            env={
                **environment(tree, folder),
                "UUIDD_EXTENSION": "require",
                "PYTHONMALLOC": "malloc",
                "LD_PRELOAD": runtime,
                "ASAN_OPTIONS": options,
                "UBSAN_OPTIONS": options,
            },
            stdin=subprocess.DEVNULL,
        )
        found = sorted(reports.iterdir())
        for report in found:
            sys.stdout.write(f"{report.read_text(errors='replace')}\n")
    sys.stdout.write(
        f"{len(found)} reports of the address sanitizer; pytest exited with {done.returncode}\n"
    )
    return 1 if done.returncode or found else 0


def _runtime() -> str:
    """Return the library of the address sanitizer, which a process has to load before all others.

    Raises OSError if the compiler has none.
    """
    found = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    # The compiler repeats the name if it does not find the file.
    return str(Path(found).resolve(strict=True))


if __name__ == "__main__":
    sys.exit(main())
