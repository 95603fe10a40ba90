"""Numbers as text in the alphabets that id kinds use, highest digit first."""

from __future__ import annotations

from functools import lru_cache

from uuidd.core.ids.checks import shown

DECIMAL = "0123456789"
"""Snowflake's."""

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""Flake's and KSUID's: in the order of ASCII, so that texts of equal length sort as numbers."""

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32, ULID's: without I, L, O and U."""

PUSH = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
"""Push ID's base 64, in the order of ASCII."""


def encode(value: int, alphabet: str, width: int = 0) -> str:
    """Return *value* in the digits of *alphabet*, with zeros before it up to *width*."""
    if value < 0:
        raise ValueError(f"the number is {shown(value)}; it must be 0 or more")
    pairs = _pairs(alphabet)
    base, found = len(pairs), []
    while value:
        # Two digits at a time, because to divide a long number takes most of the time.
        value, pair = divmod(value, base)
        found.append(pairs[pair])
    found.reverse()
    return "".join(found).lstrip(alphabet[0]).rjust(max(width, 1), alphabet[0])


def check_width(text: str, width: int, name: str) -> None:
    """Raise ValueError, naming the text, unless it has *width* characters, as each *name* has."""
    if len(text) != width:
        raise ValueError(
            f"{shown(text)} is not a {name}: it has {len(text)} characters, not {width}"
        )


def decode(text: str, alphabet: str, name: str, bits: int) -> int:
    """Return the number that *text* writes in *alphabet*; errors call it a *name*.

    Raises ValueError, naming the text, if it is empty, has a character outside the alphabet, or
    writes a number of more than *bits* bits.
    """
    value, base = 0, len(alphabet)
    if base <= INT_BASE and text and (table := _int_digits(alphabet)).keys() >= set(map(ord, text)):
        # Python's int() reads such text in C, many times faster than the loop below.
        value = int(text.translate(table), base)
        if not value >> bits:
            return value
        value = 0
    for place, character in enumerate(text):
        digit = alphabet.find(character)
        if digit < 0:
            raise ValueError(
                f"{shown(text)} is not a {name}: {character!r} at {place} is not in {alphabet}"
            )
        value = value * base + digit
        if value >> bits:
            raise ValueError(f"{shown(text)} is not a {name}: it has more than {bits} bits")
    if not text:
        raise ValueError(f"the text is empty; a {name} is expected")
    return value


INT_BASE = 36
"""The highest base that Python's int() reads."""


@lru_cache(maxsize=8)
def _int_digits(alphabet: str) -> dict[int, str]:
    """Return a table, by code point, from an alphabet's digits to those of Python's int()."""
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return {ord(own): digits[place] for place, own in enumerate(alphabet)}


@lru_cache(maxsize=8)
def _pairs(alphabet: str) -> list[str]:
    """Return all texts of two digits, in order."""
    return [high + low for high in alphabet for low in alphabet]
