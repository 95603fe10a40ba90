"""The options of ``uuidctl`` that are those of uuidgen, uuidparse and ksuid."""

from __future__ import annotations

import json
import os
from random import Random
from typing import Any
from uuid import UUID

import pytest

from tests.client.conftest import Uuidctl
from tests.client.fakes import UUIDCTL
from tests.tools import need, run

V1 = "c232ab00-9414-11ec-b3c8-9f6bdeced846"
V4 = "919108f7-52d1-4320-9bac-f847db4148a8"
V6 = "1ec9414c-232a-6b00-b3c8-9f6bdeced846"
V7 = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
KSUID = "0uk1HcdvF0p8C20KtTfdRSB9XIm"
PAYLOAD = bytes.fromhex("BA1C205D6177F0992D15EE606AE32238")

ODD = [
    "",
    "x",
    "a b\\",
    "é",
    V1.upper(),
    V1.replace("-", ""),
    f"{{{V1}}}",
    *(f"{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}" for digit in "0f"),
    "00000000-0000-0000-0000-000000000001",
    "00000000-0000-1000-0000-000000000001",
    "c232ab00-9414-11ec-c3c8-9f6bdeced846",
    "c232ab00-9414-11ec-e3c8-9f6bdeced846",
]


def uuids() -> list[str]:
    """Return UUIDs of the versions that each uuidparse knows, of all variants, and words."""
    random = Random(5)
    drawn = [
        UUID(int=random.getrandbits(128) & ~(15 << 76) | version << 76)
        for version in (0, 1, 2, 3, 4, 5, 9, 15)
        for _ in range(20)
    ]
    # libuuid takes a time before 1970 for one of the far future.
    late = [one for one in drawn if one.version != 1 or one.time > 0x01B21DD213814000]
    return [*map(str, late), *ODD, V1, V4]


def printed(*command: str, zone: str = "UTC") -> str:
    """Return what a command prints of all of these."""
    environment = {**os.environ, "TZ": zone, "LC_ALL": "C.UTF-8"}
    done = run(*command, *uuids(), env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.process
@pytest.mark.parametrize(
    "words", [("-r",), ("-r", "-n"), ("-rn", "-o", "TIME,uuid"), ("-r", "-o+TYPE")]
)
def test_raw_output_is_that_of_uuidparse(words: tuple[str, ...]) -> None:
    """Byte for byte, for scripts that cut it by spaces."""
    ours = printed(*UUIDCTL, "inspect", *words)
    assert ours == printed(need("uuidparse"), *words)


@pytest.mark.process
@pytest.mark.parametrize("words", [(), ("-o", "TYPE,VARIANT")])
def test_json_is_that_of_uuidparse(words: tuple[str, ...]) -> None:
    """The same object, with the same names, and null for what a UUID has not."""
    ours = printed(*UUIDCTL, "inspect", "-J", *words)
    assert json.loads(ours) == json.loads(printed(need("uuidparse"), "-J", *words))


@pytest.mark.process
def test_a_table_has_the_words_of_uuidparse() -> None:
    """Its columns may be narrower; in a time zone too, whose time is shown."""
    ours = printed(*UUIDCTL, "inspect", "-n", zone="Asia/Kolkata")
    theirs = printed(need("uuidparse"), "-n", zone="Asia/Kolkata")
    assert [line.split() for line in ours.splitlines()] == [
        line.split() for line in theirs.splitlines()
    ]
    assert "+05:30" in ours


def test_later_versions_are_named_as_uuidparse_does_since_2_40(uuidctl: Uuidctl) -> None:
    """With their time, which earlier ones do not show."""
    code, out, err = uuidctl("inspect", "-rn", "-o", "TYPE,TIME", V6, V7)
    assert (code, err) == (0, "")
    assert [line[:18] for line in out.splitlines()] == [
        "time-v6 2022-02-22",
        "time-v7 2022-02-22",
    ]


@pytest.mark.process
def test_words_come_from_standard_input_too() -> None:
    """As uuidparse reads them, several in a line."""
    done = run(*UUIDCTL, "inspect", "-n", "-o", "UUID", "-", input=f"{V1} {V4}\n\n{V7}\n")
    assert done.stdout.split() == [V1, V4, V7]


def test_an_unknown_column_is_refused(uuidctl: Uuidctl) -> None:
    """The line names those that there are."""
    code, out, err = uuidctl("inspect", "-o", "UUID,AGE", V1)
    assert (code, out) == (2, "")
    assert err.endswith("unknown column: AGE; the columns are UUID, VARIANT, TYPE, TIME\n")


@pytest.mark.parametrize(
    "words", [("-J", "--json"), ("-r", "-k", "v1"), ("-n", "--epoch", "5"), ("-f", "raw", "-J")]
)
def test_options_of_two_programs_exclude_each_other(
    uuidctl: Uuidctl, words: tuple[str, ...]
) -> None:
    """Neither is left out silently."""
    code, out, err = uuidctl("inspect", *words, V1)
    assert (code, out) == (2, "")
    assert "exclude each other" in err


@pytest.mark.parametrize(
    ("form", "printed"),
    [
        ("string", f"{KSUID}\n"),
        ("time", "2017-10-10 05:01:40 +0000 UTC\n"),
        ("timestamp", "107611700\n"),
    ],
)
def test_a_part_of_a_ksuid_is_printed(uuidctl: Uuidctl, form: str, printed: str) -> None:
    """As ksuid -f prints it, one line for each."""
    assert uuidctl("inspect", "-f", form, KSUID, KSUID) == (0, printed * 2, "")


def test_a_ksuid_is_inspected_as_without_an_option(uuidctl: Uuidctl) -> None:
    """It is how each is shown anyway."""
    assert uuidctl("inspect", "-f", "inspect", KSUID, KSUID) == uuidctl("inspect", KSUID, KSUID)


@pytest.mark.process
@pytest.mark.parametrize(
    ("form", "printed"), [("payload", PAYLOAD), ("raw", (107611700).to_bytes(4, "big") + PAYLOAD)]
)
def test_the_bytes_of_a_ksuid_are_printed(form: str, printed: bytes) -> None:
    """Nothing else, so that a program can read them; also for one from standard input."""
    script = 'echo "$1" | { shift; "$@"; } | od -An -v -tx1'
    done = run("sh", "-c", script, "sh", KSUID, *UUIDCTL, "inspect", "-f", form, "-")
    assert bytes.fromhex(done.stdout) == printed


def test_a_format_of_ksuids_refuses_other_ids(uuidctl: Uuidctl) -> None:
    """They have no such parts."""
    code, out, err = uuidctl("inspect", "-f", "raw", V1)
    assert (code, out) == (1, "")
    assert V1 in err


@pytest.mark.parametrize(("flag", "version"), [("-t", 1), ("-r", 4), ("-6", 6), ("-7", 7)])
def test_the_short_options_of_uuidgen_choose_the_kind(
    uuidctl: Uuidctl, flag: str, version: int
) -> None:
    """And -C says how many."""
    code, out, _ = uuidctl("new", flag, "-C", "3")
    assert code == 0
    found: list[Any] = [UUID(line).version for line in out.splitlines()]
    assert found == [version] * 3


@pytest.mark.process
@pytest.mark.parametrize("flag", ["-t", "-r"])
def test_uuidgen_makes_the_same_version(uuidctl: Uuidctl, flag: str) -> None:
    """So a script may use either."""
    theirs = UUID(run(need("uuidgen"), flag).stdout.strip())
    assert UUID(uuidctl("new", flag)[1].strip()).version == theirs.version


@pytest.mark.parametrize(
    ("form", "lines"), [("string", 2), ("time", 2), ("timestamp", 2), ("inspect", 22)]
)
def test_new_ksuids_are_printed_in_a_format(uuidctl: Uuidctl, form: str, lines: int) -> None:
    """As ksuid -n 2 -f prints them."""
    code, out, _ = uuidctl("new", "-k", "ksuid", "-n", "2", "-f", form)
    assert code == 0
    assert out.count("\n") == lines


@pytest.mark.parametrize("words", [(), ("-7",), ("-k", "ksuid", "--json")])
def test_a_format_of_ksuids_is_refused_for_other_kinds(
    uuidctl: Uuidctl, words: tuple[str, ...]
) -> None:
    """The default kind is one of them."""
    code, out, err = uuidctl("new", *words, "-f", "time")
    assert (code, out) == (2, "")
    assert err.endswith("-f is for --kind ksuid, and excludes --json\n")
