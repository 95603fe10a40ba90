from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.ids import kinds
from uuidd.core.ids.layouts import LAYOUTS
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd.core.timeline import Block, SteadyBlock
from uuidd.core.wire import methods, rpc
from uuidd.core.wire.methods import Make, RefusedError, Status, Take

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
TIMELINES = ", ".join(methods.TIMELINES)
KINDS = ", ".join(kinds.KINDS)


def refused(method: Any, params: Any) -> tuple[str, str]:
    """Give code and message with which a call is refused."""
    with pytest.raises(RefusedError) as caught:
        methods.parse(method, params)
    assert str(caught.value) == caught.value.message
    return caught.value.code, caught.value.message


# --- calls


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
        ("status", [], Status()),
    ],
)
def test_a_call_is_read(method: str, params: list[Any], call: Take | Make | Status) -> None:
    """A method with params in their ranges is a call, with what was left out at its default."""
    assert methods.parse(method, params) == call


@pytest.mark.parametrize(
    ("method", "params", "call"),
    [
        (b"take", [b"steady", 5, True], Take("steady", 5, True, True)),
        (b"make", [b"v7"], Make("v7", 1, True)),
        (b"status", [], Status()),
    ],
)
def test_bytes_that_are_utf8_are_text(
    method: bytes, params: list[Any], call: Take | Make | Status
) -> None:
    """A client whose language has no text but bytes, or that sends names so, is understood."""
    assert methods.parse(method, params) == call


@pytest.mark.parametrize("kind", list(LAYOUTS))
def test_every_kind_that_is_made_is_a_make(kind: str) -> None:
    """What can be made of the clock or of random bits alone is a kind of ``make``."""
    assert methods.parse("make", [kind, 7]) == Make(kind, 7, True)


def test_the_names_of_timelines_and_kinds() -> None:
    """These names are the wire's, which callers in other languages rely on."""
    assert methods.TIMELINES == ("utc", "steady")
    assert set(kinds.KINDS) == {
        *("v1", "v4", "v6", "v7", "snowflake", "flake", "ulid", "ksuid", "push_id")
    }


@pytest.mark.parametrize("count", [0, -1, 1_000_001, 2**64 - 1, True, False, 1.0, "1", None])
def test_take_refuses_a_count_out_of_range(count: Any) -> None:
    """A count is an int of 1 to 1,000,000, and neither a boolean nor a float."""
    assert refused("take", ["utc", count]) == (
        "bad_params",
        f"count is {count!r}; it must be an int, 1 to 1000000",
    )


@pytest.mark.parametrize("count", [0, -1, 1001, 2**64 - 1, True, False, 1.0, "1", None])
def test_make_refuses_a_count_out_of_range(count: Any) -> None:
    """A count of ids is an int of 1 to 1,000, and neither a boolean nor a float."""
    assert refused("make", ["v1", count]) == (
        "bad_params",
        f"count is {count!r}; it must be an int, 1 to 1000",
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
    """Whole and wait are true or false, not an int that equals one."""
    assert refused(method, [*params, flag]) == (
        "bad_params",
        f"{name} is {flag!r}; it must be true or false",
    )


@pytest.mark.parametrize("timeline", ["UTC", "", "utc ", "Steady", b"UTC", b"\xff", None, True, 0])
def test_take_refuses_an_unknown_timeline(timeline: Any) -> None:
    """A timeline is one of the known names as text; the refusal lists them."""
    assert refused("take", [timeline, 1]) == (
        "bad_params",
        f"timeline is {timeline!r}; there are {TIMELINES}",
    )


@pytest.mark.parametrize("kind", ["V1", "", "v2", b"v2", b"\xff", None, True, 1])
def test_make_refuses_an_unknown_kind(kind: Any) -> None:
    """A kind is one of the known names as text; the refusal lists them."""
    assert refused("make", [kind]) == ("bad_params", f"kind is {kind!r}; there are {KINDS}")


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("take", [], f"timeline is missing; there are {TIMELINES}"),
        ("take", ["utc"], "count is missing; it must be 1 to 1000000"),
        ("make", [], f"kind is missing; there are {KINDS}"),
    ],
)
def test_a_missing_param_is_named(method: str, params: list[Any], message: str) -> None:
    """What has no default must be given."""
    assert refused(method, params) == ("bad_params", message)


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        (
            "take",
            ["utc", 1, False, True, 0],
            "5 params are too many; take takes timeline, count, whole and wait",
        ),
        ("make", ["v1", 1, True, 0], "4 params are too many; make takes kind, count and wait"),
        ("status", [None], "1 params are too many; status takes none"),
    ],
)
def test_too_many_params_are_refused(method: str, params: list[Any], message: str) -> None:
    """No param is passed over in silence."""
    assert refused(method, params) == ("bad_params", message)


@pytest.mark.parametrize(
    ("params", "shown"),
    [(None, "None"), ({}, "a map"), ("utc", "'utc'"), (b"utc", "b'utc'"), (1, "1"), (True, "True")],
)
@pytest.mark.parametrize("method", ["take", "make", "status"])
def test_params_that_are_no_array_are_refused(method: str, params: Any, shown: str) -> None:
    """Params by name, or none at all, are told apart from a mistake in one of them."""
    assert refused(method, params) == ("bad_params", f"params are {shown}; they must be an array")


@pytest.mark.parametrize(
    "method", ["", "Take", "take ", "stop", "\ufffd", None, True, 0, 1.5, b"\xfftake"]
)
def test_an_unknown_method_is_refused(method: Any) -> None:
    """A method that there is not has a code of its own, and the message lists those there are."""
    assert refused(method, []) == (
        "unknown_method",
        f"no method is called {method!r}; there are make, status, take",
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [([], "an array"), (["utc"], "an array"), ({}, "a map"), ({"a": 1}, "a map")],
)
def test_an_array_or_map_is_refused_as_such(value: Any, shown: str) -> None:
    """Where an array or map was sent for a plain value, the refusal says so without its items."""
    assert refused("take", [value, 1]) == (
        "bad_params",
        f"timeline is {shown}; there are {TIMELINES}",
    )
    assert refused("make", ["v1", value])[1].startswith(f"count is {shown};")
    assert refused("take", ["utc", 1, value])[1].startswith(f"whole is {shown};")


def test_a_long_value_is_shown_short() -> None:
    """A refusal does not send a long value back: 57 characters of it are enough."""
    code, message = refused("take", ["x" * 4000, 1])
    assert message == f"timeline is '{'x' * 56}...; there are {TIMELINES}"
    assert code == "bad_params"


def test_a_value_of_60_characters_is_shown_whole() -> None:
    """Only what is longer than 60 characters is cut."""
    assert refused("x" * 58, [])[1].startswith(f"no method is called '{'x' * 58}'; ")


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
    """A client that is answered with arrays a thousand deep has no block either."""
    response = rpc.unpack_response(b"\x94\x01\x01\xc0" + b"\x91" * 1010 + b"\xc0")
    assert response is not None
    with pytest.raises(ValueError, match="an array is not a block"):
        methods.unpack_block(response.result)


# --- results


def test_a_take_result_has_the_blocks_fields() -> None:
    """The result is a map of first in both forms, count, clock_seq, and the node as 6 bytes."""
    assert methods.pack_block(BLOCK) == RESULT


def test_a_node_keeps_its_leading_zeros() -> None:
    """A node is 6 bytes, whatever its value."""
    assert methods.pack_block(Block(0, 1, 0, 1))["node"] == b"\0\0\0\0\0\1"


@given(
    st.integers(0, 2**60 - 10**6),
    st.integers(1, 10**6),
    st.integers(0, 2**14 - 1),
    st.integers(0, 2**48 - 1),
)
def test_a_block_goes_over_the_wire_unchanged(
    first: int, count: int, clock_seq: int, node: int
) -> None:
    """Any block comes out of MessagePack as it went in."""
    block = Block(first, count, clock_seq, node)
    response = rpc.unpack_response(rpc.pack_response(1, methods.pack_block(block)))
    assert response is not None
    assert methods.unpack_block(response.result) == block


def test_a_result_may_have_more_fields() -> None:
    """A client reads the result of a newer daemon that tells more."""
    assert methods.unpack_block({**RESULT, "more": 1}) == BLOCK


@pytest.mark.parametrize("name", ["first", "count", "clock_seq", "node"])
def test_a_result_without_a_field_is_no_block(name: str) -> None:
    """All four fields are needed."""
    with pytest.raises(ValueError, match="is not a block"):
        methods.unpack_block({key: value for key, value in RESULT.items() if key != name})


@pytest.mark.parametrize(
    "change",
    [
        {"first": -1},
        {"first": 2**60 - 299},
        {"first": 1.0},
        {"first": "1"},
        {"count": 0},
        {"count": -1},
        {"count": 1_000_001},
        {"count": None},
        {"clock_seq": -1},
        {"clock_seq": 2**14},
        {"clock_seq": b"\0"},
        {"node": b"\1\2\3\4\5"},
        {"node": b"\1\2\3\4\5\6\7"},
        {"node": "123456"},
        {"node": 1},
    ],
)
def test_a_field_out_of_range_is_no_block(change: dict[str, Any]) -> None:
    """A client makes no ids from a field that no block has."""
    with pytest.raises(ValueError, match="is not a block"):
        methods.unpack_block({**RESULT, **change})


@pytest.mark.parametrize("change", [{"first": 2**60 - 300}, {"first": 0}, {"clock_seq": 2**14 - 1}])
def test_a_field_at_its_bound_is_a_block(change: dict[str, Any]) -> None:
    """The first and last values that fit are a block's."""
    result = methods.pack_block(methods.unpack_block({**RESULT, **change}))
    assert {name: result[name] for name in change} == change


@pytest.mark.parametrize("count", [1, 1_000_000])
def test_a_count_at_its_bound_is_a_block(count: int) -> None:
    """A block has 1 to 1,000,000 ticks."""
    assert methods.unpack_block({**RESULT, "count": count}).count == count


@pytest.mark.parametrize("name", ["first", "count", "clock_seq"])
def test_a_boolean_field_is_no_block(name: str) -> None:
    """True stands for no number in a result either."""
    with pytest.raises(ValueError, match="is not a block"):
        methods.unpack_block({**RESULT, name: True})


@pytest.mark.parametrize("result", [None, True, 5, "x", [], {}, [1, 2, 3, b"123456"]])
def test_another_value_is_no_block(result: Any) -> None:
    """Only a map can be a block."""
    with pytest.raises(ValueError, match="is not a block"):
        methods.unpack_block(result)


@given(st.integers(UNIX_EPOCH, 2**60 - 1))
def test_first_is_told_exactly_to_who_has_53_bits(first: int) -> None:
    """Where numbers are exact below 2**53 only, the milliseconds and the tick in the last do."""
    result = methods.pack_block(Block(first, 1, 0, 0))
    unix_ms, tick_in_ms = float(result["unix_ms"]), float(result["tick_in_ms"])
    assert 0 <= unix_ms < 2**53
    assert 0 <= tick_in_ms < 10_000
    assert int(unix_ms) * 10_000 + int(tick_in_ms) + UNIX_EPOCH == first


def test_first_itself_is_rounded_where_numbers_have_53_bits() -> None:
    """As a float two different firsts of today are the same: that is why it is told twice."""
    assert float(RESULT["first"]) == float(RESULT["first"] + 1)  # type: ignore[operator, arg-type]


# --- results of steady


def test_a_steady_take_result_has_the_blocks_fields() -> None:
    """The result has first in both forms, count, the node as 6 bytes, worker, epoch in Unix ms."""
    assert methods.pack_block(STEADY) == STEADY_RESULT


def test_a_host_without_a_worker_number_tells_nil() -> None:
    """Where no worker number was chosen the result has none, rather than 0."""
    result = methods.pack_block(STEADY._replace(worker=None))
    assert result == {**STEADY_RESULT, "worker": None}
    assert methods.unpack_steady_block(result) == STEADY._replace(worker=None)


@given(
    st.integers(UNIX_EPOCH, 2**60 - 10**6),
    st.integers(1, 10**6),
    st.integers(0, 2**48 - 1),
    st.none() | st.integers(0, 1023),
    st.integers(0, 2**53),
)
def test_a_steady_block_goes_over_the_wire_unchanged(
    first: int, count: int, node: int, worker: int | None, epoch: int
) -> None:
    """Any block of the steady timeline comes out of MessagePack as it went in."""
    block = SteadyBlock(first, count, node, worker, epoch)
    response = rpc.unpack_response(rpc.pack_response(1, methods.pack_block(block)))
    assert response is not None
    assert methods.unpack_steady_block(response.result) == block


def test_a_steady_result_may_have_more_fields() -> None:
    """A client reads the result of a newer daemon that tells more."""
    assert methods.unpack_steady_block({**STEADY_RESULT, "more": 1}) == STEADY


@pytest.mark.parametrize("name", ["first", "count", "node", "worker", "epoch"])
def test_a_steady_result_without_a_field_is_no_block(name: str) -> None:
    """All five fields are needed, worker too: only nil says that there is none."""
    with pytest.raises(ValueError, match="is not a block"):
        methods.unpack_steady_block(
            {key: value for key, value in STEADY_RESULT.items() if key != name}
        )


@pytest.mark.parametrize(
    "change",
    [
        {"first": UNIX_EPOCH - 1},
        {"first": -1},
        {"first": 2**60 - 299},
        {"first": 1.0},
        {"count": 0},
        {"count": -1},
        {"count": 1_000_001},
        {"count": None},
        {"node": b"\1\2\3\4\5"},
        {"node": b"\1\2\3\4\5\6\7"},
        {"node": "123456"},
        {"worker": -1},
        {"worker": 1024},
        {"worker": 1.0},
        {"worker": "1"},
        {"epoch": -1},
        {"epoch": None},
        {"epoch": 1.0},
    ],
)
def test_a_steady_field_out_of_range_is_no_block(change: dict[str, Any]) -> None:
    """A client makes no ids from a field that no block has."""
    with pytest.raises(ValueError, match="is not a block"):
        methods.unpack_steady_block({**STEADY_RESULT, **change})


@pytest.mark.parametrize("name", ["first", "count", "worker", "epoch"])
def test_a_boolean_steady_field_is_no_block(name: str) -> None:
    """True stands for no number in a result either."""
    with pytest.raises(ValueError, match="is not a block"):
        methods.unpack_steady_block({**STEADY_RESULT, name: True})


@pytest.mark.parametrize(
    "change",
    [
        {"first": UNIX_EPOCH},
        {"first": 2**60 - 300},
        {"count": 1},
        {"count": 1_000_000},
        {"worker": 0},
        {"worker": 1023},
        {"epoch": 0},
    ],
)
def test_a_steady_field_at_its_bound_is_a_block(change: dict[str, Any]) -> None:
    """The first and last values that fit are a block's."""
    result = methods.pack_block(methods.unpack_steady_block({**STEADY_RESULT, **change}))
    assert {name: result[name] for name in change} == change


@pytest.mark.parametrize("result", [None, True, 5, "x", [], {}, [1, 2, b"123456", 1, 1]])
def test_another_value_is_no_steady_block(result: Any) -> None:
    """Only a map can be a block."""
    with pytest.raises(ValueError, match="is not a block"):
        methods.unpack_steady_block(result)


def test_blocks_of_the_two_timelines_are_told_apart() -> None:
    """A block of one timeline is none of the other: its ids would not be the caller's alone."""
    with pytest.raises(ValueError, match="is not a block"):
        methods.unpack_block(STEADY_RESULT)
    with pytest.raises(ValueError, match="is not a block"):
        methods.unpack_steady_block(RESULT)


# --- properties

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.integers(-3, 3)
    | st.floats()
    | st.sampled_from([*methods.TIMELINES, *kinds.KINDS])
    | st.text(max_size=70)
    | st.binary(max_size=8)
    | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=4)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
METHODS = st.sampled_from(["take", "make", "status"])


@given(METHODS | st.text(max_size=70), st.lists(VALUES, max_size=5))
def test_any_params_are_a_call_or_refused(method: str, params: list[Any]) -> None:
    """Whatever is asked is a call in range, or a refusal of a known code in one short line."""
    answer: Take | Make | Status | RefusedError
    try:
        answer = methods.parse(method, params)
    except RefusedError as error:
        answer = error
    match answer:
        case RefusedError(code=code, message=message):
            assert code in {"bad_params", "unknown_method"}
            assert len(message) < 160
            assert "\n" not in message
        case Take(timeline, count, whole):
            assert timeline in {"utc", "steady"}
            assert type(count) is int
            assert 1 <= count <= 1_000_000
            assert type(whole) is bool
        case Make(kind, count):
            assert kind in LAYOUTS
            assert type(count) is int
            assert 1 <= count <= 1000


@given(VALUES | st.fixed_dictionaries(dict.fromkeys(RESULT, VALUES)))
def test_any_result_is_a_block_or_a_value_error(result: Any) -> None:
    """Whatever is answered is a block or ValueError, and no third thing."""
    try:
        block = methods.unpack_block(result)
    except ValueError:
        return
    assert methods.pack_block(block) == result


@given(VALUES | st.fixed_dictionaries(dict.fromkeys(STEADY_RESULT, VALUES)))
def test_any_result_is_a_steady_block_or_a_value_error(result: Any) -> None:
    """Whatever is answered is a block of steady or ValueError, and no third thing."""
    try:
        block = methods.unpack_steady_block(result)
    except ValueError:
        return
    assert methods.pack_block(block) == result
