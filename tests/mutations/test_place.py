"""How a mutation finds its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations.catalogue import read
from tests.mutations.mutation import FaultyError, Mutation, breaks
from tests.mutations.place import NoPlaceError, find, scopes

PYTHON = '''
LIMIT = 100

class Saver:
    def save(self, state, wait):
        """Save it."""
        end = self.clock() + LIMIT  # s
        if wait and not self.done:
            self.write(state,
                       until=end)
        elif state:
            self.write(state)
        return end

def write(path, text):
    return len(path) < len(text), len(path)
'''

C = """
static int save(struct saver *saver, int wait);

static int save(struct saver *saver,
                int wait)
{
    int end = saver->clock + LIMIT; /* wait or not */
    if (wait && !saver->done) {
        write_state(saver, end);
    }
    return end;
}
"""


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A checkout of two modules, a file of C and a test."""
    for name, text in {
        "uuidd/saver.py": PYTHON,
        "uuidd/writer.py": "def write():\n    return 1\n",
        "client/extension/core.c": C,
        "tests/test_saver.py": "async def test_a_save() -> None: ...\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("function", "old", "new", "was", "now"),
    [
        ("Saver.save", "end = (self.clock() + LIMIT)"[7:-1], "0", "self.clock() + LIMIT", "0"),
        (
            "saver.Saver.save",
            "self.write(state, until=end)  # and then",
            "a()\nb()",
            "self.write(state,\n                       until=end)",
            "a()\n            b()",
        ),
        ("Saver.save", "return end", "", "return end", "pass"),
        ("Saver.save", "and not self.done", "", "and not self.done", ""),
        (
            "Saver.save",
            "if wait and ...:\n    ...\nelif state:",
            "while ...:\n    if a:\n        ...\nif state:",
            "if wait and not self.done:\n            self.write(state,\n"
            "                       until=end)\n        elif state:",
            "while not self.done:\n            if a:\n                self.write(state,\n"
            "                           until=end)\n        if state:",
        ),
        ("saver", "100", "200", "100", "200"),
        ("core.c:save", "{ write_state( saver,end ); /* all */ }", ";", None, None),
    ],
)
def test_only_the_piece_is_replaced(
    top: Path, function: str, old: str, new: str, was: str | None, now: str | None
) -> None:
    """Layout and comments do not matter; each `...` comes again."""
    broken = find(scopes(top), function, old).filled(new).decode()
    if was is None or now is None:
        was, now = "{\n        write_state(saver, end);\n    }", ";"
    text = C if function.startswith("core.c") else PYTHON
    assert text.count(was) == 1
    assert broken == text.replace(was, now)


@pytest.mark.parametrize(
    ("function", "old", "fault"),
    [
        ("Saver.save", "self.clock() + MOST", "uuidd/saver.py:5: its code is not in Saver.save"),
        ("Saver.save", "if state:", "its code is not in Saver.save"),
        ("saver", "return ..., ...", "its code is not in saver; its code is in write"),
        ("saver.write", "len(path)", "uuidd/saver.py:15: its code is 2 times in saver.write"),
        ("Keeper.save", "x", "there is no Keeper.save; near it: Saver.save"),
        ("save", "x", "there is no save; near it: Saver.save"),
        ("write", "1", "write is in uuidd.saver and uuidd.writer: name the module too"),
        ("core.c:save", "clock + LIMI", "core.c:4: its code is not in core.c:save"),
        ("core.c:saved", "wait", "there is no core.c:saved; near it: core.c:save"),
    ],
)
def test_a_piece_that_is_not_there_once_is_a_fault(
    top: Path, function: str, old: str, fault: str
) -> None:
    with pytest.raises(NoPlaceError) as caught:
        find(scopes(top), function, old)
    assert fault in str(caught.value)


def test_an_entry_of_the_catalogue_is_read_as_a_diff() -> None:
    """Lines of context are a part of both pieces, and lines at the head of a file of none."""
    entry = "m: a why\nin f\n  if a:\n-     b\n+     c\n+     d\nseen by test_e\nseen by test_f"
    assert read(f"# A comment.\n\n{entry}\n") == [
        Mutation("m", "a why", "f", "if a:\n    b", "if a:\n    c\n    d", ("test_e", "test_f"))
    ]
    with pytest.raises(ValueError, match="m: 'b' is no line of an entry"):
        read("m: a why\nin f\nb")


def mutation(new: str, *tests: str, of_c: bool = False) -> Mutation:
    """Return a mutation of the limit in Saver.save, or in that of C."""
    if of_c:
        return Mutation("m", "", "core.c:save", "saver->clock + LIMIT", new, tests)
    return Mutation("m", "", "Saver.save", "self.clock() + LIMIT", new, tests)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("test_a_save", "tests/test_saver.py::test_a_save"),
        ("test_saver.test_a_save", "tests/test_saver.py::test_a_save"),
        ("test_saver", "tests/test_saver.py"),
    ],
)
def test_a_test_is_found_by_its_name(top: Path, name: str, found: str) -> None:
    """And not all tests of its module, others of which may see the mutation too."""
    (broken,) = breaks([mutation("0", name)], top)
    assert broken.tests == (found,)


@pytest.mark.parametrize(
    ("new", "test", "of_c", "fault"),
    [
        ("0", "test_a_sav", False, "there is no test_a_sav; near it: test_a_save, test_saver"),
        ("until", "test_saver", False, "until, of its new code, is not there"),
        ("self._until", "test_saver", False, "._until, of its new code, is not there"),
        ("self.clock() + LIMIT", "test_saver", False, "it changes nothing"),
        ("self.clock(", "test_saver", False, "'(' was never closed: end = self.clock(  # s"),
        ("saver->clocks", "test_saver", True, "clocks, of its new code, is not there"),
    ],
)
def test_what_does_not_suit_the_code_is_told(
    top: Path, new: str, test: str, of_c: bool, fault: str
) -> None:
    """Before anything is run."""
    with pytest.raises(FaultyError) as caught:
        breaks([mutation(new, test, of_c=of_c)], top)
    assert caught.value.faults == [f"m: {fault}"]
