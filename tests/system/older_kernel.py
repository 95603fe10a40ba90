"""``uuidd`` as on a kernel without SO_PASSRIGHTS."""

from __future__ import annotations

from uuidd.cli import main as uuidd
from uuidd.server import descriptors


def main(words: list[str]) -> int:
    """Run the command, in a process of its own."""
    # An option that no kernel has: it can neither be set nor be asked for.
    descriptors.SO_PASSRIGHTS = 0x7FFF
    return uuidd(words)
