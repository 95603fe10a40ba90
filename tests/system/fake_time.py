"""A clock to be set, for the processes of a test alone (libfaketime)."""

from __future__ import annotations

from pathlib import Path

HOUR = 3600.0


class FakeTime:
    """UTC of the processes that run with its *environment*, set at will; CLOCK_BOOTTIME stays."""

    def __init__(self, folder: Path) -> None:
        library = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)
        assert library is not None, "Debian's faketime has another place for its library"
        self._file = folder / "faketime"
        self.set(0)
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # Its own wait with a time-out starves the threads of an interpreter with a GIL.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        }

    def set(self, offset: float) -> None:
        """Let UTC be *offset* seconds past the machine's."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{offset:+.3f}")
        new.rename(self._file)
