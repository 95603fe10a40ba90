"""The C extension of the client, if it is installed and may be used.

It is never needed: all that it does, the client also does in Python, more slowly. The environment
variable UUIDD_EXTENSION decides: with ``off`` the extension is not loaded, and with ``require`` it
is an error if it cannot be.
"""

from __future__ import annotations

import os
from _warnings import warn  # As in notices.py.
from types import ModuleType

from uuidd import __version__


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
        import uuidd_client._core as found

        _check_version(found)
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == "uuidd_client._core"
        cause = _why_absent() if absent else " ".join(str(error).split())
        problem = f"the C extension of uuidd_client cannot be used ({cause})"
        if wanted == "require":
            raise ImportError(
                f"{problem}, but UUIDD_EXTENSION is 'require': install uuidd again where there is a"
                " C compiler, or unset UUIDD_EXTENSION"
            ) from None
        if not absent:
            warn(
                f"{problem}; ids are made in Python, which takes longer: install uuidd again, or"
                " set UUIDD_EXTENSION=off",
                RuntimeWarning,
                # The line of the program that imports uuidd_client.
                stacklevel=4,
            )
        return None
    return found


def _check_version(found: ModuleType) -> None:
    """Raise ImportError if the extension is not of this version of the package."""
    version = getattr(found, "VERSION", None)
    if version != __version__:
        raise ImportError(f"{found.__file__}: it is of version {version}, not {__version__}")


def _why_absent() -> str:
    folder = os.path.dirname(__file__)
    if not os.path.isdir(folder):
        return "uuidd_client was imported from a zip"
    others = sorted(name for name in os.listdir(folder) if name.startswith("_core.cpython-"))
    return f"it is for another Python: {', '.join(others)}" if others else "it is not installed"


core = _load()
"""The extension, or None."""

implementation = "python" if core is None else "c"
"""What makes ids: ``c`` or ``python``."""
