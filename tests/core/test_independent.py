"""Our functions against independent implementations, on the same random inputs each run."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
import uuid6
import uuid_utils
from cassandra.util import max_uuid_from_time, min_uuid_from_time, unix_time_from_uuid1
from ksuid import Ksuid
from ulid import ULID

from tests import kinds
from uuidd.core.ids import uuids, versions
from uuidd.core.ids.kinds import FORMATS
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd_client.times import bounds

V7, ULID_FORMAT, KSUID_FORMAT = FORMATS["v7"], FORMATS["ulid"], FORMATS["ksuid"]
KSUID_EPOCH = 1_400_000_000

INPUTS = 1_000

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

EXACT_BITS = 53
"""Ticks from 1970 that a float holds, some 28 years of them: the Cassandra driver counts in one."""


def draws(seed: int) -> Iterator[Random]:
    """Return the same source of random inputs as often as there are inputs."""
    random = Random(seed)
    for _ in range(INPUTS):
        yield random


def time_fields(random: Random) -> tuple[int, int, int]:
    """Return any tick, clock_seq and node."""
    return random.getrandbits(60), random.getrandbits(14), random.getrandbits(48)


def microsecond(random: Random) -> datetime:
    """Return any microsecond of the years that a float holds to the tick."""
    most = (1 << EXACT_BITS) // 10
    return EPOCH + timedelta(microseconds=random.randrange(-most, most))


def millisecond(random: Random) -> datetime:
    """Return any millisecond of 120 years: a float holds 16 ticks at a time as far as that."""
    return EPOCH + timedelta(milliseconds=random.randrange(120 * 365 * 86_400_000))


def name(random: Random) -> str:
    """Return a text of any characters but surrogates, up to 20 of them."""
    return "".join(chr(random.randrange(0xD800)) for _ in range(random.randrange(21)))


def test_others_read_the_fields_of_v1_and_v6() -> None:
    """uuid_utils finds the fields of both, uuid6 those of a v6, and converts a v1 to the v6."""
    for random in draws(1):
        parts = time_fields(random)
        one, six = versions.gregorian("v1", *parts), versions.gregorian("v6", *parts)
        for other, version in (
            (uuid_utils.UUID(int=one), 1),
            (uuid_utils.UUID(int=six), 6),
            (uuid6.UUID(int=six), 6),
        ):
            assert (other.version, other.time, other.clock_seq, other.node) == (version, *parts)
        assert uuid6.uuid1_to_uuid6(uuid.UUID(int=one)).int == six == versions.v1_to_v6(one)


def test_uuid_utils_reads_the_milliseconds_of_v1_and_v6() -> None:
    """uuid_utils counts the same Unix milliseconds from the ticks of both."""
    for random in draws(2):
        ms, clock_seq, node = random.getrandbits(46), random.getrandbits(14), random.getrandbits(48)
        tick = UNIX_EPOCH + ms * 10_000 + random.randrange(10_000)
        for kind in ("v1", "v6"):
            value = versions.gregorian(kind, tick, clock_seq, node)
            assert uuid_utils.UUID(int=value).timestamp == ms


def test_any_uuid_has_the_text_of_uuid_utils() -> None:
    for random in draws(3):
        value = random.getrandbits(128)
        assert uuids.to_text(value) == str(uuid_utils.UUID(int=value))
        assert uuid_utils.UUID(uuids.to_text(value)).int == value


def test_others_read_the_milliseconds_of_a_v7() -> None:
    for random in draws(4):
        ms = random.getrandbits(44)
        value = V7.pack(ms, random.getrandbits(74))
        assert (uuid6.UUID(int=value).version, uuid6.UUID(int=value).time) == (7, ms)
        assert uuid_utils.UUID(int=value).timestamp == ms
        theirs = uuid_utils.uuid7(nanoseconds=ms * 1_000_000 + random.randrange(1_000_000)).int
        assert V7.unpack(theirs)["timestamp"] == ms


def test_uuid_utils_makes_the_same_v8() -> None:
    for random in draws(5):
        parts = random.getrandbits(48), random.getrandbits(12), random.getrandbits(62)
        assert uuid_utils.uuid8(*parts).int == FORMATS["v8"].pack(*parts)


def test_others_make_the_same_v3_and_v5() -> None:
    for random in draws(6):
        space, text = random.getrandbits(128), name(random)
        assert versions.v3(space, text) == uuid.uuid3(uuid.UUID(int=space), text).int
        assert versions.v5(space, text) == uuid.uuid5(uuid.UUID(int=space), text).int
        assert versions.v3(space, text) == uuid_utils.uuid3(uuid_utils.UUID(int=space), text).int
        assert versions.v5(space, text) == uuid_utils.uuid5(uuid_utils.UUID(int=space), text).int


def test_a_guids_bytes_are_pythons_bytes_le() -> None:
    for random in draws(7):
        value = random.getrandbits(128)
        raw = uuids.guid_swapped(value).to_bytes(16, "big")
        assert raw == uuid.UUID(int=value).bytes_le


def test_python_ulid_reads_and_writes_the_same() -> None:
    for random in draws(8):
        ms, rest = random.getrandbits(48), random.getrandbits(80)
        value = ULID_FORMAT.pack(ms, rest)
        other = ULID.from_int(value)
        assert str(other) == ULID_FORMAT.to_text(value)
        assert int(ULID.from_str(ULID_FORMAT.to_text(value))) == value
        assert (other.milliseconds, bytes(other)[6:]) == (ms, rest.to_bytes(10, "big"))
        assert str(other.to_uuid()) == uuids.to_text(value)


def test_svix_ksuid_reads_and_writes_the_same() -> None:
    for random in draws(9):
        seconds, payload = KSUID_EPOCH + random.getrandbits(32), random.getrandbits(128)
        value = KSUID_FORMAT.pack(seconds - KSUID_EPOCH, payload)
        other = Ksuid(datetime.fromtimestamp(seconds, UTC), payload.to_bytes(16, "big"))
        assert bytes(other) == value.to_bytes(20, "big")
        assert (other.timestamp, other.payload) == (seconds, payload.to_bytes(16, "big"))
        assert str(other) == KSUID_FORMAT.to_text(value)
        assert bytes(Ksuid.from_base62(KSUID_FORMAT.to_text(value))) == value.to_bytes(20, "big")


@pytest.mark.parametrize("time", [microsecond, millisecond])
def test_the_cassandra_driver_has_the_same_bounds(time: Callable[[Random], datetime]) -> None:
    for random in draws(10):
        at = time(random)
        low, high = bounds("cassandra", at, unit="tick")
        assert (low, high) == (min_uuid_from_time(at), max_uuid_from_time(at))


def test_bounds_of_a_microsecond_hold_the_cassandra_drivers() -> None:
    """Ours of a whole microsecond begin where DataStax's do, and end nine ticks later."""
    for random in draws(11):
        time = microsecond(random)
        low, high = bounds("cassandra", time, unit="us")
        highest = kinds.gregorian(max_uuid_from_time(time).int)
        assert low == min_uuid_from_time(time)
        assert kinds.gregorian(high.int) == highest._replace(tick=highest.tick + 9)


def test_the_cassandra_driver_reads_the_time_of_a_v1() -> None:
    for random in draws(12):
        since = random.randrange(-1 << EXACT_BITS, 1 << EXACT_BITS)
        value = versions.gregorian(
            "v1", UNIX_EPOCH + since, random.getrandbits(14), random.getrandbits(48)
        )
        assert unix_time_from_uuid1(uuid.UUID(int=value)) == since / TICKS_PER_SECOND
