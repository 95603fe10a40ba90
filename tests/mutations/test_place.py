"""How a mutation finds its place, after names and layout have changed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutations.catalogue import read
from tests.mutations.mutation import FaultyError, Mutation, breaks
from tests.mutations.piece import parsed
from tests.mutations.place import Module, NoPlaceError, Place, Scopes

SOURCE = '''
LIMIT = 100

class Saver:
    def save(self, state, wait):
        """Save it."""
        end = self.clock() + LIMIT  # s
        if wait and not self._done:
            self._write(state,
                        until=end)
        elif state:
            self._write(state)
        return end

def write(path, text):
    first = len(path) < len(path)
    second = len(path) < len(text)
    return first, second
'''


def module(source: str, name: str = "uuidd.saver") -> Module:
    """Return a module of this text."""
    return Module(name, f"{name.replace('.', '/')}.py", source.encode(), ast.parse(source))


def find(function: str, old: str, *others: Module) -> Place:
    """Find a piece of code in SOURCE."""
    return Scopes([module(SOURCE), *others]).find(function, parsed(old))


@pytest.mark.parametrize(
    "old",
    [
        "until = self.clock() + LIMIT",
        "self._put(it, until=until)",
        "later and not self._ended",
        "if later and not self._ended:\n    ...\nelif it:\n    ...",
        "return it",
    ],
)
def test_local_and_private_names_stand_for_any(old: str) -> None:
    """A variable, a parameter or a private attribute may be renamed; layout does not matter."""
    assert find("Saver.save", old).module.name == "uuidd.saver"


@pytest.mark.parametrize(
    "old",
    [
        "end = self.clock() + MOST",
        "end = self.time() + LIMIT",
        "end = self.clock() + 100",
        "self._write(state, deadline=end)",
        "wait and self._done",
    ],
)
def test_all_else_has_to_be_the_same(old: str) -> None:
    """A constant, a public attribute, a keyword or an operator is the meaning."""
    with pytest.raises(NoPlaceError, match=r"uuidd/saver.py:5: its code is not in Saver.save"):
        find("Saver.save", old)


def test_one_name_stands_for_one_name() -> None:
    """So a comparison with itself is not one with another."""
    assert find("write", "len(a) < len(a)").line == 16
    assert find("write", "len(a) < len(b)").line == 17


def test_a_piece_that_is_there_twice_has_no_place() -> None:
    """The message says in which lines."""
    with pytest.raises(
        NoPlaceError, match=r"uuidd/saver.py:15: its code is 4 times in write, in lines 16, 17"
    ):
        find("write", "len(a)")


def test_a_function_that_is_gone_is_told_with_those_like_it() -> None:
    """And with the functions that hold the piece, because it may just have another name now."""
    told = "there is no Keeper.save; near it: Saver.save; its code is in write"
    with pytest.raises(NoPlaceError, match=told):
        find("Keeper.save", "return ..., ...")


def test_a_name_of_two_functions_takes_its_module() -> None:
    """Without its module the place is not found."""
    other = module("def write():\n    return 1\n", "uuidd.writer")
    with pytest.raises(NoPlaceError, match=r"in uuidd.saver and uuidd.writer: name the module"):
        find("write", "1", other)
    assert find("writer.write", "1", other).line == 2


def test_only_the_piece_is_replaced() -> None:
    """It is written under the names of its place, and all around it is left as it was."""
    place = find("Saver.save", "until = self.clock() + LIMIT")
    broken = place.filled(parsed("until = self.clock()\nself._ended = until"))
    old = "end = self.clock() + LIMIT  # s"
    new = "end = self.clock()\n        self._ended = end  # s"
    assert broken.decode() == SOURCE.replace(old, new)


def test_what_is_skipped_comes_again() -> None:
    """Each `...` of the new code is that of the old code."""
    place = find("Saver.save", "if later and ...:\n    ...\nelif it:\n    ...")
    broken = place.filled(parsed("if ...:\n    ...\nelif later:\n    ...")).decode()
    assert "if not self._done:\n            self._write(state, until=end)\n" in broken
    assert "elif wait:\n            self._write(state)\n        return end" in broken


def test_an_elif_is_no_statement_of_its_own() -> None:
    """In its place an `if` would be one after the other, and both could run."""
    with pytest.raises(
        NoPlaceError, match=r"saver.py:11: an elif can be replaced only with its if"
    ):
        find("Saver.save", "if it:\n    ...")


def test_code_outside_functions_is_named_by_its_module() -> None:
    """What is in a function is not of its module."""
    assert find("saver", "100").line == 2
    with pytest.raises(NoPlaceError, match="not in saver"):
        find("saver", "return ...")


def test_an_entry_of_the_catalogue_is_read_as_a_diff() -> None:
    """Lines of context are a part of both pieces, and lines at the head of a file of none."""
    entry = "m: a why\nin f\n  if a:\n-     b\n+     c\n+     d\nseen by test_e\nseen by test_f"
    assert read(f"# A comment.\n\n{entry}\n") == [
        Mutation("m", "a why", "f", "if a:\n    b", "if a:\n    c\n    d", ("test_e", "test_f"))
    ]
    with pytest.raises(ValueError, match="m: 'b' is no line of an entry"):
        read("m: a why\nin f\nb")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A checkout of one module and one test."""
    (tmp_path / "uuidd").mkdir()
    (tmp_path / "uuidd/saver.py").write_text(SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_saver.py").write_text("async def test_a_save() -> None: ...\n")
    return tmp_path


def mutation(new: str, *tests: str) -> Mutation:
    """Return a mutation of the limit in Saver.save."""
    return Mutation("m", "", "Saver.save", "self.clock() + LIMIT", new, tests)


def test_a_test_is_found_by_its_name(top: Path) -> None:
    """Or by its module's, with or without the folder."""
    for name in ("test_a_save", "test_saver.test_a_save"):
        (found,) = breaks([mutation("0", name)], top)
        assert found.tests == ("tests/test_saver.py::test_a_save",)
    (found,) = breaks([mutation("0", "test_saver")], top)
    assert found.tests == ("tests/test_saver.py",)


@pytest.mark.parametrize(
    ("new", "test", "fault"),
    [
        ("0", "test_a_sav", "there is no test_a_sav; near it: test_a_save, test_saver"),
        ("until", "test_saver", "until, of its new code, is not there"),
        ("self._until", "test_saver", "._until, of its new code, is not there"),
        ("self.clock() + LIMIT", "test_saver", "it changes nothing"),
        ("self.clock(", "test_saver", "'(' was never closed: self.clock("),
    ],
)
def test_what_does_not_suit_the_code_is_told(top: Path, new: str, test: str, fault: str) -> None:
    """Before anything is run."""
    with pytest.raises(FaultyError) as caught:
        breaks([mutation(new, test)], top)
    assert caught.value.faults == [f"m: {fault}"]
