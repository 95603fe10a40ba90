"""The error of what the daemon and its commands refuse."""


class Refused(Exception):
    """What was asked for cannot be done.

    Its text is one line, which names the value, the rule and the way out.
    """
