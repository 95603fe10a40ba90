"""The C extension, see ``client/extension/core.c``; a part of it stands in for ``mark``."""

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any
from uuid import UUID, SafeUUID

from uuidd.core.ids.layouts import Origin
from uuidd_client.lease import Page
from uuidd_client.mark import Mark as Mark

VERSION: str
SOURCE: str

Refill = Callable[[], tuple[Cutter | None, Any]]

def shortcut(function: FunctionType, draw: Draw, /) -> bool: ...
def watch(epochs: memoryview[int], /) -> None: ...

class Cutter:
    floor: int
    def __init__(
        self,
        kind: str,
        memory: memoryview,
        used: Mark,
        latest: Mark | None,
        max_age: float,
        clock: Callable[[], int] | None,
        random: Callable[[int], bytes],
        uuids: tuple[type[UUID], SafeUUID, SafeUUID],
    ) -> None: ...
    def hold(
        self,
        page: Page,
        at: int,
        token: int,
        begin: int,
        end: int,
        tell_at: int,
        origin: Origin,
        /,
    ) -> None: ...
    def lend(
        self,
        first: int,
        end: int,
        begin: float,
        deadline: memoryview[float],
        marked: int,
        origin: Origin,
        safe: bool,
        epochs: memoryview[int],
        epoch: int,
        /,
    ) -> None: ...
    def take_back(self) -> int: ...
    def one(self, form: str, /) -> Any: ...
    def many(
        self, form: str, first: int, count: int, origin: Origin, safe: bool, /
    ) -> list[Any]: ...
    def packed(self, first: int, count: int, origin: Origin, /) -> bytes: ...

class Draw:
    def __init__(self, form: str, refill: Refill) -> None: ...
    def __call__(self) -> Any: ...
    @property
    def next(self) -> Any: ...

class Ids(Iterator[Any]):
    def __init__(self, form: str, refill: Refill) -> None: ...
    def __next__(self) -> Any: ...
