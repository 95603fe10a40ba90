"""Numbers as text in the alphabets that id kinds use, highest digit first."""

from __future__ import annotations

from functools import lru_cache

from uuidd.core.ids.checks import shown

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""Flake's and KSUID's: in the order of ASCII, so that texts of equal length sort as numbers."""

BASE58 = "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"
"""Flickr's, which Go's Snowflake library writes: without 0, l, I and O."""

BASE32 = "ybndrfg8ejkmcpqxot1uwisza345h769"
"""z-base-32, which Go's Snowflake library writes."""

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32, ULID's: without I, L, O and U."""

PUSH = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
"""Push ID's base 64, in the order of ASCII."""


def encode(value: int, alphabet: str, width: int = 0) -> str:
    """Give *value* in the digits of *alphabet*, at least one, and zeros before up to *width*."""
    if value < 0:
        raise ValueError(f"the number is {shown(value)}; it must be 0 or more")
    base = len(alphabet)
    digits = []
    while value:
        value, digit = divmod(value, base)
        digits.append(alphabet[digit])
    return "".join(reversed(digits)).rjust(max(width, 1), alphabet[0])


def decode(text: str, alphabet: str, name: str, bits: int) -> int:
    """Give the number that *text* writes in *alphabet*; *name* says what it should be.

    Raises ValueError, naming the text, when a character is not in the alphabet, there is none, or
    the number has more than *bits* bits.
    """
    value, base = 0, len(alphabet)
    if base <= PYTHONS and text and (table := _pythons(alphabet)).keys() >= set(map(ord, text)):
        # In C, for such text is read by the hundred thousand.
        value = int(text.translate(table), base)
        if not value >> bits:
            return value
        value = 0
    for place, character in enumerate(text):
        digit = alphabet.find(character)
        if digit < 0:
            raise ValueError(
                f"{shown(text)} is not a {name}: {character!r} at {place} is not of {alphabet}"
            )
        value = value * base + digit
        if value >> bits:
            raise ValueError(
                f"{shown(text)} is not a {name}: it is above the highest of {bits} bits"
            )
    if not text:
        raise ValueError(f"the text is empty; a {name} is expected")
    return value


PYTHONS = 36
"""The highest base whose digits Python's int() reads."""


@lru_cache(maxsize=8)
def _pythons(alphabet: str) -> dict[int, str]:
    """Give the digit that Python has for each of an alphabet's, by its number in Unicode."""
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return {ord(own): digits[place] for place, own in enumerate(alphabet)}
