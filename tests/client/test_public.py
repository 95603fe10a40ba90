"""The public functions and classes as frameworks, pickles and people meet them."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
import pydoc
import re
import typing
from collections.abc import Callable
from typing import Any, assert_type
from uuid import UUID

import pytest

import pytest_uuidd
import uuidd
import uuidd_client
from tests.kinds import KINDS, TIMED
from uuidd_client import Backfill, Client

pytestmark = pytest.mark.usefixtures("implementation")

FUNCTIONS = {KINDS[kind].method: KINDS[kind].type for kind in TIMED}
"""The functions that draw, each with the type of its ids."""


def revived(it: Any) -> Any:
    """Return what comes out of a pickle of it."""
    return pickle.loads(pickle.dumps(it))  # noqa: S301  (our own bytes)


def test_a_star_leaves_pythons_own_inspect_alone() -> None:
    assert "inspect" not in uuidd_client.__all__
    assert callable(uuidd_client.inspect)


def test_the_client_says_its_version() -> None:
    assert uuidd_client.__version__ == uuidd.__version__


@pytest.mark.parametrize(
    ("given", "variable", "shown"),
    [
        ("/nowhere/s", "", "/nowhere/s"),
        (None, "/elsewhere/s", "/elsewhere/s"),
        (None, "", "/run/uuidd/request"),
    ],
)
def test_a_client_shows_its_socket(
    monkeypatch: pytest.MonkeyPatch, given: str | None, variable: str, shown: str
) -> None:
    monkeypatch.setenv("UUIDD_SOCKET", variable)
    assert repr(Client(given)) == f"<Client of {shown!r}>"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_is_known_by_its_public_name(name: str) -> None:
    """Its module and name lead to it: that is all that a pickle or a migration keeps."""
    function = getattr(uuidd_client, name)
    assert inspect.isfunction(function)
    assert (function.__module__, function.__name__) == ("uuidd_client", name)
    assert function.__qualname__ == name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_functions_signature_tells_what_it_gives(name: str) -> None:
    function = getattr(uuidd_client, name)
    assert not inspect.signature(function).parameters
    assert typing.get_type_hints(function) == {"return": FUNCTIONS[name]}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_of_a_function_reads_well(name: str) -> None:
    shown = pydoc.plain(pydoc.render_doc(getattr(uuidd_client, name)))
    assert shown.startswith(f"Python Library Documentation: function {name} in module uuidd_client")
    assert f"{name}() -> " in shown
    assert "    Return a" in shown


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        *((Client, name) for name, value in vars(Client).items() if inspect.isfunction(value)),
        *((uuidd_client, name) for name in ("at_time", "bounds", "inspect", "sort_key", "time_of")),
        (uuidd_client, "stats"),
    ],
)
def test_the_types_that_a_function_names_are_found(owner: object, name: str) -> None:
    """Frameworks that hand out dependencies look for them, also those of modules imported late."""
    assert typing.get_type_hints(getattr(owner, name)) or name == "close"


PUBLIC = [getattr(uuidd_client, name) for name in uuidd_client.__all__]


@pytest.mark.parametrize("public", PUBLIC, ids=uuidd_client.__all__)
@pytest.mark.parametrize("way", [revived, copy.copy, copy.deepcopy])
def test_what_is_public_comes_out_of_a_pickle_as_itself(
    public: object, way: Callable[[object], object]
) -> None:
    assert way(public) is public


@pytest.mark.parametrize("way", [revived, copy.copy, copy.deepcopy])
def test_a_client_comes_out_of_a_pickle_with_its_settings(
    way: Callable[[Client], Client],
) -> None:
    client = Client("/nowhere/s", False, 0.5, 0.25)
    again = way(client)
    assert again._settings[:4] == ("/nowhere/s", False, 0.5, 0.25)
    assert again._channels is not client._channels


def test_a_method_of_a_client_can_be_sent_to_a_pool() -> None:
    method = revived(Client("/nowhere/s").uuid7)
    assert type(method()) is UUID


def test_a_factory_is_refused_by_pickles_in_one_clear_error() -> None:
    """It is a function within a function, which leads nowhere; its doc names the way out."""
    draw = Client("/nowhere/s").factory("v7")
    with pytest.raises((AttributeError, pickle.PicklingError, TypeError), match=r"factory|draw"):
        pickle.dumps(draw)
    assert "cannot be pickled" in (Client.factory.__doc__ or "")


def test_a_backfill_is_neither_pickled_nor_copied() -> None:
    """Two of a kind would give the same ids."""
    made: Backfill[Any] = Backfill("v7")
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"cannot be pickled or copied, .* its ids again"):
            way(made)


def test_the_readings_of_an_id_come_out_of_a_pickle() -> None:
    found = uuidd_client.inspect("01ARYZ6S41TSV4RRFFQ69G5FAV")
    again = revived(found)
    assert [reading.fields for reading in again] == [reading.fields for reading in found]


def test_type_checkers_know_what_the_functions_return() -> None:
    """The types are checked by mypy, not by this test."""
    assert_type(uuidd_client.uuid7, Callable[[], UUID])
    assert_type(uuidd_client.ulid, Callable[[], str])
    assert_type(uuidd_client.snowflake, Callable[[], int])


def test_no_class_has_a_private_name_of_its_own_beside_those_of_another_library() -> None:
    """A later version of that library, or one that replaces it, may use the same name."""
    seen, found = 0, []
    for package in (uuidd, uuidd_client, pytest_uuidd):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.endswith("__main__"):
                continue
            for made in vars(importlib.import_module(module.name)).values():
                if not (inspect.isclass(made) and made.__module__ == module.name):
                    continue
                bases = [base for base in made.__mro__[1:] if not _is_ours_or_plain(base)]
                seen += bool(bases)
                taken = {name for base in made.__mro__[1:] for name in vars(base)}
                private = {name for name in vars(made) if re.fullmatch("_[^_].*[^_]", name)}
                found += [f"{made.__qualname__}.{name}" for name in private - taken if bases]
    assert seen > 10
    assert not found


def _is_ours_or_plain(base: type) -> bool:
    """Whether a class is the project's, or one of Python itself that has no private names."""
    return base.__module__.split(".")[0] in {
        "uuidd",
        "uuidd_client",
        "pytest_uuidd",
        "builtins",
        "typing",
    }
