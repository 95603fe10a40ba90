"""The documents agree with the code and with each other."""

from __future__ import annotations

import argparse
import re
from dataclasses import fields
from datetime import UTC, datetime

import pytest

from tests.documents import DOCUMENTS, FOLDERS, ROOT, anchors, blocks, text
from uuidd import __version__, statefile
from uuidd.cli import arguments, installing, workers
from uuidd.core.ids import snowflake, times
from uuidd.core.ids.kinds import KINDS, TIMES
from uuidd.core.timeline.outcomes import MAX_BLOCK
from uuidd.server import events
from uuidd.server.allocator import NO_NUMBER
from uuidd.server.settings import Limits
from uuidd_client import (
    Client,
    DaemonUnavailable,
    NoWorkerId,
    TimeOutOfRange,
    command,
)

MOST_LINES = 125
"""Lines of the README for the person who decides in two minutes."""

SOCKET = "/run/uuidd/request"

SNOWFLAKE = snowflake.time_field(snowflake.TWITTER_EPOCH)
IN_2090 = times.tick_of(datetime(2090, 1, 1, tzinfo=UTC), TIMES["v1"])

OF_OTHERS = {"--listen-client-urls", "--format", "--build-arg", "--no-deps"}
"""Options of etcd, docker, buildah and pip."""

OF_APPLICATIONS = {"env.py", "manage.py", "models.py"}
"""Files of Alembic and Django, which an application has."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_link_leads_somewhere(name: str) -> None:
    folder = (ROOT / name).parent
    for link in re.findall(r"\]\(([^)\s]+)\)", text(name)):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (folder / path).resolve() if path else ROOT / name
        assert target.is_file(), link
        if anchor:
            assert anchor in anchors(str(target.relative_to(ROOT))), link


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_file_that_is_named_is_there(name: str) -> None:
    """Whoever looks for it finds it, also after files were moved."""
    places = [ROOT / folder for folder in (*FOLDERS, (ROOT / name).parent)]
    for path in re.findall(r"(?<![\w/.])[a-z_][\w/]*\.(?:py|yaml|inc|svg|h|c)\b", text(name)):
        if path.startswith("prometheus.") or path in OF_APPLICATIONS:
            continue
        # A package is its folder: whoever tests a wheel has not the rest of it here.
        found = path.removesuffix("/__init__.py")
        assert any((place / found).exists() for place in places), path


def test_the_readme_is_short() -> None:
    assert len(text("README.md").splitlines()) <= MOST_LINES


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """Word for word, with the same Debian packages.

    More of them are for the C extension, and for the engines of the thorough tier.
    """
    [command_line] = [block for block in blocks("README.md", "sh") if "pytest" in block]
    script = (ROOT / ".ci" / "run").read_text()
    before, found, _ = script.partition(command_line)
    assert found
    # What python3 is for who has installed no other Python.
    assert "export PATH=/usr/bin:$PATH\n" in before
    packages = re.findall(r"apt-get install -qqy ([a-z0-9 -]+)", script)
    assert len(packages) == 2
    extension = ["gcc", "libc6-dev", "python3-dev"]
    engines = ["etcd-server", "etcd-client", "zookeeper", "openssl"]
    assert packages[0].split() == [*packages[1].split(), *extension, *engines]


@pytest.mark.parametrize(
    "name", ["CHANGELOG.md", "systemd/kubernetes/daemonset.yaml", "systemd/kubernetes/sidecar.yaml"]
)
def test_the_version_that_is_named_is_that_of_the_code(name: str) -> None:
    newest, *others = re.findall(r"^(?:## |.*image: uuidd:)([0-9.]+)", text(name), re.MULTILINE)
    assert newest == __version__
    assert name == "CHANGELOG.md" or set(others) <= {newest}


def test_the_table_of_limits_is_that_of_the_code() -> None:
    rows = re.findall(
        r"^\| `--max-([a-z-]+)` \| ([\d.]+) \| ([\d.]+) \|", text("systemd/README.md"), re.MULTILINE
    )
    told = {name.replace("-", "_"): (float(default), float(least)) for name, default, least in rows}
    assert told == {
        field.name: (field.default, field.metadata["least"]) for field in fields(Limits)
    }


@pytest.mark.parametrize(
    "name",
    [
        *("README.md", "SECURITY.md", "client/README.md"),
        *("systemd/README.md", "systemd/fleet.md", "systemd/clones.md"),
    ],
)
def test_each_option_that_is_named_exists(name: str) -> None:
    known = _options(arguments.parser()) | _options(command.parser()) | OF_OTHERS
    known |= _options(installing.parser()) | _options(workers.parser())
    named = set(re.findall(r"`[^`\n]*?(--[a-z][a-z-]+)", text(name)))
    assert named - known == set()


def refused() -> str:
    with pytest.raises(ValueError, match="kind is 'v9'") as error:
        Client(SOCKET).make("v9", 1)  # type: ignore[call-overload]
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        *(
            ("client/README.md", f"`{error}`")
            for error in (
                DaemonUnavailable(SOCKET, "No such file or directory"),
                DaemonUnavailable(SOCKET, "silent for longer than the time-out"),
                DaemonUnavailable(SOCKET, "unavailable: ...", code="unavailable"),
                NoWorkerId(SOCKET, f"no_worker_id: {NO_NUMBER}"),
                TimeOutOfRange("snowflake", IN_2090, SNOWFLAKE.epoch, SNOWFLAKE.end),
                refused(),
            )
        ),
        *(("uuidd/status.md", f"`{reason}`") for reason in events.MEANINGS),
        ("systemd/README.md", f"at most 65,535 | NUM is at most {MAX_BLOCK:,} |"),
        ("systemd/README.md", f"This version writes and reads format {statefile.FORMAT}."),
        ("systemd/README.md", f"does not know format {statefile.FORMAT} treats the state as lost"),
        ("uuidd/README.md", f"The format is {statefile.FORMAT}."),
    ],
)
def test_what_the_code_says_is_quoted_as_it_is(name: str, quoted: str) -> None:
    """Whoever searches the document for what a program said finds it."""
    assert quoted in " ".join(text(name).split())


BY_NAME = {"v3", "v5"}
"""Kinds that are made of a name, by uuidctl alone."""

TIMED = {kind for kind, found in KINDS.items() if found.timeline}


@pytest.mark.parametrize(
    ("name", "head", "kinds"),
    [
        ("SECURITY.md", "| kind | the time | the host |", KINDS.keys() | BY_NAME),
        ("client/README.md", "| kind | values of `form`", KINDS.keys() | BY_NAME),
        ("uuidd/protocol.md", "| kind | from a tick of |", TIMED),
    ],
)
def test_each_table_of_kinds_has_them_all(name: str, head: str, kinds: set[str]) -> None:
    assert _rows_of_kinds(name, head).keys() == kinds


def test_the_forms_of_each_kind_are_those_of_the_code() -> None:
    rows = _rows_of_kinds("client/README.md", "| kind | values of `form`")
    told = {kind: tuple(re.findall(r"`(\w+)`", rest)) for kind, rest in rows.items()}
    assert {kind: told[kind] for kind in KINDS} == {it: found.forms for it, found in KINDS.items()}


def test_the_protocol_names_the_timeline_of_each_kind() -> None:
    rows = _rows_of_kinds("uuidd/protocol.md", "| kind | from a tick of |")
    told = {kind: re.findall(r"\w+", rest.partition("|")[0])[-1] for kind, rest in rows.items()}
    assert told == {kind: KINDS[kind].timeline for kind in TIMED}


def _rows_of_kinds(name: str, head: str) -> dict[str, str]:
    """Return each kind in the first column of a table, with the rest of its row."""
    _, found, rest = text(name).partition(head)
    assert found
    rows = [row.split("|", 2)[1:] for row in rest.partition("\n\n")[0].splitlines()[2:]]
    return {
        kind.strip(" `").lower().replace(" ", "_"): rest
        for kinds, rest in rows
        for kind in kinds.split(",")
    }


def test_lines_of_the_log_are_quoted_as_they_are() -> None:
    """Each piece of a line between dots stands in the code, so that people find what they saw."""
    sources = "".join(path.read_text() for path in (ROOT / "uuidd").rglob("*.py"))
    # A text that goes on in the next line is one.
    told = re.sub(r'"\s*\n\s*f?"', "", sources)
    table = text("systemd/README.md").partition("| line in the log |")[2].partition("\n\n")[0]
    lines = re.findall(r"^\| `(.*?)` \|", table, flags=re.MULTILINE)
    assert len(lines) > 20
    for line in lines:
        for piece in line.replace("set back", "set ...").split("..."):
            words = piece.strip()
            assert words in told, line


def test_each_name_in_how_to_add_a_kind_is_in_the_code() -> None:
    """Whoever follows it looks for these names."""
    how_to = text(".github/CONTRIBUTING.md").partition("## How to add a kind of id\n")[2]
    files = [path for end in ("py", "c", "h") for path in ROOT.glob(f"[cut]*/**/*.{end}")]
    known = {word for file in files for word in re.findall(r"\w+", file.read_text())}
    names = re.findall(r"`(\w+)`", how_to)
    assert len(names) > 15
    assert [name for name in names if name not in known] == []


def test_no_file_of_tests_loses_its_marks() -> None:
    """A second ``pytestmark`` replaces the first: tests of both implementations would run once."""
    for file in (ROOT / "tests").rglob("test_*.py"):
        assert len(re.findall(r"^pytestmark\b", file.read_text(), re.MULTILINE)) < 2, file


def _options(parser: argparse.ArgumentParser) -> set[str]:
    found = set()
    for action in parser._actions:
        found |= set(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                found |= _options(subparser)
    return found
