"""What all tests of the client share."""

from __future__ import annotations

import os

import pytest

from uuidd_client import source


@pytest.fixture(autouse=True)
def _warned_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fallback's warning comes once a process; here it has come, unless a test says not."""
    monkeypatch.setattr(source, "_warned_in", os.getpid())
