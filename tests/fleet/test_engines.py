"""What every engine must do, tried with a folder; the thorough tier tries the real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
import trio
import trio.testing

from tests.fleet.servers import KINDS, AnyEngine, access_to, running
from uuidd.fleet.address import Access, parse
from uuidd.fleet.engines import Away, Changed, Version
from uuidd.fleet.engines.folder import Folder
from uuidd.fleet.record import Found, Meta, Record
from uuidd.fleet.registers import FREED_TRIES, Freed, Registers, connect

META = Meta("0123456789abcdef", 1288834974657)
RECORD = Record("fedcba9876543210", 139, held=True, host="db1", other={"later": [1]})

Connected = Callable[[], AbstractAsyncContextManager[Registers]]


@pytest.fixture(scope="session")
def engines() -> Iterator[Callable[[str], AnyEngine]]:
    """What starts a real engine, or finds that it runs."""
    made: dict[str, AnyEngine] = {}
    with ExitStack() as stack:

        def engine(name: str) -> AnyEngine:
            if name not in made:
                made[name] = stack.enter_context(running(KINDS[name]))
            return made[name]

        yield engine


@pytest.fixture(
    params=["folder", *(pytest.param(each, marks=pytest.mark.thorough) for each in KINDS)]
)
def connected(
    request: pytest.FixtureRequest, tmp_path: Path, engines: Callable[[str], AnyEngine]
) -> Connected:
    """What connects to a namespace that no test has used."""
    if request.param == "folder":
        return lambda: connect(parse(f"folder://{tmp_path}/numbers"), Access())
    engine = engines(request.param)
    address = parse(engine.url(f"uuidd/{uuid4().hex}"))
    return lambda: connect(address, access_to(engine, tmp_path))


async def made(engine: Registers, **registers: Record) -> None:
    """Make the namespace, and open it."""
    await engine.create(META, {int(name[1:]): record for name, record in registers.items()})
    assert await engine.meta() == META


async def test_a_namespace_is_made_once_with_its_first_registers(connected: Connected) -> None:
    """So nobody takes a number before it is reserved. Another attempt changes nothing."""
    async with connected() as engine, connected() as other:
        assert await engine.meta() is None
        with pytest.raises(RuntimeError, match="the namespace is asked for first"):
            await engine.read(3)
        await made(engine, _3=RECORD, _5=replace(RECORD, reserved=True))
        with pytest.raises(Changed):
            await engine.create(replace(META, id="f" * 16), {})
        assert await engine.meta() == await other.meta() == META
        assert await other.taken() == {3, 5}


async def test_who_waits_is_told_of_a_number_that_is_let_go(connected: Connected) -> None:
    """With a count, so that it knows whether it has missed one; not of one that is reserved."""
    free = replace(RECORD, held=False)
    async with connected() as engine, connected() as other:
        await made(engine)
        await other.meta()
        assert await other.freed() == Freed(0, None)
        held = await engine.write(7, RECORD, None)
        assert await other.freed() == Freed(0, None)
        await engine.write(7, free, held)
        assert await other.freed() == Freed(1, 7)
        await engine.write(8, RECORD, None)
        await other.write(9, free, None)
        await engine.write(10, replace(free, reserved=True), None)
        assert await engine.freed() == await other.freed() == Freed(2, 9)


async def test_a_register_is_read_as_it_was_written(connected: Connected) -> None:
    async with connected() as engine, connected() as other:
        await made(engine)
        assert await other.meta() == META
        written = await engine.write(17, RECORD, None)
        found = await other.read(17)
        assert isinstance(found, Found)
        assert replace(found, written=None) == written == Found(RECORD, written.version)
        assert await other.read(18) is None
        assert await other.taken() == {17}


async def test_a_register_is_replaced_as_it_was_read(connected: Connected) -> None:
    """It is made once. Once it was written again it is another, though with the same content."""
    async with connected() as engine:
        await made(engine)
        first = await engine.write(17, RECORD, None)
        with pytest.raises(Changed):
            await engine.write(17, replace(RECORD, claim="0" * 16), None)
        second = await engine.write(17, replace(RECORD, until=140), first)
        third = await engine.write(17, RECORD, second)
        for old in (first, second):
            with pytest.raises(Changed):
                await engine.write(17, replace(RECORD, until=141), old)
        await engine.write(17, replace(RECORD, until=142), third)
        found = await engine.read(17)
        assert found is not None
        assert found.record.until == 142


async def test_of_many_writers_one_wins(connected: Connected) -> None:
    async with connected() as engine:
        await made(engine)
        found = await engine.write(17, RECORD, None)
    won: list[str] = []

    async def write(claim: str) -> None:
        async with connected() as engine:
            await engine.meta()
            try:
                await engine.write(17, replace(RECORD, claim=claim), found)
            except Changed:
                return
            won.append(claim)

    async with trio.open_nursery() as nursery:
        for digit in "01234567":
            nursery.start_soon(write, digit * 16)
    async with connected() as engine:
        await engine.meta()
        last = await engine.read(17)
        assert last is not None
        assert [last.record.claim] == won


async def test_all_registers_are_read_at_once(connected: Connected) -> None:
    async with connected() as engine:
        await made(engine, _3=RECORD, _1023=replace(RECORD, until=150))
        found = await engine.all()
        assert sorted(found) == [3, 1023]
        last = found[1023]
        assert isinstance(last, Found)
        assert last.record.until == 150
        await engine.write(1023, RECORD, last)


class Contended(Folder):
    """A folder in which others let go of a number before each of the first *times* writes."""

    times = 0

    def put(
        self, key: str, value: bytes, version: Version | None, guard: tuple[str, bytes] | None
    ) -> Version:
        """Say that the value of "freed" has changed."""
        if key.endswith("/freed") and self.times:
            self.times -= 1
            raise Changed
        return super().put(key, value, version, guard)


@pytest.mark.parametrize(("times", "told"), [(1, Freed(1, 7)), (FREED_TRIES, Freed(0, None))])
async def test_who_waits_may_miss_a_number_that_many_let_go_beside(
    tmp_path: Path, times: int, told: Freed
) -> None:
    """The write of the register is done all the same."""
    folder = Contended()
    engine = Registers(folder, parse(f"folder://{tmp_path}/numbers"))
    await made(engine)
    folder.times = times
    await engine.write(7, replace(RECORD, held=False), None)
    assert await engine.freed() == told
    assert await engine.taken() == {7}


@pytest.mark.parametrize("words", [b"[", b"[Infinity, 1]"])
async def test_what_is_no_word_of_ours_about_a_number_that_was_let_go_is_replaced(
    tmp_path: Path, words: bytes
) -> None:
    folder = Folder()
    engine = Registers(folder, parse(f"folder://{tmp_path}/numbers"))
    await made(engine)
    key = f"{tmp_path}/numbers/{META.id}/freed"
    told = folder.get(key)
    assert told is not None
    folder.put(key, words, told.version, None)
    assert await engine.freed() == Freed(0, None)
    await engine.write(7, replace(RECORD, held=False), None)
    assert await engine.freed() == Freed(1, 7)


def test_no_write_makes_the_folder_of_a_namespace_again(tmp_path: Path) -> None:
    """It is gone with all its numbers, which begin anew."""
    with pytest.raises(Changed):
        Folder().put(f"{tmp_path}/gone/7", b"value", None, (f"{tmp_path}/meta", b"meta"))


def test_a_folder_that_is_not_there_has_no_keys(tmp_path: Path) -> None:
    assert Folder().list(f"{tmp_path}/gone/", values=True) == {}
    (tmp_path / "file").touch()
    assert Folder().get(f"{tmp_path}/file/7") is None


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Away, match="file/: Not a directory"):
        Folder().list(f"{tmp_path}/file/", values=True)
