"""How a mutation finds its place in the C extension."""

from __future__ import annotations

import pytest

from tests.mutations.c_code import File, broken, is_named
from tests.mutations.place import NoPlaceError

SOURCE = """
/* A file. */
#define LIMIT 100

static int save(struct saver *saver, int wait);

static int save(struct saver *saver, int wait)
{
    int end = saver->clock + LIMIT; /* wait or not */
    if (wait && !saver->done) {
        write_state(saver, end);
    }
    return end;
}

PyObject *Saver_save(PyObject *self,
                     PyObject *args)
{
    return self == args ? self : args + 1 + 1;
}
"""

SOURCES = [File("client/extension/saver.c", SOURCE), File("client/extension/other.c", "int older;")]


def changed(function: str, old: str, new: str) -> list[tuple[str, str]]:
    """Return which lines a mutation changes, and to what."""
    path, text, unknown = broken(SOURCES, function, old, new)
    assert (path, unknown) == ("client/extension/saver.c", [])
    pairs = zip(SOURCE.splitlines(), text.decode().splitlines(), strict=False)
    return [(was.strip(), now.strip()) for was, now in pairs if was != now]


def test_a_piece_is_replaced_in_its_function() -> None:
    """All around it stays."""
    assert changed("saver.c:save", "wait && !saver->done", "wait") == [
        ("if (wait && !saver->done) {", "if (wait) {")
    ]


def test_layout_and_comments_do_not_matter() -> None:
    """A piece may be written in one line, and stand in several."""
    old = "{ write_state( saver,end ); /* all of it */ }"
    _, text, _ = broken(SOURCES, "saver.c:save", old, ";")
    assert b"done) ;\n    return end;" in text


def test_a_function_may_return_an_object_and_have_parameters_in_two_lines() -> None:
    """As most of those that Python calls."""
    assert changed("saver.c:Saver_save", "self == args", "self") == [
        (
            "return self == args ? self : args + 1 + 1;",
            "return self ? self : args + 1 + 1;",
        )
    ]


@pytest.mark.parametrize(
    ("function", "old", "message"),
    [
        ("saver.c:save", "saver->clock - LIMIT", "saver.c:7: its code is not in saver.c:save"),
        ("saver.c:save", "clock + LIMI", "its code is not in"),
        ("saver.c:Saver_save", "+ 1", "its code is 2 times in saver.c:Saver_save"),
        ("saver.c:saved", "wait", "there is no saver.c:saved; near it: saver.c:save"),
        ("other.c:save", "wait", "there is no other.c:save"),
    ],
)
def test_a_piece_that_is_not_there_once_is_a_fault(function: str, old: str, message: str) -> None:
    """It says where it looked, or what is like it."""
    with pytest.raises(NoPlaceError) as fault:
        broken(SOURCES, function, old, "0")
    assert message in str(fault.value)


def test_new_names_have_to_be_known_somewhere_in_the_extension() -> None:
    """Else it would only not be compiled."""
    _, _, unknown = broken(SOURCES, "saver.c:save", "wait &&", "older && newer &&")
    assert unknown == ["newer"]


def test_a_function_of_c_is_named_with_its_file() -> None:
    """So it is not taken for one of Python."""
    assert is_named("cutting.c:cut_lane")
    assert is_named("ids.h:random_size")
    assert not is_named("Saver.save")
