"""The client for asyncio and trio: no task waits because another one asks the daemon."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel
import pytest

from tests.client.fakes import START, Server, granted, grants, result
from tests.client.lanes import Clock, World
from tests.kinds import KINDS, TIMED
from tests.rig import Daemon
from uuidd_client import Client, DaemonUnavailable, connection
from uuidd_client.aio import MAX_THREADS, PIECE, SHORT_LIST, AsyncClient
from uuidd_client.channel import Channel
from uuidd_client.connection import Stream
from uuidd_client.system import SYSTEM_CLOCK
from uuidd_client.testing import fixed_ids

if TYPE_CHECKING:
    from uuidd_client.client import Form

pytestmark = pytest.mark.usefixtures("implementation")

Result = TypeVar("Result")
Run = Callable[[Callable[[], Awaitable[Result]]], Result]

DRAWS = [KINDS[kind].method for kind in TIMED]
TEN_MINUTES = 600.0


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Run[Any]:
    """Return what runs an asynchronous function to its end."""
    return lambda main: anyio.run(main, backend=request.param)


@pytest.fixture
def askers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the threads that have sent a request, or waited for a connection or an answer."""
    askers: list[int] = []

    class Watched(Stream):
        def at_once(self, call: Callable[..., Any], *args: Any) -> Any:
            askers.append(threading.get_ident())
            return super().at_once(call, *args)

        def wait_for_bytes(self, seconds: float) -> None:
            askers.append(threading.get_ident())
            super().wait_for_bytes(seconds)

    monkeypatch.setattr(connection, "Stream", Watched)
    return askers


class Held:
    """A daemon that grants a thousand ticks a request, once it is let *go*; and no lease."""

    def __init__(self, path: Path) -> None:
        self.go, self.asked = threading.Event(), threading.Event()
        self.count = 0
        self.server = Server(path, self._answer)

    def _answer(self, request: bytes) -> bytes:
        self.asked.set()
        self.go.wait(60)
        self.count += 1
        return result(request, granted(1000 * self.count, 1))

    def __enter__(self) -> Held:
        self.server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.go.set()
        self.server.__exit__()


@pytest.fixture
def held(path: Path) -> Iterator[Held]:
    """A daemon that holds its answers back."""
    with Held(path) as held:
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
    """With the same name, but for ``close``."""

    def public(of: object) -> set[str]:
        return {name for name in dir(of) if not name.startswith("_")}

    assert public(AsyncClient()) == public(Client()) - {"close"} | {"aclose"}


@pytest.mark.parametrize("name", DRAWS)
def test_each_kind_is_made_by_the_daemon(run: Run[Any], daemon: Daemon, name: str) -> None:
    """Many of them rise, and a UUID says that it is safe."""

    async def main() -> list[Any]:
        async with AsyncClient(Client(daemon.socket)) as ids:
            return [await getattr(ids, name)() for _ in range(1000)]

    made = run(main)
    assert len(set(made)) == 1000
    if isinstance(made[0], uuid.UUID):
        assert {id.is_safe for id in made} == {uuid.SafeUUID.safe}
    if name != "uuid1":
        assert made == sorted(made, key=lambda id: (len(str(id)), id))


def test_aclose_hangs_up(run: Run[Any], path: Path) -> None:
    """The next id needs another connection."""

    async def main() -> None:
        ids = AsyncClient(Client(path, max_age=0))
        await ids.uuid1()
        await ids.aclose()
        await ids.uuid1()
        await ids.aclose()

    with Server(path, grants()) as server:
        run(main)
        assert server.connections == 2


def test_an_id_that_needs_no_daemon_does_not_let_go_of_the_loop(run: Run[Any], path: Path) -> None:
    """A client with a lease seldom does."""

    async def main() -> None:
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

    with World(path, Clock()).server() as server:
        run(main)


@pytest.mark.parametrize("name", DRAWS)
def test_the_loop_never_waits_for_the_daemon(
    run: Run[Any], path: Path, askers: list[int], name: str
) -> None:
    """Only threads connect, and wait for answers: for the first id, and for later ones."""

    async def main() -> None:
        ids = AsyncClient(Client(path))
        for _ in range(20):
            await getattr(ids, name)()
        await ids.make("v7", 20)

    with Server(path, grants()):
        run(main)
    assert askers
    assert threading.get_ident() not in askers


def test_other_tasks_go_on_while_the_daemon_is_asked(run: Run[Any], held: Held, path: Path) -> None:
    """Also those that draw ids which need no daemon."""

    async def main() -> None:
        ids, others = AsyncClient(Client(path, timeout=TEN_MINUTES)), []
        await ids.make("v4", 1)

        async def ask() -> None:
            others.append(await ids.uuid1())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await until(held.asked.is_set)
            assert len(await ids.make("v4", 3)) == 3
            assert not others
            held.go.set()
        assert len(others) == 1

    run(main)


def test_a_call_that_is_cancelled_before_its_thread_begins_asks_nobody(
    run: Run[Any], held: Held, path: Path
) -> None:
    """And it holds up no later call, however many there were."""

    async def main() -> None:
        ids = AsyncClient(Client(path, timeout=TEN_MINUTES))
        for _ in range(MAX_THREADS):
            with anyio.move_on_after(0) as scope:
                await ids.uuid1()
            assert scope.cancelled_caught
        held.go.set()
        with anyio.fail_after(60):
            await ids.uuid1()

    run(main)
    assert held.count == 1


def test_a_call_that_is_cancelled_while_the_daemon_is_asked_holds_up_no_other(
    run: Run[Any], held: Held, path: Path
) -> None:
    """Its id is lost; the next one is another."""

    async def main() -> uuid.UUID:
        ids = AsyncClient(Client(path, timeout=TEN_MINUTES))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ids.uuid1)
            await until(held.asked.is_set)
            tasks.cancel_scope.cancel()
        held.go.set()
        return await ids.uuid1()

    assert run(main).time == START + 2000
    assert held.count == 2


def test_cancelled_calls_repeat_no_id(run: Run[Any], daemon: Daemon) -> None:
    """Tasks draw ids in short scopes that end at any point."""

    async def main() -> list[uuid.UUID]:
        ids = AsyncClient(Client(daemon.socket, max_age=0.001))
        made = [await ids.uuid7() for _ in range(3)]

        async def draw() -> None:
            for _ in range(200):
                with anyio.move_on_after(0.0001):
                    made.append(await ids.uuid7())
                    made.extend(await ids.make("v7", 2))
                    await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(draw)
        await ids.aclose()
        return made

    made = run(main)
    assert made
    assert len(set(made)) == len(made)


def test_calls_that_were_cancelled_leave_few_threads(run: Run[Any], held: Held, path: Path) -> None:
    """However many tasks give up waiting for a daemon that does not answer."""
    names = Counter[str]()

    async def main() -> None:
        ids = AsyncClient(Client(path, timeout=TEN_MINUTES))
        before = threading.active_count()
        for _ in range(5 * MAX_THREADS):
            with anyio.move_on_after(0.002):
                await ids.uuid1()
        await until(held.asked.is_set)
        names["threads"] = threading.active_count() - before
        held.go.set()
        await ids.uuid1()

    run(main)
    # One that is idle, because its call had ended before it began, counts here too.
    assert names["threads"] < 2 * MAX_THREADS


def test_many_tasks_share_one_request(
    run: Run[Any], monkeypatch: pytest.MonkeyPatch, held: Held, path: Path
) -> None:
    """They find what the thread of the first one has asked for, without a thread of their own."""
    one, asked = Channel.one, Counter[bool]()

    def counted(*words: Any) -> Any:
        asked[True] += 1
        return one(*words)

    monkeypatch.setattr(Channel, "one", counted)

    def answer(request: bytes) -> bytes:
        held.asked.set()
        held.go.wait(60)
        held.count += 1
        return result(request, granted(1000 * held.count, 64))

    held.server._answer = answer

    async def main() -> set[str]:
        ids, made = AsyncClient(Client(path, timeout=TEN_MINUTES, max_age=TEN_MINUTES)), set()

        async def draw() -> None:
            made.add(await ids.ulid())

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(draw)
            await until(held.asked.is_set)
            held.go.set()
        return made

    assert len(run(main)) == 20
    assert asked[True] == 1


def test_without_any_age_and_a_lease_each_id_is_asked_for(run: Run[Any], path: Path) -> None:
    """By a thread, which makes the id too, because nothing can be kept for the loop."""

    async def main() -> int:
        ids = AsyncClient(Client(path, max_age=0, fallback=False))
        return len({await ids.uuid1() for _ in range(20)})

    with Server(path, grants()) as server:
        assert run(main) == 20
        assert len(server.requests) >= 20


@pytest.mark.parametrize("count", [0, 1, SHORT_LIST, SHORT_LIST + 1, 2 * PIECE + 1])
@pytest.mark.parametrize("form", [None, "text", "bytes"])
def test_a_list_has_exactly_as_many_ids(
    run: Run[Any], daemon: Daemon, count: int, form: Form | None
) -> None:
    """They rise; a long one is made in pieces."""

    async def main() -> Any:
        async with AsyncClient(Client(daemon.socket)) as ids:
            return await ids.make("v7", count, form)

    made = run(main)
    if form == "bytes":
        assert isinstance(made, bytes)
        made = [made[first : first + 16] for first in range(0, len(made), 16)]
    assert len(made) == count
    assert made == sorted(set(made))


def test_others_get_ids_while_a_long_list_is_made(run: Run[Any], daemon: Daemon) -> None:
    """The thread lets them have their turn."""

    async def main() -> None:
        ids = AsyncClient(Client(daemon.socket))
        await ids.uuid7()
        lists: list[Any] = []

        async def make() -> None:
            lists.append(await ids.make("v7", 20 * PIECE))

        single: list[uuid.UUID] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(make)
            while not lists:
                single.append(await ids.uuid7())
                await anyio.lowlevel.checkpoint()
        assert len({*single, *lists[0]}) == len(single) + 20 * PIECE
        await ids.aclose()

    run(main)


def test_a_list_that_is_cancelled_is_not_made_to_its_end(
    run: Run[Any], monkeypatch: pytest.MonkeyPatch, daemon: Daemon
) -> None:
    """The thread stops after the piece at hand."""
    begun, go, pieces = threading.Event(), threading.Event(), Counter[bool]()
    make = Channel.make

    def held_make(*words: Any) -> Any:
        pieces[True] += 1
        begun.set()
        go.wait(60)
        return make(*words)

    monkeypatch.setattr(Channel, "make", held_make)

    async def main() -> None:
        ids = AsyncClient(Client(daemon.socket))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ids.make, "v7", 20 * PIECE)
            await until(begun.is_set)
            tasks.cancel_scope.cancel()
        go.set()
        # The thread that was left alone has ended when this one gets the connections.
        await ids.aclose()

    run(main)
    assert pieces[True] <= 2


def test_an_endless_iterator_lets_others_have_their_turn(run: Run[Any], path: Path) -> None:
    """After each 100 ids, though none of them needs the daemon."""

    async def main() -> int:
        ids, turns = AsyncClient(Client(path)), 0
        while not server.asked:
            await ids.ulid()

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count)
            left = 10_000
            async for _ in ids.iter("ulid"):
                left -= 1
                if not left:
                    break
            tasks.cancel_scope.cancel()
        await ids.aclose()
        return turns

    with World(path, Clock()).server() as server:
        assert run(main) >= 99


def test_a_factory_makes_one_kind_and_the_status_is_the_daemons(
    run: Run[Any], daemon: Daemon
) -> None:
    """Nothing else is between the loop and the client."""

    async def main() -> Any:
        async with AsyncClient(Client(daemon.socket)) as ids:
            return await ids.factory("v6", "text")(), (await ids.status())["pid"]

    made, pid = run(main)
    assert (uuid.UUID(made).version, pid) == (6, daemon.pid)


def test_errors_are_those_of_the_client(run: Run[Any], path: Path) -> None:
    """Of a kind without a fallback, and of wrong arguments."""

    async def main() -> None:
        ids = AsyncClient(Client(path, fallback=False))
        with pytest.raises(DaemonUnavailable):
            await ids.uuid7()
        with pytest.raises(DaemonUnavailable):
            await ids.snowflake()
        with pytest.raises(DaemonUnavailable):
            await ids.status()
        with pytest.raises(ValueError, match="v9"):
            await ids.make("v9", 1)  # type: ignore[call-overload]
        with pytest.raises(ValueError, match="form"):
            ids.iter("v7", "shape")  # type: ignore[call-overload]

    run(main)


def test_ids_of_a_test_are_fixed_here_too(run: Run[Any]) -> None:
    """An asynchronous client of the module's client makes what the fixture makes."""

    async def main() -> tuple[Any, ...]:
        ids = AsyncClient()
        return await ids.uuid7(), await ids.ulid(), await ids.make("v4", 2), await ids.snowflake()

    with fixed_ids(3) as ids:
        expected = ids.uuid7(), ids.ulid(), ids.make("v4", 2), ids.snowflake()
    with fixed_ids(3):
        assert run(main) == expected


def test_several_event_loops_share_one(daemon: Daemon) -> None:
    """Each in a thread of its own, of either kind."""
    ids, made = AsyncClient(Client(daemon.socket, max_age=0.001)), list[uuid.UUID]()

    async def draw() -> None:
        mine = []
        for _ in range(300):
            mine.append(await ids.uuid7())
            await anyio.lowlevel.checkpoint()
        made.extend(mine)

    threads = [
        threading.Thread(target=anyio.run, args=(draw,), kwargs={"backend": backend})
        for backend in ("asyncio", "trio", "asyncio", "trio")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
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
    """The child goes on with an event loop of its own."""
    ended = subprocess.run(
        [sys.executable, "-c", _FORKS, str(daemon.socket), backend],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=os.environ,
    )
    made = ended.stdout.split()
    assert len(made) == len(set(made)) == 4 * 550


@pytest.mark.process
def test_without_anyio_the_error_says_what_to_install() -> None:
    """And the rest of the package does without it."""
    code = (
        "import sys; sys.modules['anyio'] = None; import uuidd_client\n"
        "try: import uuidd_client.aio\n"
        "except ImportError as error: print(error)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert said == (
        "uuidd_client.aio needs the package anyio; install it with pip install 'uuidd[async]'\n"
    )


@pytest.mark.parametrize("count", [3, 2 * PIECE])
def test_a_list_is_made_again_if_the_process_is_renewed_meanwhile(
    run: Run[Any], monkeypatch: pytest.MonkeyPatch, path: Path, count: int
) -> None:
    """A copy of this process may return the first ids of it."""
    client, pieces, renewals = Client(path), Counter[bool](), iter([True])
    make = Channel.make

    def renewed(*words: Any) -> Any:
        pieces[True] += 1
        made = make(*words)
        if next(renewals, False):
            client.renew()
        return made

    monkeypatch.setattr(Channel, "make", renewed)

    async def main() -> Any:
        return await AsyncClient(client).make("v7", count)

    made = run(main)
    assert len(set(made)) == count
    assert pieces[True] == 2 * -(-count // PIECE)
