"""uuidd: one daemon per host that owns the clock of its time-based ids."""

__version__ = "0.1.0"
