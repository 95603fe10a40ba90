"""Our functions against independent implementations, on the same random inputs each run."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

import uuid6
import uuid_utils
from cassandra.util import max_uuid_from_time, min_uuid_from_time, unix_time_from_uuid1
from ksuid import Ksuid
from ulid import ULID

from uuidd.core.ids import ksuid, ulid, uuids, versions
from uuidd.core.ids.bounds import bounds
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH

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


# --- v1, v6


def test_uuid6_turns_v1_into_the_same_v6() -> None:
    """The package uuid6 gives the v6 that v1_to_v6 gives."""
    for random in draws(1):
        value = versions.v1(*time_fields(random))
        assert uuid6.uuid1_to_uuid6(uuid.UUID(int=value)).int == versions.v1_to_v6(value)


def test_uuid6_reads_the_fields_of_a_v6() -> None:
    """The package uuid6 finds the tick, clock_seq and node that v6 was given."""
    for random in draws(2):
        parts = time_fields(random)
        other = uuid6.UUID(int=versions.v6(*parts))
        assert (other.time, other.clock_seq, other.node) == parts


def test_uuid_utils_reads_the_fields_of_a_v1() -> None:
    """uuid_utils finds the tick, clock_seq and node that v1 was given."""
    for random in draws(3):
        parts = time_fields(random)
        other = uuid_utils.UUID(int=versions.v1(*parts))
        assert (other.version, other.time, other.clock_seq, other.node) == (1, *parts)


def test_uuid_utils_reads_the_fields_of_a_v6() -> None:
    """uuid_utils finds the tick, clock_seq and node that v6 was given."""
    for random in draws(4):
        parts = time_fields(random)
        other = uuid_utils.UUID(int=versions.v6(*parts))
        assert (other.version, other.time, other.clock_seq, other.node) == (6, *parts)


def test_uuid_utils_reads_the_milliseconds_of_v1_and_v6() -> None:
    """uuid_utils counts the same Unix milliseconds from the ticks of both."""
    for random in draws(5):
        ms, clock_seq, node = random.getrandbits(46), random.getrandbits(14), random.getrandbits(48)
        tick = UNIX_EPOCH + ms * 10_000 + random.randrange(10_000)
        for make in (versions.v1, versions.v6):
            assert uuid_utils.UUID(int=make(tick, clock_seq, node)).timestamp == ms


def test_any_uuid_has_the_text_that_uuid_utils_gives() -> None:
    """uuid_utils writes any 128 bits as we do, and reads ours."""
    for random in draws(6):
        value = random.getrandbits(128)
        assert uuids.to_text(value) == str(uuid_utils.UUID(int=value))
        assert uuid_utils.UUID(uuids.to_text(value)).int == value


# --- v7, v8


def test_uuid6_reads_the_milliseconds_of_a_v7() -> None:
    """The package uuid6 finds the milliseconds that v7 was given."""
    for random in draws(7):
        ms = random.getrandbits(48)
        other = uuid6.UUID(int=versions.v7(ms, random.getrandbits(12), random.getrandbits(62)))
        assert (other.version, other.time) == (7, ms)


def test_uuid_utils_reads_the_milliseconds_of_a_v7() -> None:
    """uuid_utils finds the milliseconds that v7 was given."""
    for random in draws(8):
        ms = random.getrandbits(48)
        value = versions.v7(ms, random.getrandbits(12), random.getrandbits(62))
        assert uuid_utils.UUID(int=value).timestamp == ms


def test_a_v7_of_uuid_utils_gives_its_time() -> None:
    """A v7 that uuid_utils made of nanoseconds has their milliseconds."""
    for random in draws(9):
        ms = random.getrandbits(44)
        value = uuid_utils.uuid7(nanoseconds=ms * 1_000_000 + random.randrange(1_000_000)).int
        assert versions.v7_fields(value).ms == ms


def test_uuid_utils_makes_the_same_v8() -> None:
    """uuid_utils puts the same three blocks in the same places."""
    for random in draws(10):
        parts = random.getrandbits(48), random.getrandbits(12), random.getrandbits(62)
        assert uuid_utils.uuid8(*parts).int == versions.v8(*parts)


# --- v3, v5, GUIDs


def test_pythons_uuid_makes_the_same_v3_and_v5() -> None:
    """The standard library gives the same UUIDs of any namespace and name."""
    for random in draws(11):
        space, text = random.getrandbits(128), name(random)
        assert versions.v3(space, text) == uuid.uuid3(uuid.UUID(int=space), text).int
        assert versions.v5(space, text) == uuid.uuid5(uuid.UUID(int=space), text).int


def test_uuid_utils_makes_the_same_v3_and_v5() -> None:
    """uuid_utils gives the same UUIDs of any namespace and name."""
    for random in draws(12):
        space, text = random.getrandbits(128), name(random)
        assert versions.v3(space, text) == uuid_utils.uuid3(uuid_utils.UUID(int=space), text).int
        assert versions.v5(space, text) == uuid_utils.uuid5(uuid_utils.UUID(int=space), text).int


def test_a_guids_bytes_are_pythons_bytes_le() -> None:
    """The standard library's bytes_le are the GUID bytes of any UUID, both ways."""
    for random in draws(13):
        value = random.getrandbits(128)
        raw = uuids.guid_swapped(value).to_bytes(16, "big")
        assert raw == uuid.UUID(int=value).bytes_le
        assert uuid.UUID(bytes_le=raw).int == uuids.guid_swapped(uuids.guid_swapped(value))


# --- ULIDs


def test_python_ulid_writes_the_same_text() -> None:
    """python-ulid gives any ULID the text that we do, and reads ours."""
    for random in draws(14):
        value = random.getrandbits(128)
        assert str(ULID.from_int(value)) == ulid.to_text(value)
        assert int(ULID.from_str(ulid.to_text(value))) == ulid.from_text(ulid.to_text(value))


def test_python_ulid_reads_the_fields_of_a_ulid() -> None:
    """python-ulid finds the milliseconds and random bytes that a ULID was given."""
    for random in draws(15):
        ms, rest = random.getrandbits(48), random.getrandbits(80)
        other = ULID.from_int(ulid.ulid(ms, rest))
        assert other.milliseconds == ms
        assert bytes(other)[6:] == rest.to_bytes(10, "big")


def test_python_ulid_sees_the_same_uuid_in_a_ulid() -> None:
    """python-ulid turns a ULID into the UUID of the same 128 bits."""
    for random in draws(16):
        value = random.getrandbits(128)
        assert str(ULID.from_int(value).to_uuid()) == uuids.to_text(value)


# --- KSUIDs


def test_svix_ksuid_writes_the_same_text() -> None:
    """svix-ksuid gives any KSUID the text that we do, and reads ours."""
    for random in draws(17):
        value = random.getrandbits(160)
        text = ksuid.to_text(value)
        assert str(Ksuid.from_bytes(value.to_bytes(20, "big"))) == text
        assert int.from_bytes(bytes(Ksuid.from_base62(text)), "big") == ksuid.from_text(text)


def test_svix_ksuid_makes_the_same_of_a_time_and_a_payload() -> None:
    """svix-ksuid lays a second and a payload out as we do, and reads them out of ours."""
    for random in draws(18):
        seconds, payload = ksuid.EPOCH + random.getrandbits(32), random.getrandbits(128)
        value = ksuid.ksuid(seconds, payload)
        other = Ksuid(datetime.fromtimestamp(seconds, UTC), payload.to_bytes(16, "big"))
        assert bytes(other) == value.to_bytes(20, "big")
        assert (other.timestamp, other.payload) == (seconds, payload.to_bytes(16, "big"))


# --- Cassandra


def test_the_cassandra_driver_has_the_same_bounds_of_a_microsecond() -> None:
    """DataStax's lowest and highest TimeUUID are those of a microsecond's first tick."""
    for random in draws(19):
        time = microsecond(random)
        low, high = bounds("cassandra", time, unit="tick")
        assert low == min_uuid_from_time(time).int
        assert high == max_uuid_from_time(time).int


def test_the_cassandra_driver_has_the_same_bounds_of_a_millisecond() -> None:
    """So are they of a millisecond's first tick, up to the year 2089."""
    for random in draws(20):
        time = millisecond(random)
        low, high = bounds("cassandra", time, unit="tick")
        assert low == min_uuid_from_time(time).int
        assert high == max_uuid_from_time(time).int


def test_bounds_of_a_microsecond_hold_the_cassandra_drivers() -> None:
    """Ours of a whole microsecond begin where DataStax's do, and end nine ticks later."""
    for random in draws(21):
        time = microsecond(random)
        low, high = bounds("cassandra", time, unit="us")
        highest = versions.gregorian_fields(max_uuid_from_time(time).int)
        assert low == min_uuid_from_time(time).int
        assert versions.gregorian_fields(high) == highest._replace(tick=highest.tick + 9)


def test_the_cassandra_driver_reads_the_time_of_a_v1() -> None:
    """DataStax's Unix time of a v1 is its tick's."""
    for random in draws(22):
        since = random.randrange(-1 << EXACT_BITS, 1 << EXACT_BITS)
        value = versions.v1(UNIX_EPOCH + since, random.getrandbits(14), random.getrandbits(48))
        assert unix_time_from_uuid1(uuid.UUID(int=value)) == since / TICKS_PER_SECOND
