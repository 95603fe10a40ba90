"""The client for asyncio and trio: no task waits because another one asks the daemon."""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from tests.client.fakes import START, Held, Server, grants
from tests.client.lanes import Clock, World
from tests.kinds import KINDS, TIMED, apart
from tests.rig import Daemon
from tests.tools import output
from uuidd_client import Client, DaemonUnavailable, connection
from uuidd_client.aio import MAX_THREADS, PIECE, SHORT_LIST, AsyncClient
from uuidd_client.channel import Channel
from uuidd_client.client import Channels
from uuidd_client.connection import Stream
from uuidd_client.system import SYSTEM_CLOCK
from uuidd_client.testing import fixed_ids

if TYPE_CHECKING:
    from uuidd_client.client import Form

pytestmark = pytest.mark.usefixtures("implementation")

DRAWS = [KINDS[kind].method for kind in TIMED]
TEN_MINUTES = 600.0


def in_each_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an asynchronous test to its end, in asyncio and in trio."""

    @wraps(test)
    def run(loop: str, **fixtures: Any) -> None:
        anyio.run(partial(test, **fixtures), backend=loop)

    taken = [*signature(test).parameters.values(), Parameter("loop", Parameter.KEYWORD_ONLY)]
    run.__signature__ = Signature(taken)  # type: ignore[attr-defined]
    in_each: Callable[..., None] = pytest.mark.parametrize("loop", ["asyncio", "trio"])(run)
    return in_each


@pytest.fixture
def held(path: Path) -> Iterator[Held]:
    """A daemon that holds its answers back, and then grants a tick a request; and no lease."""
    with Held(path, grants(step=1000)) as held:
        yield held


async def until(true: Callable[[], object]) -> None:
    """Wait until something is true, while the event loop goes on."""
    with anyio.fail_after(60):
        while not true():  # noqa: ASYNC110 - it is told by no event of the loop
            await anyio.sleep(0.001)


def at_once(awaited: Any) -> Any:
    """Return what an awaitable returns that does not let go of the event loop."""
    steps = awaited.__await__()
    with pytest.raises(StopIteration) as ended:
        next(steps)
    return ended.value.value


def test_each_method_of_the_client_is_there() -> None:
    def public(of: object) -> set[str]:
        return {name for name in dir(of) if not name.startswith("_")}

    assert public(AsyncClient()) == public(Client()) - {"close"} | {"aclose"}


@pytest.mark.parametrize("name", DRAWS)
@in_each_loop
async def test_each_kind_is_made_by_the_daemon(daemon: Daemon, name: str) -> None:
    async with AsyncClient(Client(daemon.socket)) as ids:
        made = [await getattr(ids, name)() for _ in range(1000)]
    assert len(set(made)) == 1000
    if isinstance(made[0], uuid.UUID):
        assert {id.is_safe for id in made} == {uuid.SafeUUID.safe}
    if name != "uuid1":
        assert made == sorted(made, key=lambda id: (len(str(id)), id))


@in_each_loop
async def test_an_id_that_needs_no_daemon_does_not_let_go_of_the_loop(path: Path) -> None:
    with World(path, Clock()).server() as server:
        ids = AsyncClient(Client(path))
        while not server.asked:
            await ids.uuid7()
        made = {at_once(ids.uuid7()) for _ in range(1000)}
        assert len(made) == 1000
        # A list takes as many ticks as it has ids.
        enough = SYSTEM_CLOCK.utc_tick() + SHORT_LIST
        while SYSTEM_CLOCK.utc_tick() < enough:
            pass
        assert len(at_once(ids.make("v7", SHORT_LIST))) == SHORT_LIST
        await ids.aclose()


@pytest.mark.parametrize("name", DRAWS)
@in_each_loop
async def test_the_loop_never_waits_for_the_daemon(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    askers: list[int] = []

    class Watched(Stream):
        def at_once(self, call: Callable[..., Any], *args: Any) -> Any:
            askers.append(threading.get_ident())
            return super().at_once(call, *args)

        def wait_for_bytes(self, seconds: float) -> None:
            askers.append(threading.get_ident())
            super().wait_for_bytes(seconds)

    monkeypatch.setattr(connection, "Stream", Watched)
    with Server(path, grants()):
        ids = AsyncClient(Client(path))
        for _ in range(20):
            await getattr(ids, name)()
        await ids.make("v7", 20)
    assert askers
    assert threading.get_ident() not in askers


@in_each_loop
async def test_other_tasks_go_on_while_the_daemon_is_asked(held: Held, path: Path) -> None:
    """Also those that draw ids which need no daemon."""
    ids, others = AsyncClient(Client(path, timeout=TEN_MINUTES)), []
    await ids.make("v4", 1)

    async def ask() -> None:
        others.append(await ids.uuid1())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await until(held.heard.is_set)
        assert len(await ids.make("v4", 3)) == 3
        assert not others
        held.awake.set()
    assert len(others) == 1


@in_each_loop
async def test_a_call_that_is_cancelled_before_its_thread_begins_asks_nobody(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    """And it holds up no later call, however many there were."""
    late = list[Callable[[], object]]()

    async def never_begun(run: Callable[[], object], **_: object) -> None:
        late.append(run)
        await anyio.sleep_forever()

    monkeypatch.setattr(anyio.to_thread, "run_sync", never_begun)
    with Server(path, grants()) as server, anyio.fail_after(60):
        ids = AsyncClient(Client(path))
        for calls in range(MAX_THREADS + 1):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ids.status)
                await until(lambda: len(late) > calls)  # noqa: B023 - it is called here alone
                tasks.cancel_scope.cancel()
        assert [run() for run in late] == [None] * (MAX_THREADS + 1)
    assert not server.requests


@in_each_loop
async def test_a_call_that_is_cancelled_while_the_daemon_is_asked_holds_up_no_other(
    held: Held, path: Path
) -> None:
    ids = AsyncClient(Client(path, timeout=TEN_MINUTES))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ids.uuid1)
        await until(held.heard.is_set)
        tasks.cancel_scope.cancel()
    held.awake.set()
    assert (await ids.uuid1()).time == START + 1000
    assert len(held.requests) == 2


@in_each_loop
async def test_calls_that_were_cancelled_leave_few_threads(held: Held, path: Path) -> None:
    ids = AsyncClient(Client(path, timeout=TEN_MINUTES))
    before = threading.active_count()
    for _ in range(5 * MAX_THREADS):
        with anyio.move_on_after(0.002):
            await ids.uuid1()
    await until(held.heard.is_set)
    threads = threading.active_count() - before
    held.awake.set()
    await ids.uuid1()
    # One that is idle, because its call had ended before it began, counts here too.
    assert threads < 2 * MAX_THREADS


@in_each_loop
async def test_many_tasks_share_one_request(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """They find what the thread of the first one has asked for, without a thread of their own."""
    make, asked, made = Channel.make, list[Any](), set[str]()

    def counted(*words: Any) -> Any:
        asked.append(words)
        return make(*words)

    async def draw() -> None:
        made.add(await ids.ulid())

    monkeypatch.setattr(Channel, "make", counted)
    with Held(path, grants(64, step=1000)) as server:
        ids = AsyncClient(Client(path, timeout=TEN_MINUTES, max_age=TEN_MINUTES))
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(draw)
            await until(server.heard.is_set)
            server.awake.set()
    assert (len(made), len(asked)) == (20, 1)


@pytest.mark.parametrize("at", [0, 1])
@in_each_loop
async def test_an_id_of_a_life_that_has_ended_is_not_used(
    monkeypatch: pytest.MonkeyPatch, path: Path, at: int
) -> None:
    """A handler that forks may run after the draw: the child would return the same id."""
    cutter, drawn = Channels.cutter, list[str]()

    def ending(channels: Channels, kind: str) -> Any:
        found = cutter(channels, kind)

        def one(*words: str) -> Any:
            assert found is not None
            drawn.append(found.one(*words))
            if len(drawn) == at + 1:
                client.renew()
            return drawn[-1]

        return found and SimpleNamespace(one=one)

    with (
        Server(path, grants(64, step=1000)),
        Client(path, timeout=TEN_MINUTES, max_age=TEN_MINUTES) as client,
    ):
        await AsyncClient(client).ulid()
        monkeypatch.setattr(Channels, "cutter", ending)
        ids = AsyncClient(client)
        made = [await ids.ulid() for _ in range(at + 1)]
    assert made[:at] == drawn[:at]
    assert made[at] != drawn[at]


@in_each_loop
async def test_without_any_age_and_a_lease_each_id_is_asked_for(path: Path) -> None:
    """By a thread, which makes the id too; after ``aclose`` over another connection."""
    with Server(path, grants()) as server:
        ids, made = AsyncClient(Client(path, max_age=0, fallback=False)), set()
        for _ in range(2):
            async with ids:
                made |= {await ids.uuid1() for _ in range(20)}
        assert len(made) == 40
        assert len(server.requests) >= 40
        assert server.connections == 2


@pytest.mark.parametrize("count", [0, 1, SHORT_LIST, SHORT_LIST + 1, 2 * PIECE + 1])
@pytest.mark.parametrize("form", [None, "text", "bytes"])
@in_each_loop
async def test_a_list_has_exactly_as_many_ids(
    daemon: Daemon, count: int, form: Form | None
) -> None:
    async with AsyncClient(Client(daemon.socket)) as ids:
        found: Any = await ids.make("v7", count, form)
    assert isinstance(found, bytes) == (form == "bytes")
    made = apart("v7", found)
    assert len(made) == count
    assert made == sorted(set(made))


@in_each_loop
async def test_a_list_that_is_cancelled_is_not_made_to_its_end(
    monkeypatch: pytest.MonkeyPatch, daemon: Daemon
) -> None:
    begun, go, make, pieces = threading.Event(), threading.Event(), Channel.make, list[Any]()

    def held_make(*words: Any) -> Any:
        pieces.append(words)
        begun.set()
        go.wait(60)
        return make(*words)

    monkeypatch.setattr(Channel, "make", held_make)
    ids = AsyncClient(Client(daemon.socket))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ids.make, "v7", 20 * PIECE)
        await until(begun.is_set)
        tasks.cancel_scope.cancel()
    go.set()
    # The thread that was left alone has ended when this one gets the connections.
    await ids.aclose()
    assert len(pieces) <= 2


@in_each_loop
async def test_an_endless_iterator_lets_others_have_their_turn(path: Path) -> None:
    turns, left = 0, 10_000

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    with World(path, Clock()).server() as server:
        ids = AsyncClient(Client(path))
        while not server.asked:
            await ids.ulid()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count)
            async for _ in ids.iter("ulid"):
                left -= 1
                if not left:
                    break
            tasks.cancel_scope.cancel()
        await ids.aclose()
    assert turns >= 99


@in_each_loop
async def test_a_factory_makes_one_kind_and_the_status_is_the_daemons(daemon: Daemon) -> None:
    async with AsyncClient(Client(daemon.socket)) as ids:
        assert uuid.UUID(await ids.factory("v6", "text")()).version == 6
        assert (await ids.status())["pid"] == daemon.pid


@in_each_loop
async def test_stats_and_a_renewal_are_those_of_the_client(path: Path) -> None:
    with Server(path, grants(64, step=1000)) as server, Client(path) as client:
        ids = AsyncClient(client)
        await ids.uuid7()
        assert await ids.stats() == client.stats()
        asked = len(server.requests)
        ids.renew()
        await ids.uuid7()
        assert len(server.requests) > asked


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda ids: ids.uuid7(), DaemonUnavailable, "no answer"),
        (lambda ids: ids.status(), DaemonUnavailable, "no answer"),
        (lambda ids: ids.make("v9", 1), ValueError, "v9"),
        (lambda ids: ids.iter("v7", "shape"), ValueError, "form"),
    ],
)
@in_each_loop
async def test_errors_are_those_of_the_client(
    path: Path, call: Callable[[Any], Awaitable[object]], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        await call(AsyncClient(Client(path, fallback=False)))


@in_each_loop
async def test_ids_of_a_test_are_fixed_here_too() -> None:
    with fixed_ids(3) as fixed:
        expected = fixed.uuid7(), fixed.make("v4", 2), fixed.snowflake()
    with fixed_ids(3):
        ids = AsyncClient()
        assert (await ids.uuid7(), await ids.make("v4", 2), await ids.snowflake()) == expected


@pytest.mark.parametrize("count", [3, 2 * PIECE])
@in_each_loop
async def test_a_list_is_made_again_if_the_process_is_renewed_meanwhile(
    monkeypatch: pytest.MonkeyPatch, path: Path, count: int
) -> None:
    """A copy of this process may return the first ids of it."""
    client, make, pieces = Client(path), Channel.make, list[Any]()

    def renewed(*words: Any) -> Any:
        pieces.append(words)
        made = make(*words)
        if len(pieces) == 1:
            client.renew()
        return made

    monkeypatch.setattr(Channel, "make", renewed)
    assert len({*await AsyncClient(client).make("v7", count)}) == count
    assert len(pieces) == 2 * -(-count // PIECE)


def test_several_event_loops_share_one(daemon: Daemon) -> None:
    ids, made = AsyncClient(Client(daemon.socket, max_age=0.001)), list[uuid.UUID]()

    async def draw() -> None:
        for _ in range(300):
            made.append(await ids.uuid7())
            await anyio.lowlevel.checkpoint()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda loop: anyio.run(draw, backend=loop), ["asyncio", "trio"] * 2))
    assert len(made) == len(set(made)) == 1200


_FORKS = """
import anyio, os, sys
from uuidd_client import Client
from uuidd_client.aio import AsyncClient

ids = AsyncClient(Client(sys.argv[1]))

made = []

async def draw():
    made.extend([await ids.uuid7() for _ in range(500)] + await ids.make("v4", 50))

for _ in range(2):
    anyio.run(draw, backend=sys.argv[2])
child = os.fork()
if not child:
    made.clear()
anyio.run(draw, backend=sys.argv[2])
if child:
    os.waitpid(child, 0)
print(*made, sep="\\n", flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_fork_repeats_no_id(daemon: Daemon, backend: str) -> None:
    made = output(sys.executable, "-c", _FORKS, daemon.socket, backend).split()
    assert len(made) == len(set(made)) == 4 * 550


@pytest.mark.process
def test_without_anyio_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['anyio'] = None; import uuidd_client\n"
        "try: import uuidd_client.aio\n"
        "except ImportError as error: print(error)"
    )
    line = "uuidd_client.aio needs the package anyio; install it with pip install 'uuidd[async]'\n"
    assert output(sys.executable, "-c", code) == line
