"""The pure part: no I/O, no clock, no randomness of its own; all three are arguments."""
