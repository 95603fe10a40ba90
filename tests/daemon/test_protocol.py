"""The text of uuidd/protocol.md is complete, and its example of a client works."""

from __future__ import annotations

import json
import os
import re
import subprocess
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from tests.documents import ROOT, text
from tests.judge import v7_tick
from tests.rig import PATIENCE, Daemon
from tests.tools import need, output
from uuidd.core.ids.kinds import KINDS
from uuidd.core.timeline.leases import RESERVED
from uuidd.core.timeline.outcomes import Block, SteadyBlock
from uuidd.core.timeline.page import (
    DUE_AT,
    EPOCH_AT,
    HORIZON_AT,
    MAGIC_AT,
    PAGE_MAGIC,
    PAGE_WORDS,
    TOKENS_AT,
    Lease,
)
from uuidd.core.wire import methods

PROTOCOL = text("uuidd/protocol.md")
EXAMPLE = ROOT / "client" / "recipes" / "blocks.mjs"

CALLERS, BLOCKS = 4, 50
"""Processes that take at the same time, and blocks of each timeline that each of them takes."""


@pytest.mark.parametrize("whole", ["method", "params", "result"])
def test_everything_that_can_be_asked_is_told(whole: str) -> None:
    """The document names each method, kind and timeline, and each field of a block or a lease."""
    block = methods.pack_block(Block(0, 1, 0, 0))
    steady = methods.pack_block(SteadyBlock(0, 1, 0, None, 0))
    lease = methods.pack_lease(Lease(16, 16, 0, 1, 0))
    names = {
        "method": [*methods.METHODS, methods.IN_USE, methods.FALLBACK_IDS],
        "params": [*methods.TIMELINES, *KINDS],
        "result": [*block, *steady, *lease],
    }[whole]
    assert [name for name in names if not re.search(rf"`\"?{name}\"?`", PROTOCOL)] == []


def test_every_code_of_an_error_is_told() -> None:
    assert methods.RefusedError.__doc__ is not None
    codes = re.findall(r"``(\w+)``", methods.RefusedError.__doc__)
    assert len(codes) == 8
    assert [code for code in codes if f"\n| `{code}` |" not in PROTOCOL] == []


def test_the_page_is_told_as_it_is() -> None:
    """The place of each number, and the first one, which stands for the layout."""
    table = PROTOCOL.partition("| number | what it is |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| (\d+)", table, re.MULTILINE) == [
        str(place) for place in (MAGIC_AT, HORIZON_AT, DUE_AT, EPOCH_AT, TOKENS_AT)
    ]
    assert f"| {PAGE_MAGIC:#x}, which" in table
    assert f"{PAGE_WORDS} unsigned numbers" in PROTOCOL
    assert f"{PAGE_WORDS * 8:,} bytes with mmap(2)" in PROTOCOL
    assert f"only {RESERVED} lanes" in PROTOCOL


@pytest.mark.process
def test_blocks_taken_in_javascript_do_not_overlap() -> None:
    node = need("node")
    with Daemon() as daemon:
        environment = {**os.environ, "UUIDD_SOCKET": str(daemon.socket)}
        running = [
            subprocess.Popen(
                [node, str(EXAMPLE), str(BLOCKS)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for _ in range(CALLERS)
        ]
        printed = [each.communicate(timeout=PATIENCE)[0] for each in running]
    assert [each.returncode for each in running] == [0] * CALLERS, printed
    ids = [[UUID(word) for word in line.split()] for said in printed for line in said.splitlines()]
    assert len(ids) == CALLERS * BLOCKS
    assert len({(first.clock_seq, first.node) for first, *_ in ids}) == 1
    assert {(one.version, two.version) for one, _, two, _ in ids} == {(1, 7)}
    utc = sorted((first.time, last.time) for first, last, _, _ in ids)
    steady = sorted((v7_tick(first.int), v7_tick(last.int)) for _, _, first, last in ids)
    for blocks in (utc, steady):
        assert all(first <= last < following for (first, last), (following, _) in pairwise(blocks))


@pytest.mark.process
def test_every_result_can_be_read_in_javascript() -> None:
    """Also long lists, and the numbers below zero, fractions and words of the status."""
    node = need("node")
    with Daemon() as daemon:

        def called(*words: object) -> Any:
            environment = {**os.environ, "UUIDD_SOCKET": str(daemon.socket)}
            return json.loads(output(node, EXAMPLE, *words, env=environment))

        for count in (15, 16, 1000):
            assert [UUID(id).version for id in called("make", "v7", count)] == [7] * count
        status, expected = called("status"), daemon.call("status")
        assert shape(status) == shape(expected)
        for name in ("version", "pid", "node", "limits", "full_on", "leases"):
            assert status[name] == expected[name]


@pytest.mark.process
def test_a_wrong_call_in_javascript_is_one_line() -> None:
    node = need("node")
    with Daemon() as daemon:
        ran = subprocess.run(
            [node, EXAMPLE, "made"],
            env={**os.environ, "UUIDD_SOCKET": str(daemon.socket)},
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
        )
    assert ran.returncode == 1
    assert re.fullmatch("unknown_method: no method is called 'made'; .*\n", ran.stderr)


def shape(told: Any) -> Any:
    """Return the names in a status and the types of their values; JSON has one for numbers."""
    if isinstance(told, dict):
        return {name: shape(value) for name, value in told.items()}
    return float if type(told) is int else type(told)
