"""The error of what the daemon and its commands refuse, and how it is shown."""


class Refused(Exception):
    """What was asked for cannot be done.

    Its text is one line, which names the value, the rule and the way out.
    """


def printable(text: str) -> str:
    """Return *text* as one line; a name in it, as of a file, may hold almost any characters."""
    return text if text.isprintable() else ascii(text)[1:-1]
