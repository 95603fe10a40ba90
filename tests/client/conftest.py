"""What all tests of the client share."""

from __future__ import annotations

import os

import pytest

from uuidd_client import source
from uuidd_client.fallback import Fallback
from uuidd_client.per_process import PerProcess


@pytest.fixture(autouse=True)
def _warned_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fallback's warning comes once a process; here it has come, unless a test says not."""
    monkeypatch.setattr(source, "_warned_in", os.getpid())


@pytest.fixture(autouse=True)
def _nothing_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a fallback of its own, so that none begins past another's time."""
    monkeypatch.setattr(source, "local_fallback", PerProcess(Fallback))
