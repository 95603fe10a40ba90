"""uuidd: one daemon per host that owns the clock of its time-based ids."""

__version__ = "0.2.0"
"""Of the release. An installation may be of any commit after the one before: see ``version``."""


def version() -> str:
    """Return the version of this installation, with its commit if the build knew that.

    For example ``0.2.0+g1a2b3c4d5e6f``, and ``0.2.0`` without one.
    """
    # A build writes it (client/extension/build_hook.py).
    try:
        with open(__file__.removesuffix("__init__.py") + "version", encoding="ascii") as file:
            return file.read()
    except OSError:
        return __version__


def installing(extra: str = "") -> str:
    """Return the command that installs what uuidd needs, or what an extra needs, beside it."""
    # Not at the start: most programs need neither.
    import shlex
    import sys

    what = f"'uuidd[{extra}]'" if extra else "uuidd"
    return f"{shlex.quote(f'{sys.prefix}/bin/pip')} install {what}"
