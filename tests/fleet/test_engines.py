"""What every engine must do, tried with a folder; the thorough tier tries the real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
import trio

from tests.fleet.servers import Server
from uuidd.fleet.address import parse
from uuidd.fleet.engines import Away, Changed, Version
from uuidd.fleet.engines.folder import Folder
from uuidd.fleet.record import Found, Meta, Record
from uuidd.fleet.registers import FREED_TRIES, Freed, Registers, connect

META = Meta("0123456789abcdef", 1288834974657)
RECORD = Record("fedcba9876543210", 139, held=True, host="db1", other={"later": [1]})

Connected = Callable[[], AbstractAsyncContextManager[Registers]]


@pytest.fixture
def connected(engine: Server, tmp_path: Path) -> Connected:
    """What connects to a namespace that no test has used."""
    address = engine.address(f"uuidd/{uuid4().hex}", tmp_path)
    return lambda: connect(address)


@pytest.fixture
async def one(connected: Connected) -> AsyncIterator[Registers]:
    """A namespace that was made, and asked for."""
    async with connected() as one:
        await one.create(META, {})
        await one.meta()
        yield one


@pytest.fixture
async def other(one: Registers, connected: Connected) -> AsyncIterator[Registers]:
    """The same namespace, over another connection."""
    async with connected() as other:
        await other.meta()
        yield other


async def read(registers: Registers, number: int = 17) -> Found:
    """Return a register that is there."""
    found = await registers.read(number)
    assert found is not None
    return found


async def written(registers: Registers, record: Record, found: Found | None = None) -> Found:
    """Write a register, and return it."""
    await registers.write(17, record, found)
    return await read(registers)


async def test_a_namespace_is_made_once_with_its_first_registers(connected: Connected) -> None:
    """So nobody takes a number before it is reserved. Another attempt changes nothing."""
    async with connected() as one, connected() as other:
        assert await one.meta() is None
        with pytest.raises(RuntimeError, match="the namespace is asked for first"):
            await one.read(3)
        await one.create(META, {3: RECORD, 5: replace(RECORD, reserved=True)})
        with pytest.raises(Changed):
            await one.create(replace(META, id="f" * 16), {})
        assert await one.meta() == await other.meta() == META
        assert set(await other.all()) == {3, 5}


async def test_who_waits_is_told_of_a_number_that_is_let_go(
    one: Registers, other: Registers
) -> None:
    """With a count, so that it knows whether it has missed one; not of one that is reserved."""
    free = replace(RECORD, held=False)
    held = await written(one, RECORD)
    assert await other.freed() == Freed(0, None)
    await one.write(17, free, held)
    assert await other.freed() == Freed(1, 17)
    await one.write(8, RECORD, None)
    await other.write(9, free, None)
    await one.write(10, replace(free, reserved=True), None)
    assert await one.freed() == await other.freed() == Freed(2, 9)


async def test_a_register_is_read_as_it_was_written(one: Registers, other: Registers) -> None:
    await one.write(17, RECORD, None)
    assert (await read(other)).record == RECORD
    assert await other.read(18) is None
    assert set(await other.all()) == {17}


async def test_a_register_is_replaced_as_it_was_read(one: Registers) -> None:
    """It is made once. Once it was written again it is another, though with the same content."""
    first = await written(one, RECORD)
    with pytest.raises(Changed):
        await one.write(17, replace(RECORD, claim="0" * 16), None)
    second = await written(one, replace(RECORD, until=140), first)
    third = await written(one, RECORD, second)
    for old in (first, second):
        with pytest.raises(Changed):
            await one.write(17, replace(RECORD, until=141), old)
    await one.write(17, replace(RECORD, until=142), third)
    assert (await read(one)).record.until == 142


async def test_of_many_writers_one_wins(one: Registers, connected: Connected) -> None:
    found = await written(one, RECORD)
    won: list[str] = []

    async def write(claim: str) -> None:
        async with connected() as registers:
            await registers.meta()
            try:
                await registers.write(17, replace(RECORD, claim=claim), found)
            except Changed:
                return
            won.append(claim)

    async with trio.open_nursery() as nursery:
        for digit in "01234567":
            nursery.start_soon(write, digit * 16)
    assert [(await read(one)).record.claim] == won


async def test_all_registers_are_read_at_once(one: Registers) -> None:
    await one.write(3, RECORD, None)
    await one.write(1023, replace(RECORD, until=150), None)
    found = await one.all()
    assert sorted(found) == [3, 1023]
    last = found[1023]
    assert isinstance(last, Found)
    assert last.record.until == 150
    await one.write(1023, RECORD, last)


class Contended(Folder):
    """A folder in which others let go of a number before each of the first *times* writes."""

    times = 0

    def put(
        self, key: str, value: bytes, version: Version | None, guard: tuple[str, bytes] | None
    ) -> None:
        """Say that the value of "freed" has changed."""
        if key.endswith("/freed") and self.times:
            self.times -= 1
            raise Changed
        super().put(key, value, version, guard)


async def made(folder: Folder, path: Path) -> Registers:
    """Return a namespace below *path*."""
    registers = Registers(folder, parse(f"folder://{path}/numbers"))
    await registers.create(META, {})
    await registers.meta()
    return registers


@pytest.mark.parametrize(("times", "told"), [(1, Freed(1, 7)), (FREED_TRIES, Freed(0, None))])
async def test_who_waits_may_miss_a_number_that_many_let_go_beside(
    tmp_path: Path, times: int, told: Freed
) -> None:
    """The write of the register is done all the same."""
    folder = Contended()
    engine = await made(folder, tmp_path)
    folder.times = times
    await engine.write(7, replace(RECORD, held=False), None)
    assert await engine.freed() == told
    assert set(await engine.all()) == {7}


@pytest.mark.parametrize("words", [b"[", b"[Infinity, 1]"])
async def test_what_is_no_word_of_ours_about_a_number_that_was_let_go_is_replaced(
    tmp_path: Path, words: bytes
) -> None:
    folder = Folder()
    engine = await made(folder, tmp_path)
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
    assert Folder().list(f"{tmp_path}/gone/") == {}
    (tmp_path / "file").touch()
    assert Folder().get(f"{tmp_path}/file/7") is None


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Away, match="file/: Not a directory"):
        Folder().list(f"{tmp_path}/file/")
