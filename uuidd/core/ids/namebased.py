"""v3 and v5: a digest of a namespace and a name (RFC 9562, 5.3 and 5.5)."""

from __future__ import annotations

import hashlib

from uuidd.core.ids import uuids
from uuidd.core.ids.fields import check

NAMESPACES = {
    "dns": 0x6BA7B810_9DAD_11D1_80B4_00C04FD430C8,
    "url": 0x6BA7B811_9DAD_11D1_80B4_00C04FD430C8,
    "oid": 0x6BA7B812_9DAD_11D1_80B4_00C04FD430C8,
    "x500": 0x6BA7B814_9DAD_11D1_80B4_00C04FD430C8,
}
"""The namespaces that have names (RFC 9562, 6.6)."""


def v3(namespace: int, name: str | bytes) -> int:
    """Give the v3 UUID, by MD5, of a name (text in UTF-8) in a namespace, itself a UUID."""
    data = _octets(namespace, name)
    return _stamped(hashlib.md5(data, usedforsecurity=False).digest(), 3)


def v5(namespace: int, name: str | bytes) -> int:
    """Give the v5 UUID, by SHA-1, of a name (text in UTF-8) in a namespace, itself a UUID."""
    data = _octets(namespace, name)
    return _stamped(hashlib.sha1(data, usedforsecurity=False).digest()[:16], 5)


def namespace(text: str) -> int:
    """Give the namespace that *text* names (dns, url, oid, x500, in any case) or spells as a UUID.

    Raises ValueError, naming the text, for anything else.
    """
    known = NAMESPACES.get(text.lower())
    if known is not None:
        return known
    try:
        return uuids.from_text(text)
    except ValueError:
        raise ValueError(
            f"namespace is {text!r}; it must be a UUID or one of {', '.join(NAMESPACES)}"
        ) from None


def _octets(namespace: int, name: str | bytes) -> bytes:
    head = check("namespace", namespace, 128).to_bytes(16, "big")
    return head + (name.encode() if isinstance(name, str) else name)


def _stamped(digest: bytes, version: int) -> int:
    value = int.from_bytes(digest, "big")
    return uuids.stamp(value & ~(0xF << 76 | 0b11 << 62), version)
