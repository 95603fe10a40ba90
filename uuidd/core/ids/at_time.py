"""One id of a time that the caller chooses, past or future.

Such ids are for old rows, tests and imports. They come from no clock and no timeline, so nothing
here knows which ids exist already; ``backfill`` makes many that differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from uuidd.core.ids import nodes, snowflake
from uuidd.core.ids.checks import check_bits, look_up, shown
from uuidd.core.ids.formats import FORMATS, Format
from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.nodes import RandomBits
from uuidd.core.ids.ticks import TimeField
from uuidd.core.ids.times import Time, tick_of
from uuidd.core.ids.versions import CLOCK_SEQ_BITS

_FORMATS = {kind: form for kind, form in FORMATS.items() if form.time and kind in KINDS}

AT_TIME_KINDS = tuple(_FORMATS)
"""The kinds of which ids of a chosen time can be made."""


class IdFields(NamedTuple):
    """The fields of an id beside its time, as the caller passes them; None means not passed."""

    clock_seq: int | None = None
    node: int | str | None = None
    worker: int | None = None
    datacenter: int | None = None
    sequence: int | None = None
    epoch: int = snowflake.TWITTER_EPOCH


class Template(NamedTuple):
    """An id in which only the time is open: *at* returns its bits at a tick."""

    time: TimeField
    at: Callable[[int], int]


def id_at_time(
    kind: str,
    time: Time,
    *,
    clock_seq: int | None = None,
    node: int | str | None = None,
    worker: int | None = None,
    datacenter: int | None = None,
    sequence: int | None = None,
    epoch: int = snowflake.TWITTER_EPOCH,
    random: RandomBits,
) -> int:
    """Return the bits of an id of *kind* at *time*; its random bits come from *random*.

    For v1, v6 and Flakes, a clock_seq or node that is not passed is random; a random node has the
    multicast bit. Snowflakes need a worker, 0 to 1023, or a datacenter and a worker, 0 to 31 each.
    Without a sequence, a Snowflake has the slot of the tick, and a Flake the tick within the
    millisecond. The other kinds carry the tick of *time* and random bits.

    Raises ValueError, naming it, for a field that the kind does not have, needs or has too few bits
    for, and for a time out of its range; TypeError for a value of the wrong type.
    """
    fields = IdFields(clock_seq, node, worker, datacenter, sequence, epoch)
    made = template(kind, fields, random)
    return made.at(tick_of(time, made.time))


def field_of(kind: str, epoch: int = snowflake.TWITTER_EPOCH) -> TimeField:
    """Return the time field of *kind*; *epoch*, in Unix milliseconds, is for Snowflakes.

    Raises ValueError, listing the kinds, for an unknown one, and for an epoch passed for a kind
    whose epoch is fixed; TypeError for an epoch that is not an int.
    """
    time = look_up("kind", kind, _FORMATS).time
    if type(epoch) is not int:
        raise TypeError(f"epoch is {shown(epoch)}; it must be an int, in Unix milliseconds")
    if kind == "snowflake":
        check_bits("epoch", epoch, snowflake.EPOCH_BITS)
        return snowflake.time_field(epoch)
    if epoch != snowflake.TWITTER_EPOCH:
        raise ValueError(f"epoch is {shown(epoch)}; only a snowflake has one, a {kind} has not")
    assert time is not None  # noqa: S101  (each of these kinds has a time)
    return time


def accepted(form: Format) -> tuple[str, ...]:
    """Return the names of the fields of ``IdFields`` that a caller may pass for a kind."""
    found = [field for field in form.sizes if field in IdFields._fields]
    if "worker" in found:
        found.insert(1, "datacenter")
    return tuple(found)


def template(kind: str, fields: IdFields, random: RandomBits) -> Template:
    """Return the template of a kind's ids with these fields; missing ones are drawn now, once.

    Raises ValueError and TypeError as ``id_at_time`` does.
    """
    form, time = look_up("kind", kind, _FORMATS), field_of(kind, fields.epoch)
    known = accepted(form)
    for name in ("clock_seq", "node", "worker", "datacenter", "sequence"):
        value = getattr(fields, name)
        if value is not None and name not in known:
            has = f"only {', '.join(known)}" if known else "only its time"
            raise ValueError(f"{name} is {shown(value)}; a {kind} has no {name}, {has}")
    fixed = form.bounds(0)[0]
    for name, get in _FIELDS.items():
        if name in known:
            fixed |= form.put(name, get(fields, random))
    if fields.sequence is not None:
        fixed |= form.put(
            "sequence", check_bits("sequence", fields.sequence, form.sizes["sequence"])
        )
    free = form.sizes[form.tail] - form.rest if form.tail else 0

    def at(tick: int) -> int:
        made = fixed | form.put("timestamp", time.raw(tick))
        if not form.tail or fields.sequence is not None:
            return made
        rest = (tick - time.epoch) % time.unit * form.places // time.unit
        return made | form.put(form.tail, rest << free | (random(free) if free else 0))

    return Template(time, at)


def _clock_seq(fields: IdFields, random: RandomBits) -> int:
    drawn = random(CLOCK_SEQ_BITS) if fields.clock_seq is None else fields.clock_seq
    return check_bits("clock_seq", drawn, CLOCK_SEQ_BITS)


def _node(fields: IdFields, random: RandomBits) -> int:
    return nodes.random_node(random) if fields.node is None else nodes.node(fields.node)


def _worker(fields: IdFields, _random: RandomBits) -> int:
    if fields.worker is None:
        raise ValueError(
            "worker is missing; a snowflake needs a worker, 0 to 1023, or a datacenter and a"
            " worker, 0 to 31 each"
        )
    if fields.datacenter is None:
        return check_bits("worker", fields.worker, snowflake.WORKER_BITS)
    return snowflake.worker_from_halves(fields.datacenter, fields.worker)


_FIELDS = {"clock_seq": _clock_seq, "node": _node, "worker": _worker}
"""What checks a field that the caller passes, or draws it."""
