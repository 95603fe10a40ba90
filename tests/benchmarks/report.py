"""The results as JSON, for programs."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from importlib import metadata
from typing import Any

from tests.benchmarks import peers
from tests.benchmarks.table import Curve, Row


def document(
    rows: list[Row],
    curves: list[Curve],
    left_out: list[str],
    failed: list[str],
    run: dict[str, Any],
) -> str:
    """Give the JSON text: all results, what is missing, and what tells of the *run*."""
    return (
        json.dumps(
            {
                "run": {
                    "python": platform.python_version(),
                    "implementation": platform.python_implementation(),
                    "machine": platform.machine(),
                    "uuidd": metadata.version("uuidd"),
                    "peers": peers.versions(),
                    **run,
                },
                "rows": [{**asdict(row), "goal": row.goal, "met": row.met} for row in rows],
                "curves": [
                    {"name": curve.name, "microseconds": curve.microseconds} for curve in curves
                ],
                "left_out": left_out,
                "failed": failed,
            },
            indent=2,
        )
        + "\n"
    )
