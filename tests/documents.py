"""The documents that people read, and what tests look for in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

DOCUMENTS = (
    "README.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "client/README.md",
    "systemd/README.md",
    "systemd/fleet.md",
    "systemd/clones.md",
    "systemd/runbooks.md",
    "uuidd/README.md",
    "uuidd/decisions.md",
    "uuidd/status.md",
    "uuidd/protocol.md",
    ".github/CONTRIBUTING.md",
    "tests/README.md",
    "tests/benchmarks/README.md",
)

FOLDERS = (
    "",
    "uuidd",
    "uuidd/server",
    "uuidd/core/ids",
    "uuidd/core/timeline",
    "client/extension",
    "client/uuidd_client",
    "client/recipes",
    "systemd",
    "systemd/kubernetes",
    "tests",
    "tests/benchmarks",
)
"""Where a file lies that a document names by the end of its path."""


def text(name: str) -> str:
    """Return the text of a document."""
    return (ROOT / name).read_text()


def blocks(name: str, language: str) -> list[str]:
    """Return the blocks of code in a document that are marked as *language*."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text(name), flags=re.MULTILINE | re.DOTALL)


def anchors(name: str) -> set[str]:
    """Return what a link to a heading of a document may have after its ``#``."""
    headings = re.findall(r"^#+ (.*)$", text(name), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
