"""The C extension, see ``client/extension/core.c``; its Cutter is the twin of ``cutter.Cutter``."""

from collections.abc import Callable, Iterator
from typing import Any

from uuidd_client.cutter import Cutter as Cutter

VERSION: str
SOURCE: str

class Draw(Iterator[Any]):
    def __init__(
        self, kind: str, form: str, refill: Callable[[], tuple[Cutter | None, Any]]
    ) -> None: ...
    def __call__(self) -> Any: ...
    def __next__(self) -> Any: ...
    @property
    def next(self) -> Any: ...
