from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutations import auto
from tests.mutations.__main__ import main
from tests.mutations.auto import Results, lines_of
from tests.mutations.place import Module
from tests.mutations.rules import mutants

SOURCE = b"""
X = (
    1,
)

def f(a, b=
      2):
    if (a and
        b):
        g(
            3)
    try:
        pass
    except E[4]:
        pass
"""


@pytest.mark.parametrize(
    ("constant", "lines"), [("1", []), ("2", []), ("3", [10, 11]), ("4", [14])]
)
def test_a_mutant_changes_the_lines_of_its_statement(constant: str, lines: list[int]) -> None:
    """Of one with others inside, those of its head; none if it runs while it is imported."""
    module = Module("m", "m.py", SOURCE, ast.parse(SOURCE))
    (mutant,) = (one for one in mutants(module) if SOURCE[one.begin : one.end].decode() == constant)
    assert [*lines_of(mutant, module)] == lines


def test_results_stay_until_the_code_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was broken off, because the run that wrote it was killed, is left out."""
    file = tmp_path / "made" / "rows"
    monkeypatch.setattr(auto, "state", lambda: "1")
    Results(file).add("a", ["killed"])
    with file.open("a") as lines:
        lines.write('\n["1", "b", ["kil')
    Results(file).add("c", ["survived"])
    assert Results(file).rows == {"a": ["killed"], "c": ["survived"]}
    monkeypatch.setattr(auto, "state", lambda: "2")
    assert Results(file).rows == {}


@pytest.mark.parametrize(
    "words", ["--for uuidd/stor.py", "--lost tests/core/test_utc.py tests/core/test_ut.py::test_a"]
)
def test_a_file_that_does_not_exist_is_refused(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    wrong = words.split()[-1].removesuffix("::test_a")
    assert f"error: there is no file {wrong} in " in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--paths uuidd/store.py", "--changed HEAD^"])
def test_what_is_of_mutants_by_rule_does_not_try_the_catalogue(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    told = "error: --paths and --changed are of mutants by rule: add --auto N\n"
    assert told in capsys.readouterr().err


@pytest.mark.process
def test_a_commit_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--auto", "1", "--changed", "nowhere"])
    assert "error: there is no commit nowhere\n" in capsys.readouterr().err
