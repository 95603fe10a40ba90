"""The published values in vectors.json, against our own functions.

Rows about the state of another library's generator are held in our terms: its sequence number
within a millisecond is a tick within one here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.core.draws import Draws
from tests.core.switching import take
from uuidd.core.ids import (
    bases,
    bulk,
    nodes,
    snowflake,
    uuids,
    versions,
)
from uuidd.core.ids.formats import FORMATS
from uuidd.core.ids.kinds import TIMES
from uuidd.core.ids.nodes import random_node
from uuidd.core.ids.places import Origin
from uuidd.core.ids.ticks import TICKS_PER_MS, TICKS_PER_SECOND, UNIX_EPOCH, milliseconds
from uuidd.core.ids.times import text, tick_of
from uuidd.core.timeline.generation import Lane
from uuidd.core.timeline.outcomes import NeedsSave, NoneFree
from uuidd.core.timeline.slew import TOLERANCE
from uuidd.core.timeline.utc import Utc
from uuidd_client.times import bounds

FLAKE, KSUID, PUSH_ID, ULID = (FORMATS[kind] for kind in ("flake", "ksuid", "push_id", "ulid"))

ROWS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("vectors.json").read_text())

V1_TIME, V6_TIME = TIMES["v1"], TIMES["v6"]
Row = dict[str, Any]


class Reads(Mapping[str, Any]):
    """A mapping that knows which of its keys nobody has read."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self.unread = set(values)

    def __getitem__(self, key: str) -> Any:
        """Return a value, and count it as read."""
        self.unread.discard(key)
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys; that reads none."""
        return iter(self._values)

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._values)


Checker = Callable[[Row, Reads], None]
CHECKERS: dict[str, Checker] = {}


def holds(*systems: str) -> Callable[[Checker], Checker]:
    """Register a function as the checker of the rows of *systems*."""

    def enter(checker: Checker) -> Checker:
        for system in systems:
            CHECKERS[system] = checker
        return checker

    return enter


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{at}-{row['system']}") for at, row in enumerate(ROWS)]
)
def test_a_published_value_holds(row: Row) -> None:
    """Our functions return what was published, all of it."""
    expected = Reads(row["expected"])
    CHECKERS[row["system"]](row["input"], expected)
    assert expected.unread == set()


def test_there_are_82_published_values_and_each_has_a_checker() -> None:
    """No row is passed over, and no checker is without a row."""
    assert len(ROWS) == 82
    assert {row["system"] for row in ROWS} == set(CHECKERS)


def test_a_wrong_value_fails_in_every_row() -> None:
    """Each checker compares: with any expected value exchanged for another, it fails."""
    for row in ROWS:
        for key in row["expected"]:
            wrong = Reads(row["expected"] | {key: _another(row["expected"][key])})
            with pytest.raises((AssertionError, ValueError)):
                CHECKERS[row["system"]](row["input"], wrong)


def _another(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _another(within) for key, within in value.items()}
    if isinstance(value, bool) or value is None:
        return not value
    return value + 1 if isinstance(value, int) else "another"


# --- UUIDs


def _time_fields(given: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return tick, clock_seq and node, which the rows spell in two ways."""
    node = nodes.node(given["node"])
    if "timestamp_100ns" in given:
        return given["timestamp_100ns"], given["clock_seq"], node
    tick = UNIX_EPOCH + given["msecs"] * TICKS_PER_MS + given["nsecs"]
    return tick, given["clockseq"], node


def _namespace(given: Mapping[str, Any]) -> int:
    """Return the namespace of a row, which may name and spell it: DNS 6ba7b810-..."""
    found = {versions.namespace(word) for word in given["namespace"].split()}
    assert len(found) == 1
    return found.pop()


@holds("uuid1")
def v1(given: Row, expected: Reads) -> None:
    """A v1 is made of its fields and returns them."""
    value = versions.v1(*_time_fields(given))
    assert uuids.to_text(value) == expected["uuid"]
    assert versions.gregorian_fields(value) == _time_fields(given)


@holds("uuid6")
def v6(given: Row, expected: Reads) -> None:
    """A v6 is made of its fields and returns them."""
    value = versions.v6(*_time_fields(given))
    assert uuids.to_text(value) == expected["uuid"]
    assert versions.gregorian_fields(value) == _time_fields(given)


@holds("uuid3")
def v3(given: Row, expected: Reads) -> None:
    """A v3 is made of a namespace and a name."""
    assert uuids.to_text(versions.v3(_namespace(given), given["name"])) == expected["uuid"]


@holds("uuid5")
def v5(given: Row, expected: Reads) -> None:
    """A v5 is made of a namespace and a name."""
    assert uuids.to_text(versions.v5(_namespace(given), given["name"])) == expected["uuid"]


@holds("uuid4")
def v4(given: Row, expected: Reads) -> None:
    """A v4 is random bits but for its version and variant."""
    random = bytes.fromhex(given["random_hex"])
    assert uuids.texts(bulk.v4(0, 1, Origin(0), lambda _: random)) == [expected["uuid"]]
    value = uuids.from_text(expected["uuid"])
    assert versions.v4(*FORMATS["v4"].unpack(value).values()) == value


@holds("uuid7")
def v7(given: Row, expected: Reads) -> None:
    """A v7 is made of its fields and returns them."""
    parts = given["unix_ts_ms"], given["rand_a"], int(given["rand_b"], 16)
    assert uuids.to_text(versions.v7(*parts)) == expected["uuid"]
    assert versions.v7_fields(uuids.from_text(expected["uuid"])) == parts


@holds("uuid7-seq32")
def v7_with_a_32_bit_sequence(given: Row, expected: Reads) -> None:
    """A sequence of 32 bits fills rand_a and the top 20 bits of rand_b."""
    value = versions.v7(given["msecs"], given["seq"] >> 20, (given["seq"] & 0xFFFFF) << 42)
    assert uuids.to_text(value)[:25] == expected["prefix25"]


@holds("uuid7-method3")
def v7_fraction(given: Row, expected: Reads) -> None:
    """12 bits of the fraction of a millisecond, rounded down."""
    _, rest = milliseconds(tick_of(datetime.fromisoformat(given["time"]), V1_TIME))
    # A datetime ends at the microsecond; the seventh digit is the tick's own.
    rest += int(given["time"][-2])
    assert rest == round(float(given["ms_fraction"]) * TICKS_PER_MS)
    assert snowflake.slot_at(rest) == expected["rand_a"]
    assert f"0x{snowflake.slot_at(rest):X}" == expected["hex"]


@holds("uuid8")
def v8(given: Row, expected: Reads) -> None:
    """A v8 is made of its caller's bits and returns them."""
    parts = given["unix_10ns"] >> 12, given["unix_10ns"] & 0xFFF, int(given["custom_c"], 16)
    assert uuids.to_text(FORMATS["v8"].pack(*parts)) == expected["uuid"]
    assert tuple(FORMATS["v8"].unpack(uuids.from_text(expected["uuid"])).values()) == parts


@holds("uuid-node")
def random_nodes(given: Row, expected: Reads) -> None:
    """A random node has the multicast bit set."""
    node = random_node(lambda _: nodes.node(given["random_node"]))
    assert node == nodes.node(expected["node"])


@holds("uuid-nil-max")
def nil_and_max(_: Row, expected: Reads) -> None:
    """All zeros and all ones."""
    assert uuids.to_text(uuids.NIL) == expected["nil"]
    assert uuids.to_text(uuids.MAX) == expected["max"]


@holds("uuid-validate")
def validate(given: Row, expected: Reads) -> None:
    """The version of a UUID, if it is one of the eight that are laid out."""
    found = uuids.version(uuids.from_text(given["value"]))
    known = found if found in range(1, 9) else None
    assert known == expected["version"]
    assert (known is not None) is expected["valid"]


@holds("uuid-parse")
def parse(given: Row, expected: Reads) -> None:
    """A text is taken or refused; what is taken has its version under the RFC's variant."""
    if "accepted" in expected:
        assert _taken(uuids.from_text, given["value"]) is expected["accepted"]
        return
    value = uuids.from_text(given["value"])
    assert uuids.version(value) == expected["version"]
    assert {uuids.RFC_VARIANT: "RFC4122"}.get(value >> 62 & 0b11) == expected["variant"]


@holds("uuid-v6-time")
def v6_time(given: Row, expected: Reads) -> None:
    """A time with an offset is shown in UTC, also after it was in a v6."""
    tick = tick_of(datetime.fromisoformat(given["time"]), V6_TIME)
    read = versions.gregorian_fields(versions.v6(tick, 0, 0)).tick
    assert text(read, TICKS_PER_SECOND) == expected["time_utc"]


@holds("uuid6-bounds")
def v6_bounds(given: Row, expected: Reads) -> None:
    """All v6 of one tick."""
    low, high = bounds("v6", given["timestamp_100ns"])
    assert (str(low), str(high)) == (expected["min"], expected["max"])


@holds("uuid7-bounds")
def v7_bounds(given: Row, expected: Reads) -> None:
    """All v7 of one millisecond."""
    low, high = bounds("v7", given["unix_ms"])
    assert (str(low), str(high)) == (expected["min"], expected["max"])


@holds("cassandra-timeuuid")
def cassandra(given: Row, expected: Reads) -> None:
    """Cassandra's epoch, and its bounds of one tick: DataStax's are of a microsecond's first."""
    if given.get("const") == "UUID_EPOCH_UNIX_MILLIS":
        assert milliseconds(0) == (expected["value"], 0)
        return
    if given.get("const") == "LOWEST_TIME_UUID":
        assert str(bounds("cassandra", 0)[0]) == expected["uuid"]
        return
    seconds = given["t"] if "t" in given else given["t_seconds"]
    low, high = bounds("cassandra", UNIX_EPOCH + round(seconds * 1_000_000) * 10, unit="tick")
    if "min" in expected:
        assert (str(low), str(high)) == (expected["min"], expected["max"])
        return
    assert _signed(low.int) == expected["min_bytes_8_15_signed"]
    assert _signed(high.int)[0] == expected["max_byte_8_signed"]
    assert _signed(high.int)[1:] == expected["max_bytes_9_15_signed"]


def _signed(value: int) -> list[int]:
    """Return the low 8 bytes as Cassandra compares them."""
    return [(byte ^ 0x80) - 0x80 for byte in value.to_bytes(16, "big")[8:]]


def _taken(read: Callable[[str], int], given: str) -> bool:
    try:
        read(given)
    except ValueError:
        return False
    return True


# --- other kinds


@holds("snowflake")
def snowflakes(given: Row, expected: Reads) -> None:
    """Twitter's epoch and bits, and an id of it."""
    if "const" in given:
        field = snowflake.time_field()
        assert expected["unix_ms"] == snowflake.TWITTER_EPOCH
        assert text(field.epoch, field.unit) == expected["utc"]
        first = snowflake.TWITTER_EPOCH
        assert expected["shifts"] == {
            "timestamp": snowflake.snowflake(first + 1, 0, 0).bit_length() - 1,
            "datacenter": snowflake.snowflake(first, 32, 0).bit_length() - 1,
            "worker": snowflake.snowflake(first, 1, 0).bit_length() - 1,
        }
        assert expected["bits"] == [
            field.bits,
            snowflake.WORKER_BITS - snowflake.WORKER_ID_BITS,
            snowflake.WORKER_ID_BITS,
            snowflake.SEQUENCE_BITS,
        ]
        return
    found = snowflake.fields(given["id"], epoch=given["epoch"])
    assert found.timestamp == expected["timestamp"]
    assert found.worker == expected["instance"]
    assert found.sequence == expected["seq"]
    assert found.ms == expected["unix_ms"]
    made = snowflake.snowflake(found.ms, found.worker, found.sequence, epoch=given["epoch"])
    assert made == given["id"]


@holds("snowflake-discord")
def discord(given: Row, expected: Reads) -> None:
    """Discord's worker and process stand where Twitter's datacenter and worker do."""
    found = snowflake.fields(given["id"], epoch=given["epoch"])
    assert found.ms == expected["unix_ms"]
    assert found.datacenter_id == expected["worker"]
    assert found.worker_id == expected["process"]
    assert found.sequence == expected["increment"]


@holds("leaf-snowflake")
def leaf(given: Row, expected: Reads) -> None:
    """Leaf's worker is all ten bits, and its epoch Twitter's."""
    found = snowflake.fields(given["id"])
    assert found.ms == expected["timestamp"]
    assert found.worker == expected["workerId"]
    assert found.sequence == expected["sequenceId"]


@holds("snowflake-base32", "snowflake-base58")
def snowflake_text(given: Row, expected: Reads) -> None:
    """A Snowflake in another base, both ways."""
    base = {32: "base32", 58: "base58"}[len(given["alphabet"])]
    assert snowflake.ALPHABETS[base] == given["alphabet"]
    assert snowflake.from_text(given["text"], base) == expected["id"]
    assert snowflake.to_text(expected["id"], base) == given["text"]


@holds("snowflake-overflow")
def snowflake_overflow(given: Row, expected: Reads) -> None:
    """A decimal number of too many bits is refused."""
    assert _taken(snowflake.from_text, given["text"]) is not expected["error"]


@holds("flake-base62")
def flakes(given: Row, expected: Reads) -> None:
    """A Flake from base 62 and back, and its fields."""
    value = FLAKE.from_text(given["text"])
    assert value == expected["int"]
    assert FLAKE.to_text(value) == given["text"]
    found = FLAKE.unpack(value)
    assert found["timestamp"] == expected["time_ms"]
    assert found["node"] == nodes.node(expected["worker_mac"])
    assert found["sequence"] == expected["sequence"]
    assert FLAKE.pack(*found.values()) == value


@holds("ksuid")
def ksuids(given: Row, expected: Reads) -> None:
    """A KSUID from its fields or its text, and back."""
    if "const" in given:
        assert KSUID.to_text(0) == expected["nil"]
        assert KSUID.to_text((1 << 160) - 1) == expected["max"]
        assert UNIX_EPOCH + expected["epoch_unix"] * TICKS_PER_SECOND == TIMES["ksuid"].epoch
        assert expected["alphabet"] == bases.BASE62
        return
    if "string" in expected:
        value = KSUID.pack(given["timestamp_unix"] - 1_400_000_000, int(given["payload"], 16))
        assert KSUID.to_text(value) == expected["string"]
        assert KSUID.from_text(expected["string"]) == value
        return
    value = KSUID.from_text(given["string"])
    found = KSUID.unpack(value)
    assert found["timestamp"] == expected["timestamp"]
    assert found["timestamp"] + 1_400_000_000 == expected["unix"]
    assert f"{found['payload']:032X}" == expected["payload"]
    assert f"{value:040X}" == expected["raw"]
    assert KSUID.to_text(value) == given["string"]


@holds("ksuid-parse")
def ksuid_parse(given: Row, expected: Reads) -> None:
    """A text above the highest KSUID, or of another alphabet, is none."""
    assert _taken(KSUID.from_text, given["string"]) is not expected["error"]


@holds("ksuid-next-prev")
def ksuid_next_prev(given: Row, expected: Reads) -> None:
    """The neighbours of the lowest KSUID, counted round."""
    highest = (1 << 160) - 1
    value = {"nil": 0}[given["id"]]
    assert {"max": highest}.get(expected["prev"]) == (value - 1) & highest
    assert KSUID.to_text(value + 1) == KSUID.to_text(int(expected["next"], 16))


@holds("ulid")
def ulids(given: Row, expected: Reads) -> None:
    """The time of a ULID."""
    assert ULID.unpack(ULID.from_text(given["ulid"]))["timestamp"] == expected["time_ms"]


@holds("ulid<->uuid")
def ulid_as_uuid(given: Row, expected: Reads) -> None:
    """A ULID and a UUID are two texts of one value."""
    assert uuids.to_text(ULID.from_text(given["ulid"])) == expected["uuid"]
    assert ULID.to_text(uuids.from_text(expected["uuid"])) == given["ulid"]


@holds("ulid-overflow")
def ulid_overflow(given: Row, expected: Reads) -> None:
    """A text above the highest ULID is none."""
    assert [_taken(ULID.from_text, each) for each in given["ulids"]] == expected["ok"]
    assert ULID.unpack(ULID.from_text(given["ulids"][0]))["timestamp"] == expected["max_time_ms"]


@holds("ulid-monotonic")
def ulid_monotonic(given: Row, expected: Reads) -> None:
    """A later millisecond has a ULID of its own; any other, the one after the last."""
    random = int(0.96 * 32)
    drawn = sum(random << 5 * place for place in range(16))
    made: list[int] = []
    for ms in given["seed_times"]:
        later = not made or ms > ULID.unpack(made[-1])["timestamp"]
        made.append(ULID.pack(ms, drawn) if later else made[-1] + 1)
    assert [ULID.to_text(each) for each in made] == expected["ids"]


@holds("firebase-push-id")
def push_ids(given: Row, expected: Reads) -> None:
    """A Push ID's time and random characters, and back."""
    assert given["alphabet"] == bases.PUSH
    time, random = PUSH_ID.unpack(PUSH_ID.from_text(given["id"])).values()
    assert time == expected["time_ms"]
    assert PUSH_ID.to_text(PUSH_ID.pack(0, random))[8:] == expected["rand_chars"]
    assert PUSH_ID.to_text(PUSH_ID.pack(time, random)) == given["id"]


# --- generators' states


@holds("uuid7-state")
def v7_state(given: Row, expected: Reads) -> None:
    """The next id is on the next tick, or at the new time, or not yet made; none is earlier."""
    last = given["state"]["msecs"], min(given["state"]["seq"], TICKS_PER_MS - 1)
    lane = Lane(_tick(*last) + 1)
    if given["case"] == "new interval":
        ms, rest = _ms_and_rest(lane.take(1, now=_tick(given["now"], 0))[0])
        assert (ms, expected["seq"]) == (expected["msecs"], "0x6c318c4 (random)")
        # Theirs begins a millisecond at random; ours is the tick that it is.
        assert rest == 0
        return
    # In the same millisecond the clock may stand at the last tick, or have gone back.
    _refused(lane, now=_tick(*last))
    wait = _refused(lane, now=_tick(given["now"], 0))
    first, _ = lane.take(1, now=_tick(given["now"], 0) + wait)
    assert _ms_and_rest(first) == (expected["msecs"], expected["seq"])


@holds("uuid1-state")
def v1_state(given: Row, expected: Reads) -> None:
    """The next tick comes, or the new time, or the old one under another clock sequence."""
    state = given["state"]
    # Intervals so long that the row's step back is none that is waited out.
    interval = 2 * TOLERANCE
    # uuidjs counts 10,000 in an interval: its last one is the last one here.
    rest = interval - 1 if state["nsecs"] == TICKS_PER_MS - 1 else state["nsecs"]
    last = (1000 + state["msecs"]) * interval + rest
    utc = Utc(None, machine="host", now=last, random=Draws())
    _save(utc, now=last)
    before = utc.take(1, now=last)
    assert before.first == last
    now = (1000 + given["now"]) * interval
    if given["case"] == "regression":
        with pytest.raises(NeedsSave):
            take(utc, 1, now=now + rest)
        _save(utc, now=now + rest)
        block = utc.take(1, now=now + rest)
        assert expected["clockseq"] == expected["node"] == "random"
        # Ours changes the clock_seq alone, which suffices.
        assert block.clock_seq != before.clock_seq
    elif given["case"] == "nsecs overflow":
        with pytest.raises(NoneFree) as caught:
            utc.take(1, now=last)
        assert caught.value.wait == 1
        block = utc.take(1, now=last + 1)
        assert expected["clockseq"] == expected["node"] == "random"
        # Theirs uses the millisecond again by another clock_seq; ours carries into the next.
        assert block == type(block)(last + 1, 1, before.clock_seq, before.node)
        assert expected["msecs"] == (last + 1) // interval - 1001
        assert expected["nsecs"] == (last + 1) % interval
        return
    else:
        block = utc.take(1, now=max(now, last + 1))
        assert (expected["clockseq"], expected["node"]) == (state["clockseq"], "kept")
        assert (block.clock_seq, block.node) == (before.clock_seq, before.node)
    assert divmod(block.first, interval) == (1000 + expected["msecs"], expected["nsecs"])


@holds("snowflake-rollback")
def snowflake_rollback(given: Row, expected: Reads) -> None:
    """While the clock is back there is no id; after it ids go on where the last one ended."""
    worker = snowflake.worker_from_halves(given["datacenter"], given["worker"])
    field = snowflake.time_field()
    lane = Lane(field.tick(given["times_since_epoch"][0]))
    taken = 0
    ids: list[object] = []
    for ms in given["times_since_epoch"]:
        now = field.tick(ms) + taken
        if now < lane.next:
            _refused(lane, now=now)
            ids.append("InvalidSystemClock")
            continue
        begin, end = snowflake.places(*lane.take(snowflake.ticks_for(1), now=now))
        ids += [snowflake.of_place(place, worker) for place in range(begin, end)]
        # As many ticks on as hold one slot.
        taken = snowflake.tick_of_place(end) - field.tick(1)
    assert ids == expected["ids"]


@holds("snowflake-seq")
def snowflake_sequence(given: Row, expected: Reads) -> None:
    """After the last slot of a millisecond the wait is for the next one, and once only."""
    standing, _, after = (UNIX_EPOCH + ms * TICKS_PER_MS for ms in given["clock_ms"])
    place = (standing - UNIX_EPOCH) // TICKS_PER_MS * snowflake.SLOTS + given["sequence"]
    lane = Lane(snowflake.tick_of_place(place) + 1)
    last = standing + TICKS_PER_MS - 1
    begin, end = snowflake.places(*lane.take(snowflake.ticks_for(1), now=last))
    assert begin == end == place + 1
    waits = 0
    while begin == end:
        last += _refused(lane, now=last)
        waits += 1
        begin, end = snowflake.places(*lane.take(1, now=last))
    assert waits == expected["waits"]
    assert snowflake.tick_of_place(begin) == after


def _tick(ms: int, rest: int) -> int:
    return UNIX_EPOCH + ms * TICKS_PER_MS + rest


def _ms_and_rest(tick: int) -> tuple[int, int]:
    return milliseconds(tick)


def _refused(lane: Lane, *, now: int) -> int:
    """Return the wait of a call that a lane refuses, and see that it changes nothing."""
    before = lane.next
    with pytest.raises(NoneFree) as caught:
        lane.take(1, now=now)
    assert lane.next == before
    assert caught.value.wait == before - now
    return caught.value.wait


def _save(utc: Utc, *, now: int) -> None:
    utc.end_save(utc.begin_save(now=now, reach=100 * TOLERANCE), completed=True)
