"""A pytest plugin: the same hypothesis examples each time, and the code of this copy only."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, settings

import uuidd
import uuidd_client
from tests.mutations.ending import end_with_parent

# Without the phase that looks for a smaller failing example: that there is one is enough here.
settings.register_profile(
    "mutations",
    deadline=None,
    max_examples=100,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)


def pytest_configure() -> None:
    """Check that what is tested is the copy, not what is installed; end with who asked for it."""
    end_with_parent()
    for package in (uuidd, uuidd_client):
        if Path.cwd() not in Path(package.__file__ or "").parents:
            raise pytest.UsageError(f"{package.__file__} is not of the copy in {Path.cwd()}")
