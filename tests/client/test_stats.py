"""What a client says of itself: in ``stats``, and in the log."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.client.fakes import Answer, Server, Time, grants, in_turn
from tests.client.lanes import Clock, World
from tests.tools import run
from uuidd.core.timeline.page import DUE_AT, HORIZON_AT
from uuidd_client import Client, DaemonUnavailable, NoWorkerId, channel, notices
from uuidd_client.notices import Stats

if TYPE_CHECKING:
    from uuidd_client.client import Kind

pytestmark = pytest.mark.usefixtures("implementation")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Return the log, of all levels."""
    with caplog.at_level(logging.DEBUG, logger=notices.LOGGER):
        yield caplog


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a daemon that was not there be asked again at once."""
    monkeypatch.setattr(channel, "RETRY_SECONDS", 0.0)


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """Return the client's logger, which loses its handlers and filters at the end."""
    logger = logging.getLogger(notices.LOGGER)
    yield logger
    logger.handlers.clear()
    logger.filters.clear()


def lines(log: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return the level and the text of each line of the client's log."""
    return [
        (each.levelname, each.getMessage())
        for each in log.records
        if each.name == notices.LOGGER and each.levelno > logging.DEBUG
    ]


def test_blocks_of_the_daemon_are_counted(path: Path) -> None:
    """Those of all kinds; v4 need none. The next life, as that of a fork's child, begins anew."""
    with Server(path, grants()) as server, Client(path) as client:
        assert client.stats() == Stats()
        client.uuid1()
        client.make("v7", 10)
        client.make("v4", 3)
        assert client.stats() == Stats(blocks=len(server.requests))
        client.renew()
        assert client.stats() == Stats()


def test_blocks_without_a_daemon_count_apart(path: Path) -> None:
    before = time.time()
    client = Client(path)
    client.uuid1()
    client.make("ulid", 10)
    stats = client.stats()
    assert (stats.blocks, stats.leases) == (0, 0)
    assert stats.fallback_blocks > 0
    assert stats.last_error == f"no answer from uuidd at {path}: No such file or directory"
    assert stats.last_error_at is not None
    assert before <= stats.last_error_at <= time.time()


def test_a_lease_is_counted(path: Path) -> None:
    with World(path, Clock()).server() as server, Client(path) as client:
        while not server.asked:
            client.ulid()
        client.ulid()
        stats = client.stats()
        assert (stats.leases, stats.leased) == (1, True)
        client.close()
        assert not client.stats().leased


@pytest.mark.usefixtures("no_pause")
@pytest.mark.parametrize("kinds", [("v1", "v7"), ("v7", "v1")])
def test_the_last_error_is_the_later_one_of_all_kinds(path: Path, kinds: tuple[Kind, Kind]) -> None:
    """Each timeline has errors of its own."""
    client = Client(path, max_age=0)
    client.make(kinds[0], 1)
    client.make(kinds[1], 1)
    with Server(path, "unavailable: no disk"):
        client.make(kinds[1], 1)
        client.close()
    assert "no disk" in client.stats().last_error


@pytest.mark.usefixtures("no_pause")
def test_a_change_is_logged_once(path: Path, log: pytest.LogCaptureFixture) -> None:
    """Not for each id: when the daemon is not there, and when it answers again."""
    client = Client(path, max_age=0)
    for _ in range(3):
        client.make("v1", 10)
    with World(path, Clock()).server():
        for _ in range(3):
            client.make("v1", 10)
        client.close()
    (first, line), (then, back) = lines(log)
    assert (first, line) == (
        "WARNING",
        f"no answer from uuidd at {path}: No such file or directory; v1, v6 are made in this"
        " process until it answers",
    )
    assert then == "INFO"
    assert back.startswith(f"uuidd at {path} answers again for v1, v6, after ")


class Disk:
    """A daemon's answers: it gives v1, and v7 while its disk is *well*."""

    def __init__(self, well: bool = False) -> None:
        self.well = well
        self._grants = grants()

    def __call__(self, request: bytes) -> Answer:
        """Answer a request for ticks."""
        if self.well or b"utc" in request:
            return self._grants
        return "unavailable: the state could not be saved within 0.8 s"


@pytest.mark.usefixtures("no_pause")
def test_what_is_refused_to_v7_is_no_trouble_of_v1(
    path: Path, log: pytest.LogCaptureFixture
) -> None:
    """A program that makes both while the disk is full logs when it begins, and when it ends."""
    disk = Disk()
    with Server(path, disk), Client(path, max_age=0) as client:
        for well in (False, True):
            disk.well = well
            for _ in range(20):
                client.uuid1()
                client.uuid7()
    (first, line), (then, back) = lines(log)
    assert (first, then) == ("WARNING", "INFO")
    assert line.endswith(
        "; v7, flake, ulid, ksuid, push_id are made in this process until it answers"
    )
    assert "answers again for v7, " in back


@pytest.mark.usefixtures("no_pause")
def test_trouble_lasts_from_its_first_failure(
    path: Path, log: pytest.LogCaptureFixture, time: Time
) -> None:
    """The line at its end says how long, however many requests have failed meanwhile."""
    with Client(path, max_age=0, _clock=time) as client:
        for _ in range(2):
            client.uuid1()
            time.move(5)
        with World(path, time).server():
            client.uuid1()
    assert lines(log)[1][1].endswith(", after 10.0 s")


@pytest.mark.usefixtures("no_pause")
def test_a_lease_that_can_be_used_again_ends_the_trouble(
    path: Path, log: pytest.LogCaptureFixture, time: Time
) -> None:
    """The daemon has saved, and v7 need no more requests that it could answer."""
    words = (world := World(path, time)).lanes.words
    far = words[HORIZON_AT]
    words[DUE_AT] = words[HORIZON_AT] = time.utc + 25_000_000
    disk = Disk(well=True)
    with (
        Server(path, disk, world.lanes.answered, [world.lanes.fd]),
        Client(path, _clock=time) as client,
    ):
        for seconds in range(1, 5):
            if seconds == 3:
                assert client.stats().leased
                disk.well = False
            if seconds == 4:
                assert [level for level, _ in lines(log)] == ["WARNING"]
                words[DUE_AT] = words[HORIZON_AT] = far
            time.move(1)
            client.uuid7()
    assert [level for level, _ in lines(log)] == ["WARNING", "INFO"]


def test_a_missing_worker_number_is_no_trouble(path: Path, log: pytest.LogCaptureFixture) -> None:
    """The daemon has answered, and each call says what is missing."""
    answers = in_turn("no_worker_id: it has none", grants())
    with Server(path, answers), Client(path, max_age=0) as client:
        with pytest.raises(NoWorkerId):
            client.snowflake()
        client.uuid1()
        assert "it has none" in client.stats().last_error
    assert lines(log) == []


@pytest.mark.usefixtures("no_pause")
def test_the_log_has_four_lines_a_minute_at_most(
    path: Path, log: pytest.LogCaptureFixture, time: Time
) -> None:
    """However the daemon's answers change, for all clients together; then a line says how it is."""
    new = partial(Client, path, max_age=0, _clock=time)
    disk = Disk()
    with Server(path, disk), new() as one, new() as other:

        def change(well: bool) -> None:
            disk.well = well
            time.move(1)
            one.uuid7()
            other.uuid7()

        for well in (False, True) * 10:
            change(well)
        assert len(lines(log)) == 4
        change(False)
        time.move(60)
        change(False)
        assert [level for level, _ in lines(log)[4:]] == ["WARNING", "WARNING"]


@pytest.mark.usefixtures("no_pause")
def test_calls_that_fail_are_logged_once(path: Path, log: pytest.LogCaptureFixture) -> None:
    client = Client(path, fallback=False)
    for _ in range(3):
        with pytest.raises(DaemonUnavailable):
            client.uuid7()
    assert [line.rpartition("; ")[2] for _, line in lines(log)] == [
        "v7, flake, ulid, ksuid, push_id cannot be made until it answers"
    ]


def test_a_lease_is_logged_for_those_who_look_closely(
    path: Path, log: pytest.LogCaptureFixture
) -> None:
    with World(path, Clock()).server() as server, Client(path) as client:
        while not server.asked:
            client.ulid()
        client.make("ulid", 1)
    assert ("DEBUG", "lane 16 was leased") in [
        (each.levelname, each.getMessage()) for each in log.records
    ]


class Drawing(logging.Handler):
    """What makes an id for each line, and one in another thread, which needs the lock too."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self.made: list[str] = []

    def emit(self, _: object) -> None:
        """Make ids of the client whose line it is."""
        self.made.append(self._client.ulid())
        with ThreadPoolExecutor(1) as pool:
            self.made.append(pool.submit(self._client.ulid).result(60))


def test_a_handler_may_make_ids(path: Path, logger: logging.Logger) -> None:
    """No lock is held while it is called, so that another thread gets ids too."""
    client = Client(path)
    handler = Drawing(client)
    logger.addHandler(handler)
    made = [client.ulid(), *handler.made, client.ulid()]
    assert len(handler.made) == 2
    assert len(set(made)) == 4


def test_a_filter_that_fails_fails_no_call(path: Path, logger: logging.Logger) -> None:
    """The id is made; what is wrong with the log is not the caller's."""

    def fail(record: logging.LogRecord) -> bool:
        raise RuntimeError("a faulty filter")

    logger.addFilter(fail)
    assert Client(path).ulid()


def test_the_warning_comes_when_no_lock_is_held(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What shows it may make ids, as logging.captureWarnings does with such a handler."""
    monkeypatch.setattr(notices, "_warned_in", 0)
    client = Client(path)
    handler = Drawing(client)
    with warnings.catch_warnings(action="always"):
        monkeypatch.setattr(warnings, "showwarning", lambda *_, **__: handler.emit(None))
        made = client.ulid()
    assert len({made, *handler.made}) == 3


_QUIET = """
import sys, warnings
warnings.simplefilter("ignore")
if sys.argv[2:]:
    import logging
from uuidd_client import Client
Client(sys.argv[1]).uuid7()
print("logging" in sys.modules)
"""


@pytest.mark.process
@pytest.mark.parametrize("imported", [True, False])
def test_a_program_without_a_log_sees_no_line(path: Path, imported: bool) -> None:
    """On standard error is the warning alone; and logging is not imported for it."""
    ended = run(sys.executable, "-c", _QUIET, path, *(["logging"] if imported else []))
    assert (ended.stdout, ended.stderr) == (f"{imported}\n", "")
