from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kinds
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd.core.timeline.outcomes import Block, SteadyBlock
from uuidd.core.wire import methods, rpc
from uuidd.core.wire.methods import Make, RefusedError, Take

BLOCK = Block(0x1EC9414C232AB00, 300, 0x33C8, 0x9F6BDECED846)
RESULT = {
    "first": 0x1EC9414C232AB00,
    "unix_ms": 1_645_557_742_000,
    "tick_in_ms": 0,
    "count": 300,
    "clock_seq": 0x33C8,
    "node": b"\x9f\x6b\xde\xce\xd8\x46",
}
STEADY = SteadyBlock(0x1EC9414C232AB01, 300, 0x9F6BDECED846, 1023, 1_288_834_974_657)
STEADY_RESULT = {
    "first": 0x1EC9414C232AB01,
    "unix_ms": 1_645_557_742_000,
    "tick_in_ms": 1,
    "count": 300,
    "node": b"\x9f\x6b\xde\xce\xd8\x46",
    "worker": 1023,
    "epoch": 1_288_834_974_657,
}
TIMELINES = "utc, steady, snowflake"
KINDS = ", ".join(kinds.KINDS)


def refused(method: Any, params: Any) -> tuple[str, str]:
    """Return code and message with which a call is refused."""
    with pytest.raises(RefusedError) as caught:
        methods.parse(method, params)
    assert str(caught.value) == caught.value.message
    return caught.value.code, caught.value.message


@pytest.mark.parametrize(
    ("method", "params", "call"),
    [
        ("take", ["utc", 1], Take("utc", 1, False, True)),
        ("take", ["utc", 1_000_000], Take("utc", 1_000_000, False, True)),
        ("take", ["utc", 300, False], Take("utc", 300, False, True)),
        ("take", ["utc", 300, True], Take("utc", 300, True, True)),
        ("take", ["utc", 300, True, True], Take("utc", 300, True, True)),
        ("take", ["utc", 300, True, False], Take("utc", 300, True, False)),
        ("take", ["steady", 1], Take("steady", 1, False, True)),
        ("take", ["steady", 1_000_000, True], Take("steady", 1_000_000, True, True)),
        ("make", ["v1"], Make("v1", 1, True)),
        ("make", ["v4", 1], Make("v4", 1, True)),
        ("make", ["v6", 1000], Make("v6", 1000, True)),
        ("make", ["v6", 1000, False], Make("v6", 1000, False)),
        ("status", [], "status"),
        # A client whose language has no text but bytes is understood.
        (b"take", [b"steady", 5, True], Take("steady", 5, True, True)),
        (b"make", [b"v7"], Make("v7", 1, True)),
        (b"status", [], "status"),
    ],
)
def test_a_call_is_read(method: str | bytes, params: list[Any], call: Take | Make | str) -> None:
    assert methods.parse(method, params) == call


@pytest.mark.parametrize(
    ("method", "name", "most"), [("take", "utc", 1_000_000), ("make", "v1", 1000)]
)
@pytest.mark.parametrize("count", [0, -1, "most + 1", 2**64 - 1, True, False, 1.0, "1", None])
def test_a_count_out_of_range_is_refused(method: str, name: str, most: int, count: Any) -> None:
    count = most + 1 if count == "most + 1" else count
    assert refused(method, [name, count]) == (
        "bad_params",
        f"count is {count!r}; it must be an int, 1 to {most}",
    )


@pytest.mark.parametrize("flag", [0, 1, 1.0, None, "true"])
@pytest.mark.parametrize(
    ("name", "method", "params"),
    [
        ("whole", "take", ["utc", 1]),
        ("wait", "take", ["utc", 1, True]),
        ("wait", "make", ["v1", 1]),
    ],
)
def test_a_flag_that_is_no_boolean_is_refused(
    name: str, method: str, params: list[Any], flag: Any
) -> None:
    assert refused(method, [*params, flag]) == (
        "bad_params",
        f"{name} is {flag!r}; it must be true or false",
    )


@pytest.mark.parametrize("name", ["UTC", "", "utc ", "v2", b"UTC", b"\xff", None, True, 0])
@pytest.mark.parametrize(
    ("method", "param", "known"), [("take", "timeline", TIMELINES), ("make", "kind", KINDS)]
)
def test_an_unknown_name_is_refused(method: str, param: str, known: str, name: Any) -> None:
    assert refused(method, [name, 1]) == ("bad_params", f"{param} is {name!r}; there are {known}")


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("take", [], f"timeline is missing; there are {TIMELINES}"),
        ("take", ["utc"], "count is missing; it must be 1 to 1000000"),
        ("make", [], f"kind is missing; there are {KINDS}"),
        (
            "take",
            ["utc", 1, False, True, 0],
            "5 params are too many; take takes timeline, count, whole and wait",
        ),
        ("make", ["v1", 1, True, 0], "4 params are too many; make takes kind, count and wait"),
        ("status", [None], "1 params are too many; status takes none"),
    ],
)
def test_missing_or_too_many_params_are_refused(
    method: str, params: list[Any], message: str
) -> None:
    """What has no default must be given, and no param is passed over in silence."""
    assert refused(method, params) == ("bad_params", message)


@pytest.mark.parametrize(
    ("params", "shown"),
    [(None, "None"), ({}, "a map"), ("utc", "'utc'"), (b"utc", "b'utc'"), (1, "1"), (True, "True")],
)
@pytest.mark.parametrize("method", ["take", "make", "status"])
def test_params_that_are_no_array_are_refused(method: str, params: Any, shown: str) -> None:
    assert refused(method, params) == ("bad_params", f"params are {shown}; they must be an array")


@pytest.mark.parametrize(
    "method", ["", "Take", "take ", "stop", "\ufffd", None, True, 0, 1.5, b"\xfftake"]
)
def test_an_unknown_method_is_refused(method: Any) -> None:
    assert refused(method, []) == (
        "unknown_method",
        f"no method is called {method!r}; there are lease, make, renew, status, take",
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [([], "an array"), (["utc"], "an array"), ({}, "a map"), ({"a": 1}, "a map")],
)
def test_an_array_or_map_is_refused_as_such(value: Any, shown: str) -> None:
    assert refused("take", [value, 1]) == (
        "bad_params",
        f"timeline is {shown}; there are {TIMELINES}",
    )
    assert refused("make", ["v1", value])[1].startswith(f"count is {shown};")
    assert refused("take", ["utc", 1, value])[1].startswith(f"whole is {shown};")


def test_a_long_value_is_shown_short() -> None:
    code, message = refused("take", ["x" * 4000, 1])
    assert message == f"timeline is '{'x' * 56}...; there are {TIMELINES}"
    assert code == "bad_params"
    assert refused("x" * 58, [])[1].startswith(f"no method is called '{'x' * 58}'; ")
    assert refused("x" * 59, [])[1].startswith(f"no method is called '{'x' * 56}...; ")


@pytest.mark.parametrize("head", [b"\x91", b"\x81\xa0"])
@pytest.mark.parametrize(("method", "more"), [("take", [1]), ("make", []), ("status", [])])
def test_a_deep_value_is_refused_like_any_other(head: bytes, method: str, more: list[Any]) -> None:
    """A param of a thousand arrays or maps within each other, which the reader lets by, is refused.

    Python's repr() cannot follow so deep.
    """
    deep = b"\x94\x00\x01\xa1x\x91" + head * 1010 + b"\xc0"
    ((request, _),) = rpc.unpack_requests(deep, limit=4096)
    assert refused(method, [*request.params, *more])[0] == "bad_params"


def test_a_deep_result_is_no_block() -> None:
    response = rpc.unpack_response(b"\x94\x01\x01\xc0" + b"\x91" * 1010 + b"\xc0")
    assert response is not None
    with pytest.raises(ValueError, match="an array is not a block"):
        methods.unpack_block(response.result)


Unpack = Callable[[Any], Block | SteadyBlock]
TWO = pytest.mark.parametrize(
    ("block", "result", "unpack"),
    [
        pytest.param(BLOCK, RESULT, methods.unpack_block, id="utc"),
        pytest.param(STEADY, STEADY_RESULT, methods.unpack_steady_block, id="steady"),
    ],
)


@TWO
@pytest.mark.parametrize(
    ("epoch", "more"), [(0, {}), (7, {"page_epoch": 7})], ids=["", "after a clone"]
)
def test_a_take_result_has_the_blocks_fields(
    block: Block | SteadyBlock,
    result: dict[str, Any],
    unpack: Unpack,
    epoch: int,
    more: dict[str, int],
) -> None:
    packed = methods.pack_block(block, epoch)
    assert packed == {**result, **more}
    assert unpack(packed) == block
    assert methods.unpack_page_epoch(packed) == epoch
    assert methods.pack_block(block._replace(node=1))["node"] == b"\0\0\0\0\0\1"


@TWO
def test_a_result_may_have_more_fields_but_not_fewer(
    block: Block | SteadyBlock, result: dict[str, Any], unpack: Unpack
) -> None:
    assert unpack({**result, "more": 1}) == block
    for name in block._fields:
        with pytest.raises(ValueError, match="is not a block"):
            unpack({key: value for key, value in result.items() if key != name})


NO_BLOCKS: list[Any] = [None, True, 5, "x", [], {}, [1, 2, 3, b"123456"]]


@pytest.mark.parametrize(
    ("unpack", "result"),
    [
        *((methods.unpack_block, other) for other in (*NO_BLOCKS, STEADY_RESULT)),
        *((methods.unpack_steady_block, other) for other in (*NO_BLOCKS, RESULT)),
    ],
)
def test_another_value_is_no_block(unpack: Unpack, result: Any) -> None:
    """Of the other timeline neither: its ids would not be the caller's alone."""
    with pytest.raises(ValueError, match="is not a block"):
        unpack(result)


ENDS: dict[str, tuple[int, int]] = {
    "first": (0, 2**60 - 300),
    "count": (1, 1_000_000),
    "clock_seq": (0, 2**14 - 1),
    "worker": (0, 1023),
    "epoch": (0, 2**48 - 1),
}
NODES_OF_NONE = [b"\1\2\3\4\5", b"\1\2\3\4\5\6\7", "123456", 1]


@TWO
def test_a_field_is_of_a_block_up_to_its_bounds(
    block: Block | SteadyBlock, result: dict[str, Any], unpack: Unpack
) -> None:
    """A client makes no ids from a field that no block has, nor from True for a number."""
    refused = [{"node": node} for node in NODES_OF_NONE]
    for name in block._fields:
        if name == "node":
            continue
        low, high = ENDS[name]
        if name == "first" and isinstance(block, SteadyBlock):
            # No kind of the steady timeline has a form for a time before 1970.
            low = UNIX_EPOCH
        for value in (low, high):
            assert methods.pack_block(unpack({**result, name: value}))[name] == value
        refused += [{name: value} for value in (low - 1, high + 1, True, 1.0, "1", b"\0")]
    for change in refused:
        with pytest.raises(ValueError, match="is not a block"):
            unpack({**result, **change})


@given(st.integers(UNIX_EPOCH, 2**60 - 1))
def test_first_is_exact_for_clients_whose_numbers_have_53_bits(first: int) -> None:
    result = methods.pack_block(Block(first, 1, 0, 0))
    unix_ms, tick_in_ms = float(result["unix_ms"]), float(result["tick_in_ms"])
    assert float(1 << 59) == float((1 << 59) + 1)
    assert 0 <= unix_ms < 2**53
    assert 0 <= tick_in_ms < 10_000
    assert int(unix_ms) * 10_000 + int(tick_in_ms) + UNIX_EPOCH == first
