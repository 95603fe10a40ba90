"""The C extension of the client, if it is installed and may be used.

It is never needed: all that it does, the client also does in Python, more slowly. The environment
variable UUIDD_EXTENSION decides: with ``off`` the extension is not loaded, and with ``require`` it
is an error if it cannot be.
"""

from __future__ import annotations

import os
import sys

# What importlib.machinery shows of it takes longer to import.
from _imp import extension_suffixes

from uuidd import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

_NAME = "uuidd_client._core"
_PLACE = os.path.join(os.path.dirname(__file__), "_core")


def _load() -> ModuleType | None:
    """Return the extension; None if it is not installed, or is not to be used.

    One that cannot be used counts as not installed, with a warning.

    Raises ImportError for a wrong UUIDD_EXTENSION, and if that requires an extension which is not
    installed, or cannot be used.
    """
    wanted = os.environ.get("UUIDD_EXTENSION") or None
    if wanted not in ("off", "require", None):
        raise ImportError(f"UUIDD_EXTENSION is {wanted!r}; it must be 'off', 'require', or not set")
    if wanted == "off":
        return None
    try:
        _check_size()
        __import__(_NAME)
        found = sys.modules[_NAME]
        _check_version(found)
    except (ImportError, SystemError) as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == _NAME
        cause = _why_absent() if absent else " ".join(str(error).split())
        problem = f"the C extension of uuidd_client cannot be used ({cause})"
        if wanted == "require":
            raise ImportError(
                f"{problem}, but UUIDD_EXTENSION is 'require': install uuidd again where there is a"
                " C compiler, or unset UUIDD_EXTENSION"
            ) from None
        if not absent:
            import warnings

            warnings.warn(
                f"{problem}; ids are made in Python, which takes longer: install uuidd again, or"
                " set UUIDD_EXTENSION=off",
                RuntimeWarning,
                # The line of the program that imports uuidd_client.
                stacklevel=4,
            )
        return None
    return found


def _check_size() -> None:
    """Raise ImportError if the file is too short, for example since the disk was full.

    The process would get a SIGBUS when it loads the file.
    """
    for suffix in extension_suffixes():
        try:
            with open(_PLACE + suffix, "rb") as file:
                # The header of a 64-bit ELF file says where its last part is: the table of its
                # sections.
                header = file.read(64)
                size = os.fstat(file.fileno()).st_size
        except (FileNotFoundError, NotADirectoryError):
            # A package in a zip has no folder, and Python loads no extension from one.
            continue
        except OSError as error:
            raise ImportError(f"{_PLACE}{suffix}: {error.strerror}") from error
        begin, entry, entries = (
            int.from_bytes(header[at:end], sys.byteorder)
            for at, end in ((40, 48), (58, 60), (60, 62))
        )
        if len(header) < 64 or size < begin + entry * entries:
            raise ImportError(f"{_PLACE}{suffix}: the file is cut short")
        return


def _check_version(found: ModuleType) -> None:
    """Raise ImportError if the extension is not of this version of the package."""
    version = getattr(found, "VERSION", None)
    if version != __version__:
        raise ImportError(f"{found.__file__}: it is of version {version}, not {__version__}")


def _why_absent() -> str:
    folder = os.path.dirname(_PLACE)
    if not os.path.isdir(folder):
        return "uuidd_client was imported from a zip"
    others = sorted(name for name in os.listdir(folder) if name.startswith("_core.cpython-"))
    return f"it is for another Python: {', '.join(others)}" if others else "it is not installed"


core = _load()
"""The extension, or None."""

implementation = "python" if core is None else "c"
"""What makes ids: ``c`` or ``python``."""
