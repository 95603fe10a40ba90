"""What a lease's holder knows: the lease, and the layout of the page (``leases`` has the rules)."""

from __future__ import annotations

from uuidd.core.typed import NamedTuple

PAGE_MAGIC = 0x7575_6964_6C6E_0001
"""The first word of a page: ``uuidln``, and the version of its layout."""

MAGIC_AT, HORIZON_AT, DUE_AT, EPOCH_AT, TOKENS_AT = 0, 1, 2, 3, 8
"""The words of a page: the magic, the horizon, the tick from which a holder says that it makes ids
(because half of the reach is used), the epoch, which counts the clones of the machine that were
noticed, and from ``TOKENS_AT`` on the token of each lane."""

PAGE_WORDS = 512
"""Words of 64 bits in a page, in the byte order of the host: 4,096 bytes."""

TOKEN_BITS = 64


class Lease(NamedTuple):
    """A lane, for one holder.

    The holder may use the ticks from *begin* on, as they pass, while *token* is in the page.
    """

    lane: int
    clock_seq: int
    node: int
    token: int
    begin: int
