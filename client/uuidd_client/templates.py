"""Ids of which only the time is open; they come from no clock and no timeline."""

from __future__ import annotations

from uuidd.core.ids import nodes, snowflake
from uuidd.core.ids.checks import check_bits, look_up, shown
from uuidd.core.ids.kinds import FORMATS, KINDS
from uuidd.core.ids.nodes import RandomBits
from uuidd.core.ids.ticks import TimeField
from uuidd.core.ids.versions import CLOCK_SEQ_BITS

TIMED_FORMATS = {kind: form for kind, form in FORMATS.items() if form.time and kind in KINDS}
"""The descriptions of the kinds of which ids of a chosen time can be made."""


def field_of(kind: str, epoch: int = snowflake.TWITTER_EPOCH) -> TimeField:
    """Return the time field of *kind*; *epoch*, in Unix milliseconds, is for Snowflakes.

    Raises ValueError, listing the kinds, for an unknown one, and for an epoch passed for a kind
    whose epoch is fixed; TypeError for an epoch that is not an int.
    """
    time = look_up("kind", kind, TIMED_FORMATS).time
    if type(epoch) is not int:
        raise TypeError(f"epoch is {shown(epoch)}; it must be an int, in Unix milliseconds")
    if kind == "snowflake":
        check_bits("epoch", epoch, snowflake.EPOCH_BITS)
        return snowflake.time_field(epoch)
    if epoch != snowflake.TWITTER_EPOCH:
        raise ValueError(f"epoch is {shown(epoch)}; only a snowflake has one, a {kind} has not")
    assert time is not None  # noqa: S101  (each of these kinds has a time)
    return time


class Template:
    """The id of *kind* with these fields, at any time.

    v1, v6 and Flakes take a clock_seq and a node that are not given from *random*, now; a random
    node has the multicast bit. Snowflakes need a worker, 0 to 1023, or a datacenter and a worker, 0
    to 31 each. Without a sequence, a Snowflake has the slot of the tick, and a Flake the tick
    within the millisecond. The other kinds have the tick and bits from *random*.

    Raises ValueError, naming it, for a field that the kind does not have, needs or has too few bits
    for; TypeError for a value of the wrong type.
    """

    def __init__(
        self,
        kind: str,
        random: RandomBits,
        *,
        clock_seq: int | None = None,
        node: int | str | None = None,
        worker: int | None = None,
        datacenter: int | None = None,
        sequence: int | None = None,
        epoch: int = snowflake.TWITTER_EPOCH,
    ) -> None:
        self.time = field_of(kind, epoch)
        self._form = form = TIMED_FORMATS[kind]
        self._random = random
        given = {
            "clock_seq": clock_seq,
            "node": node,
            "worker": worker,
            "datacenter": datacenter,
            "sequence": sequence,
        }
        halves = ["datacenter"] if "worker" in form.sizes else []
        self.accepted = [name for name in given if name in (*form.sizes, *halves)]
        """The fields that the kind has besides its time."""
        for name, value in given.items():
            if value is not None and name not in self.accepted:
                has = f"only {', '.join(self.accepted)}" if self.accepted else "only its time"
                raise ValueError(f"{name} is {shown(value)}; a {kind} has no {name}, {has}")
        fixed = form.bounds(0)[0]
        if "clock_seq" in self.accepted:
            drawn = random(CLOCK_SEQ_BITS) if clock_seq is None else clock_seq
            fixed |= form.put("clock_seq", check_bits("clock_seq", drawn, CLOCK_SEQ_BITS))
        if "node" in self.accepted:
            drawn = nodes.random_node(random) if node is None else nodes.node(node)
            fixed |= form.put("node", drawn)
        if "worker" in self.accepted:
            fixed |= form.put("worker", _worker(datacenter, worker))
        if sequence is not None:
            size = form.sizes["sequence"]
            fixed |= form.put("sequence", check_bits("sequence", sequence, size))
        self._fixed = fixed
        self._tail = form.tail if sequence is None else ""

    def at(self, tick: int) -> int:
        """Return the bits of the id at a tick. Raises ValueError for a tick out of the range."""
        form, time = self._form, self.time
        made = self._fixed | form.put("timestamp", time.raw(tick))
        if not self._tail:
            return made
        free = form.sizes[form.tail] - form.rest
        rest = (tick - time.epoch) % time.unit * form.slots // time.unit
        return made | form.put(form.tail, rest << free | (self._random(free) if free else 0))


def _worker(datacenter: int | None, worker: int | None) -> int:
    if worker is None:
        raise ValueError(
            "worker is missing; a snowflake needs a worker, 0 to 1023, or a datacenter and a"
            " worker, 0 to 31 each"
        )
    if datacenter is None:
        return check_bits("worker", worker, snowflake.WORKER_BITS)
    return snowflake.worker_from_halves(datacenter, worker)
