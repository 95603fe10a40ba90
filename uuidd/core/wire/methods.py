"""The rpc methods: params to calls, blocks to results and back."""

from __future__ import annotations

from collections.abc import Collection
from math import ceil

from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.nodes import NODE_BITS
from uuidd.core.ids.snowflake import EPOCH_BITS, WORKER_BITS
from uuidd.core.ids.ticks import TICK_BITS, TICKS_PER_MS, UNIX_EPOCH
from uuidd.core.ids.versions import CLOCK_SEQ_BITS
from uuidd.core.timeline.generation import BLOCK_LANES, LANES
from uuidd.core.timeline.outcomes import MAX_BLOCK, Block, SteadyBlock
from uuidd.core.timeline.page import TOKEN_BITS, Lease
from uuidd.core.typed import Any, NamedTuple

TIMELINES = ("utc", "steady", "snowflake")
METHODS = ("lease", "make", "renew", "status", "take")

IN_USE = "in_use"
"""The notification of a lease's holder that ids are being made, so that a later horizon is needed.
"""

FALLBACK_IDS = "fallback_ids"
"""The notification of how many ids a client has made without the daemon since it last told."""

MAX_FALLBACK_IDS = (1 << 32) - 1
"""The highest count of one ``fallback_ids``."""

MAX_MAKE = 1000
"""Ids of one ``make``: 38 kB of text, little enough to be made without delaying others."""


SAVE_SECONDS = 0.8
"""How long a request waits for a save of the state, unless it says not to wait. A client adds this
to its own time-out for such a request. libuuid's callers would wait without end."""


_ASK_AGAIN = "; ask again in "

MOST_ASK_AGAIN = 60.0
"""The most seconds after which a client is told to ask for a lease again."""


class RefusedError(Exception):
    """The answer to a request is an error: a *code* for programs, a *message* for people.

    Codes: ``bad_params``, ``unknown_method``, ``unavailable``, ``no_worker_id``, ``busy``,
    ``must_wait``, ``no_lease``, ``not_permitted``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Take(NamedTuple):
    """Take up to *count* ticks, or exactly *count* if *whole*.

    Without *wait*, a request that would have to wait for long is refused with ``must_wait``.
    """

    timeline: str
    count: int  # type: ignore[assignment]  # a tuple has a method of that name, which is not used
    whole: bool
    wait: bool


class Make(NamedTuple):
    """Make exactly *count* ids of *kind*. *wait* is as in ``Take``."""

    kind: str
    count: int  # type: ignore[assignment]  # likewise
    wait: bool


def parse(method: Any, params: Any) -> Take | Make | str:
    """Return the call that a method and its params, as they were unpacked, stand for.

    That is the method itself if it takes no params: ``lease``, ``renew`` or ``status``. Bytes that
    are UTF-8 count as text, because some clients send text so. Raises RefusedError, which names the
    param, its value, and its range or the known names.
    """
    if type(method) is bytes:
        method = _text(method)
    if type(params) is not list:
        raise RefusedError("bad_params", f"params are {_show(params)}; they must be an array")
    if method == "take":
        given = len(params)
        if given > 4:
            raise _too_many(params, "take takes timeline, count, whole and wait")
        timeline = _known("timeline", params, TIMELINES)
        count = _count(params, MAX_BLOCK)
        whole = _flag("whole", params[2]) if given > 2 else False
        return Take(timeline, count, whole, _flag("wait", params[3]) if given > 3 else True)
    if method == "make":
        given = len(params)
        if given > 3:
            raise _too_many(params, "make takes kind, count and wait")
        kind = _known("kind", params, KINDS)
        count = _count(params, MAX_MAKE) if given > 1 else 1
        return Make(kind, count, _flag("wait", params[2]) if given > 2 else True)
    if type(method) is str and method in METHODS:
        if params:
            raise _too_many(params, f"{method} takes none")
        return method
    raise RefusedError(
        "unknown_method", f"no method is called {_show(method)}; there are {', '.join(METHODS)}"
    )


def unpack_fallback_ids(params: Any) -> int:
    """Return the count of a ``fallback_ids``, 0 if its params are wrong."""
    match params:
        case [count] if type(count) is int and 0 < count <= MAX_FALLBACK_IDS:
            return count
    return 0


def pack_block(block: Block | SteadyBlock, page_epoch: int = 0) -> dict[str, Any]:
    """Return the result of a ``take``, a map of ``first``, ``count``, ``node`` (6 bytes) and more.

    ``unix_ms`` and ``tick_in_ms`` are ``first`` for clients whose numbers are exact below 2**53
    only. A block of utc has ``clock_seq``. One of steady has ``worker``, an int or nil, and
    ``epoch``, in Unix milliseconds. A block that was given after a clone has ``page_epoch``.
    """
    unix_ms, tick_in_ms = divmod(block.first - UNIX_EPOCH, TICKS_PER_MS)
    result: dict[str, Any] = {
        "first": block.first,
        "unix_ms": unix_ms,
        "tick_in_ms": tick_in_ms,
        "count": block.count,
        "node": block.node.to_bytes(6, "big"),
    }
    if isinstance(block, Block):
        result["clock_seq"] = block.clock_seq
    else:
        result["worker"] = block.worker
        result["epoch"] = block.epoch
    if page_epoch:
        result["page_epoch"] = page_epoch
    return result


def unpack_page_epoch(result: Any) -> int:
    """Return the epoch of the page when the block in *result* was given, 0 if it does not say.

    Raises ValueError if it is not a number of 64 bits.
    """
    epoch = result.get("page_epoch", 0)
    if type(epoch) is int and 0 <= epoch < 1 << TOKEN_BITS:
        return epoch
    raise ValueError(f"{_show(epoch)} is not an epoch of the page")


def unpack_block(result: Any) -> Block:
    """Return the block in the result of a ``take`` of utc.

    Raises ValueError for anything else, so that a client makes ids only from a whole block.
    """
    first, count, clock_seq, node = _fields(result, "first", "count", "clock_seq", "node")
    if (
        # By type, because True is an int too.
        type(first) is type(count) is type(clock_seq) is int
        and 0 < count <= MAX_BLOCK
        and 0 <= first <= (1 << TICK_BITS) - count
        and 0 <= clock_seq < 1 << CLOCK_SEQ_BITS
        and type(node) is bytes
        and len(node) == NODE_BITS // 8
    ):
        return Block(first, count, clock_seq, int.from_bytes(node, "big"))
    raise ValueError(f"{_show(result)} is not a block")


def unpack_steady_block(result: Any) -> SteadyBlock:
    """Return the block in the result of a ``take`` of steady; ValueError for anything else."""
    names = "first", "count", "node", "worker", "epoch"
    first, count, node, worker, epoch = _fields(result, *names)
    if (
        type(first) is type(count) is type(epoch) is int
        and 0 < count <= MAX_BLOCK
        and UNIX_EPOCH <= first <= (1 << TICK_BITS) - count
        and type(node) is bytes
        and len(node) == NODE_BITS // 8
        and (worker is None or (type(worker) is int and 0 <= worker < 1 << WORKER_BITS))
        and 0 <= epoch < 1 << EPOCH_BITS
    ):
        return SteadyBlock(first, count, int.from_bytes(node, "big"), worker, epoch)
    raise ValueError(f"{_show(result)} is not a block")


def pack_lease(lease: Lease) -> dict[str, Any]:
    """Return the result of a ``lease``: a map of the fields of ``Lease``, the node as 6 bytes."""
    return lease._asdict() | {"node": lease.node.to_bytes(6, "big")}


def ask_again_in(seconds: float) -> str:
    """Return the end of a ``no_lease`` message, which says when to ask again: 1 to 60 s later."""
    return f"{_ASK_AGAIN}{ceil(10 * min(max(seconds, 1.0), MOST_ASK_AGAIN)) / 10} s"


def seconds_to_ask_again(message: str) -> float:
    """Return how many seconds later to ask again, as a message ends with; 0.0 if it does not."""
    said = message.rpartition(_ASK_AGAIN)[2].removesuffix(" s")
    try:
        seconds = float(said)
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds <= MOST_ASK_AGAIN else 0.0


def unpack_lease(result: Any) -> Lease:
    """Return the lease in the result of a ``lease``; ValueError for anything else."""
    names = "lane", "clock_seq", "node", "token", "begin"
    lane, clock_seq, node, token, begin = _fields(result, *names)
    if (
        type(lane) is type(clock_seq) is type(token) is type(begin) is int
        and BLOCK_LANES <= lane < LANES
        and 0 <= clock_seq < 1 << CLOCK_SEQ_BITS
        and clock_seq % LANES == lane
        and 0 < token < 1 << TOKEN_BITS
        and 0 <= begin < 1 << TICK_BITS
        and type(node) is bytes
        and len(node) == NODE_BITS // 8
    ):
        return Lease(lane, clock_seq, int.from_bytes(node, "big"), token, begin)
    raise ValueError(f"{_show(result)} is not a lease")


def _fields(result: Any, *names: str) -> list[Any]:
    """Return the fields of a result, all None if it is no map or lacks one. A pattern is slower."""
    try:
        return [result[name] for name in names]
    except (KeyError, TypeError):
        return [None] * len(names)


def _count(params: list[Any], most: int) -> int:
    """Return the second param, a count."""
    if len(params) < 2:
        raise RefusedError("bad_params", f"count is missing; it must be 1 to {most}")
    count = params[1]
    if type(count) is not int or not 1 <= count <= most:
        raise RefusedError("bad_params", f"count is {_show(count)}; it must be an int, 1 to {most}")
    return count


def _flag(name: str, value: Any) -> bool:
    if type(value) is not bool:
        raise RefusedError("bad_params", f"{name} is {_show(value)}; it must be true or false")
    return value


def _known(name: str, params: list[Any], names: Collection[str]) -> str:
    """Return the first param, one of the *names*."""
    if not params:
        raise RefusedError("bad_params", f"{name} is missing; there are {', '.join(names)}")
    value = params[0]
    if type(value) is bytes:
        value = _text(value)
    if type(value) is not str or value not in names:
        shown = _show(params[0])
        raise RefusedError("bad_params", f"{name} is {shown}; there are {', '.join(names)}")
    return value


def _text(value: bytes) -> str | bytes:
    """Return the text of bytes that are UTF-8, and other bytes as they are."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _too_many(params: list[Any], expected: str) -> RefusedError:
    return RefusedError("bad_params", f"{len(params)} params are too many; {expected}")


def _show(value: Any) -> str:
    """Return a value in words for its caller: short, whatever was sent."""
    if isinstance(value, list | dict):
        # Without the items, which may be nested deeper than repr() can follow.
        return "an array" if isinstance(value, list) else "a map"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
