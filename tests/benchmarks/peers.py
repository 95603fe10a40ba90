"""The libraries with which ours is compared."""

from __future__ import annotations

import importlib
from importlib import metadata
from types import ModuleType

from tests.benchmarks.place import Missing

DISTRIBUTIONS = {
    "uuid_utils": "uuid_utils",
    "fastuuid": "fastuuid",
    "uuid6": "uuid6",
    "c_uuid_v7": "c-uuid-v7",
    "ulid": "python-ulid",
    "ksuid": "svix-ksuid",
    "snowflake": "snowflake-id",
}
"""By the name under which each is imported; the extra ``bench`` has them all."""


def load(module: str) -> ModuleType:
    """Import a peer, or a module of Python's own. Raises Missing when it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = DISTRIBUTIONS.get(module.partition(".")[0], module)
        raise Missing(f"{name} is not installed (pip install -e '.[bench]')") from error


def versions() -> dict[str, str | None]:
    """Give the version of each peer, None for one that is not installed."""
    found: dict[str, str | None] = dict.fromkeys(DISTRIBUTIONS.values())
    for name in found:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
