"""How long ``import uuidd_client`` takes, and what it must not load."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from tests.benchmarks.daemons import ours
from tests.benchmarks.place import Place
from tests.benchmarks.rounds import Side, interleaved, median
from tests.benchmarks.table import Row

IMPORT = "import uuidd_client"
FIRST_ID = "import uuidd_client; uuidd_client.uuid1()"
LOADED = f"{FIRST_ID}; import sys; print(*{{'trio', 'ifaddr'}} & sys.modules.keys())"


def rows(place: Place, rounds: int) -> Iterator[Row]:
    """Time the import, and the import with a first id, over a bare interpreter."""
    with ours(place) as daemon:
        environment = {**place.environment, "UUIDD_SOCKET": str(daemon.socket)}
        bare, imported, used = (
            median(times)
            for times in interleaved(
                rounds, *(_side(code, environment) for code in ("pass", IMPORT, FIRST_ID))
            )
        )
        loaded = subprocess.run(
            [sys.executable, "-c", LOADED],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=30,
        ).stdout.split()
    note = f"over a bare interpreter's {bare:.0f} ms"
    yield Row("import uuidd_client", imported - bare, "ms", at_most=25, note=note)
    yield Row("import and a first uuid1()", used - bare, "ms", note=note)
    yield Row("trio, ifaddr loaded", len(loaded), "", at_most=0, note=" ".join(loaded))


def _side(code: str, environment: dict[str, str]) -> Side:
    def run() -> float:
        begin = time.perf_counter()
        # Without a timeout, with which subprocess looks at 15, 31, 63 ms whether it has ended.
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
        return (time.perf_counter() - begin) * 1e3

    return run
