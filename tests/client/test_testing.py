"""``uuidd_client.testing``: ids that are the same in each run, and private daemons."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import SafeUUID

import freezegun
import pytest
import time_machine

import uuidd_client
from tests.client import lanes
from tests.client.lanes import Clock, World
from tests.client.raw import of_child
from tests.forks import PATIENCE
from tests.kinds import FORMS, GREGORIAN, KINDS, STEADY, UNLEASED
from uuidd_client import Client, DaemonUnavailable, TimeOutOfRange, inspect, ulid, uuid7
from uuidd_client.aio import AsyncClient
from uuidd_client.notices import Stats
from uuidd_client.opentelemetry import IdGenerator
from uuidd_client.testing import DEFAULT_TIME, fixed_ids, private_daemon

if TYPE_CHECKING:
    from uuidd_client.client import Form, Kind

pytestmark = pytest.mark.usefixtures("implementation")


FUTURE = datetime(2031, 5, 6, 7, 8, 9, 123_000, tzinfo=UTC)

MS = timedelta(milliseconds=1)

Travel = Callable[..., AbstractContextManager[Any]]


TOOLS: list[Travel] = [
    partial(freezegun.freeze_time, tick=False),
    partial(time_machine.travel, tick=False),
]

EACH_TOOL = pytest.mark.parametrize("travel", TOOLS, ids=["freezegun", "time_machine"])


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def when(made: object) -> datetime:
    """Return the time in an id, to the microsecond."""
    text = inspect(str(made))[0].fields["time"]
    return datetime.fromisoformat(str(text))


def drawn(client: Client) -> list[Any]:
    """Return ids of each kind, by each way to draw them."""
    ids: list[Any] = []
    kind: Kind
    form: Form
    for kind, form in FORMS:  # type: ignore[assignment]
        ids += [client.factory(kind, form)() for _ in range(3)]
        ids += client.make(kind, 5, form) if form != "bytes" else [client.make(kind, 5, form)]
        endless = client.iter(kind, form)
        ids += [next(endless) for _ in range(3)]
    return [*ids, client.uuid7(), client.ulid(), client.snowflake()]


def test_the_ids_of_a_seed_are_the_same_again(client: Client) -> None:
    with fixed_ids(1, client=client):
        first = drawn(client)
    with fixed_ids(1, client=client):
        again = drawn(client)
    assert again == first


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "snowflake"])
def test_ids_of_other_seeds_are_different(client: Client, kind: Kind) -> None:
    """But for Snowflakes, which have no room for random bits."""
    made: list[Any] = []
    for seed in (1, 2, "1", "another"):
        with fixed_ids(seed, client=client) as ids:
            made += ids.make(kind, 2)
    assert len({*made}) == 6


def test_these_are_the_first_ids_of_seed_0(client: Client) -> None:
    """They stay the same in later versions: programs keep them in their tests."""
    with fixed_ids(client=client) as ids:
        kinds: Any = KINDS
        made = {kind: str(ids.make(kind, 1)[0]) for kind in kinds}
    assert made == {
        "v1": "c232ab00-9414-11ec-ab90-c75833a81428",
        "v4": "10b4a1a4-a616-49c9-88b9-90bd2a123c78",
        "v6": "1ec9414c-232a-6b00-ab90-c75833a81428",
        "v7": "017f22e2-79b0-7000-8819-8c746f600f8e",
        "snowflake": "1496203729957814272",
        "flake": "AGkDJqavTaOUW0hKy0",
        "ulid": "01FWHE4YDG001MR2KR543M8B4S",
        "ksuid": "25Tizqai8eZik1qR1EvIC392XO4",
        "push_id": "-MwXsbak--Dgn917Hapb",
    }


def test_ids_do_not_depend_on_those_of_other_kinds(client: Client) -> None:
    with fixed_ids(client=client) as ids:
        alone = [ids.uuid7(), ids.uuid7()]
    with fixed_ids(client=client) as ids:
        assert [ids.uuid7(), ids.ulid() and ids.uuid7()] == alone


@pytest.mark.parametrize("kind", [*GREGORIAN, *STEADY])
def test_ids_rise_while_the_clock_stands_still(client: Client, kind: Kind) -> None:
    with fixed_ids(client=client) as ids:
        made = [*ids.make(kind, 2_500), ids.factory(kind)(), *ids.make(kind, 12_000)]
    assert len({*made}) == len(made)
    if kind != "v1":
        # Flakes have as many characters as they need, and sort as integers.
        assert made == sorted(made, key=lambda id: (len(str(id)), id))


@pytest.mark.parametrize("kind", [*GREGORIAN, *UNLEASED])
def test_no_id_comes_twice_when_a_test_sets_the_clock_back(client: Client, kind: Kind) -> None:
    """Not even ids without random bits, at times that overlap what was used."""
    made: list[Any] = []
    with fixed_ids(client=client) as ids:
        for ticks in (0, 30, 10, 0, 5, 40, 0):
            with time_machine.travel(FUTURE + timedelta(microseconds=ticks), tick=False):
                made += ids.make(kind, 170)
    assert len({*made}) == len(made) == 7 * 170


@EACH_TOOL
def test_ids_have_the_time_that_a_test_sets(client: Client, travel: Travel) -> None:
    made = []
    for _ in range(2):
        with fixed_ids(client=client) as ids:
            before = ids.uuid7()
            with travel(FUTURE):
                there = ids.uuid7()
            after = ids.uuid7()
        made.append((before, there, after))
        assert (when(before), when(there), when(after)) == (DEFAULT_TIME, FUTURE, DEFAULT_TIME)
    assert made[0] == made[1]


@EACH_TOOL
def test_ids_have_the_time_of_a_clock_that_ticks(client: Client, travel: Travel) -> None:
    with fixed_ids(client=client) as ids, travel(FUTURE, tick=True):
        before, made, after = datetime.now(UTC), ids.uuid7(), datetime.now(UTC)
        assert before - MS <= when(made) <= after


@pytest.mark.parametrize("zone", ["NST3:30", "NPT-5:45"])
def test_ids_do_not_depend_on_the_time_zone_of_the_machine(
    client: Client, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        seconds = int(FUTURE.timestamp())
        # A timestamp, for with a datetime the library sets the time zone as well.
        with fixed_ids(client=client) as ids, time_machine.travel(seconds, tick=False):
            assert when(ids.uuid7()).timestamp() == seconds
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_time_may_be_passed(client: Client) -> None:
    zone = datetime.fromisoformat("2031-05-06T12:38:09.123+05:30")
    with fixed_ids(at=zone, client=client) as ids:
        assert when(ids.uuid7()) == FUTURE


@pytest.mark.parametrize("year", [1999, 2081])
def test_a_time_that_does_not_fit_is_refused(client: Client, year: int) -> None:
    with (
        fixed_ids(at=datetime(year, 1, 1, tzinfo=UTC), client=client) as ids,
        pytest.raises(TimeOutOfRange, match=f"the time is {year}-01-01"),
    ):
        ids.snowflake()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"at": datetime(2020, 1, 1)}, "at is 2020-01-01 00:00:00, without a time zone"),
        ({"worker": 1024}, "worker is 1024; it must be 0 to 1023"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error), fixed_ids(**arguments):
        pass


@pytest.mark.parametrize("seed", [None, 1.5, b"x", True])
def test_a_seed_is_an_integer_or_a_text(seed: Any) -> None:
    with pytest.raises(TypeError) as refused, fixed_ids(seed):
        pass
    assert str(refused.value) == f"seed is {seed!r}; it must be an int or a str"


@pytest.mark.parametrize(
    "take",
    [
        lambda other: AsyncClient(other),
        lambda other: IdGenerator(other),
        lambda other: fixed_ids(client=other).__enter__(),
        lambda other: private_daemon(client=other).__enter__(),
    ],
    ids=["AsyncClient", "IdGenerator", "fixed_ids", "private_daemon"],
)
def test_what_is_no_client_is_refused(take: Callable[[Any], object]) -> None:
    """As the path of a socket, which a hasty reader may pass."""
    with pytest.raises(TypeError) as refused:
        take("/run/uuidd/request")
    assert str(refused.value) == "client is '/run/uuidd/request'; it must be a Client"


def test_functions_that_were_imported_before_are_fixed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = uuid7()
    with fixed_ids() as ids:
        fixed = [uuid7(), uuidd_client.uuid7(), ids.uuid7()]
        texts = [ulid(), ids.ulid()]
    with fixed_ids() as ids:
        assert [ids.uuid7() for _ in range(3)] == fixed
        assert [ids.ulid() for _ in range(2)] == texts
    after = uuid7()
    assert before < after
    assert when(after) > DEFAULT_TIME + timedelta(days=365)


def test_an_inner_seed_ends_with_its_context(client: Client) -> None:
    with fixed_ids(client=client) as ids:
        two = [ids.uuid7(), ids.uuid7()]
    with fixed_ids(client=client) as ids:
        first = ids.uuid7()
        with fixed_ids(5, client=client) as inner:
            assert inner.uuid7() not in two
        assert [first, ids.uuid7()] == two


def test_fixed_ids_are_not_of_a_daemon() -> None:
    """Nor is there anything to count, for the functions of the module either."""
    with fixed_ids() as ids:
        assert ids.uuid1().is_safe is SafeUUID.unknown
        with pytest.raises(DaemonUnavailable, match="the ids of this test are fixed"):
            ids.status()
        assert uuidd_client.stats() == Stats()


def test_threads_share_fixed_ids(client: Client) -> None:
    with fixed_ids(client=client) as ids:
        alone = {made.int >> 64 for made in ids.make("v7", 400)}
    with fixed_ids(client=client) as ids, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ids.uuid7(), range(400)))
    assert len({*found}) == 400
    assert {made.int >> 64 for made in found} == alone


@pytest.mark.process
def test_a_forks_child_draws_other_ids(client: Client) -> None:
    """Each child others, because it cannot know of its siblings."""
    with fixed_ids(client=client) as ids:
        made = [ids.uuid7().bytes]
        made += [of_child(lambda: ids.uuid7().bytes) for _ in range(2)]
        made.append(ids.uuid7().bytes)
    assert len({*made}) == 4


@pytest.fixture
def leasing(path: Path) -> Iterator[Client]:
    """A client that has a lease."""
    world = World(path, Clock())
    with lanes.leasing(world, timeout=PATIENCE) as (_, client):
        yield client
    world.lanes.close()


def test_a_lease_rests_while_ids_are_fixed(leasing: Client) -> None:
    draw = leasing.factory("v7")
    before = [draw() for _ in range(10)]
    with fixed_ids(client=leasing):
        fixed = [draw() for _ in range(10)]
    after = [draw() for _ in range(10)]
    assert {made.is_safe for made in before + after} == {SafeUUID.safe}
    assert {made.is_safe for made in fixed} == {SafeUUID.unknown}
    assert sorted(before + after) == before + after
    assert {str(made)[:13] for made in fixed} == {"017f22e2-79b0"}


def test_a_lease_serves_again_after_ids_were_fixed(leasing: Client) -> None:
    """The daemon is asked neither for another one nor for a block."""
    # A channel that begins anew has a block less.
    leasing.flake()
    draw, before = leasing.factory("v7"), leasing.stats()
    with fixed_ids(client=leasing):
        draw()
    made = [draw() for _ in range(1000)]
    assert sorted(made) == made
    assert leasing.stats() == before


@pytest.mark.process
def test_a_private_daemon_makes_the_ids_while_it_lasts(client: Client) -> None:
    """Before and after it, ids come from where they came from; its folder and process are gone."""
    assert client.uuid7().is_safe is SafeUUID.unknown
    with private_daemon(worker=7, client=client) as daemon:
        assert {client.uuid7().is_safe for _ in range(3)} == {SafeUUID.safe}
        assert client.status()["pid"] == daemon.pid
        assert client.snowflake() >> 12 & 1023 == 7
        assert os.environ["UUIDD_SOCKET"] == str(daemon.socket)
        # A lease, which the functions would use without a call of the channel.
        lasting = client.factory("v7")
        assert lasting().is_safe is SafeUUID.safe
    assert lasting().is_safe is SafeUUID.unknown
    assert not daemon.socket.parent.exists()
    assert not Path("/proc", str(daemon.pid)).exists()


@pytest.mark.process
def test_the_environment_after_a_private_daemon_is_that_before_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UUIDD_SOCKET", "/before")
    monkeypatch.delenv("UUIDD_TIMEOUT", raising=False)
    before = dict(os.environ)
    with private_daemon(client=client):
        assert os.environ["UUIDD_TIMEOUT"] == "10"
    assert os.environ == before
