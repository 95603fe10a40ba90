"""How a host tells that its machine was cloned: one file for each signal.

Each raises NoSignal, with the reason in a few words, on a host that does not have it.
"""

from __future__ import annotations


class NoSignal(Exception):
    """The host does not have this signal; a few words that say why."""
