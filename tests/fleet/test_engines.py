"""What every engine must do, tried with a folder; the thorough tier tries the real servers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from stat import S_ISDIR
from uuid import uuid4

import pytest
import trio

from tests.fleet.servers import Server
from uuidd.fleet.engines import Away, Changed
from uuidd.fleet.engines.folder import Folder
from uuidd.fleet.record import Meta, Record
from uuidd.fleet.registers import Registers, connect

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


async def read(registers: Registers, number: int = 17) -> Record:
    """Return a register that is there."""
    found = await registers.read(number)
    assert found is not None
    return found


async def written(registers: Registers, record: Record, found: Record | None = None) -> Record:
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


async def test_a_register_is_read_as_it_was_written(one: Registers, other: Registers) -> None:
    await one.write(17, RECORD, None)
    assert await read(other) == RECORD
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
    assert (await read(one)).until == 142


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
    assert [(await read(one)).claim] == won


async def test_all_registers_are_read_at_once(one: Registers) -> None:
    await one.write(3, RECORD, None)
    await one.write(1023, replace(RECORD, until=150), None)
    found = await one.all()
    assert sorted(found) == [3, 1023]
    last = found[1023]
    assert isinstance(last, Record)
    assert last.until == 150
    await one.write(1023, RECORD, last)


def test_no_write_makes_the_folder_of_a_namespace_again(tmp_path: Path) -> None:
    """It is gone with all its numbers, which begin anew."""
    with pytest.raises(Changed):
        Folder().put(f"{tmp_path}/gone/7", b"value", None, (f"{tmp_path}/meta", b"meta"))


def test_a_write_is_on_the_disk_before_it_is_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new file before it replaces the old one, and then the folder, which has its name."""
    synced = []

    def fsync(fd: int) -> None:
        synced.append((S_ISDIR(os.fstat(fd).st_mode), (tmp_path / "7").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    Folder().put(f"{tmp_path}/7", b"value", None, None)
    assert synced == [(False, False), (True, True)]


def test_a_folder_that_is_not_there_has_no_keys(tmp_path: Path) -> None:
    assert Folder().list(f"{tmp_path}/gone/") == {}
    (tmp_path / "file").touch()
    assert Folder().get(f"{tmp_path}/file/7") is None


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Away, match="file/: Not a directory"):
        Folder().list(f"{tmp_path}/file/")
