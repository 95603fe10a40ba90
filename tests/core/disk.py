"""What the disk may hold of a host's state, where saves are under way, and fail."""

from __future__ import annotations

from hypothesis import strategies as st

from uuidd.core.timeline.state import State

FATES = st.sampled_from(["completed", "failed, old", "failed, new", "failed, either"])
"""How a save ends, and what the disk holds then."""


class Disk:
    """One of *states*: that of the last save that completed, or of any begun since.

    *flight* is the state of the save under way. *limits* are the states whose marks a daemon has to
    heed: that from which it started or which it saved last, and any that came after it.
    """

    def __init__(self, state: State | None = None) -> None:
        self.states = [state]
        self.limits = [state]
        self.flight: State | None = None

    def pick(self, number: int) -> State | None:
        """Return one of the states."""
        return self.states[number % len(self.states)]

    def start(self, state: State | None) -> None:
        """A daemon starts from *state*. A save of the one before it is not under way any more."""
        self.limits = [state]
        self.flight = None

    def begin(self, state: State) -> None:
        """A save of *state* gets under way."""
        self.flight = state
        self.limits.append(state)
        self.states.append(state)

    def end(self, fate: str) -> State:
        """The save ends, by one of FATES; return its state."""
        assert self.flight is not None
        state, self.flight = self.flight, None
        if fate == "completed":
            self.limits = [state]
        if fate in {"completed", "failed, new"}:
            self.states = [state]
        elif fate == "failed, old":
            self.states.pop()
        return state
