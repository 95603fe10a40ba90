"""A block: what a caller is given to make ids from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """The ticks ``first .. first + count``, half open, under one clock sequence and node.

    They are the caller's alone: no other block of any process holds one of them under the same
    clock sequence and node.
    """

    first: int
    count: int
    clock_seq: int
    node: int
