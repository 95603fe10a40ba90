"""``uuidctl inspect``, as a user meets it."""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
from typing import Any

import pytest

from tests.client.conftest import Uuidctl
from tests.client.fakes import UUIDCTL
from tests.rig import PATIENCE
from tests.tools import output

V1 = "c232ab00-9414-11ec-b3c8-9f6bdeced846"
KSUID = "0uk1HcdvF0p8C20KtTfdRSB9XIm"
ULID = "01ARYZ6S41TSV4RRFFQ69G5FAV"
SNOWFLAKE = "856165981072306191"

V1_SHOWN = """\
c232ab00-9414-11ec-b3c8-9f6bdeced846
  kind       v1
  variant    RFC 9562
  time       2022-02-22T19:22:22.0000000Z
  timestamp  138648505420000000
  clock_seq  13256
  node       9f:6b:de:ce:d8:46 (random)
  full_on    5236-03-31
"""

KSUID_SHOWN = """\
0uk1HcdvF0p8C20KtTfdRSB9XIm
  kind       ksuid
  time       2017-10-10T05:01:40Z
  timestamp  107611700
  payload    BA1C205D6177F0992D15EE606AE32238
  full_on    2150-06-19
"""


def test_an_id_is_shown_with_aligned_fields(uuidctl: Uuidctl) -> None:
    """The version is in the kind, and what the node is beside it."""
    assert uuidctl("inspect", V1.upper()) == (0, V1_SHOWN, "")


def test_several_ids_have_an_empty_line_between_them(uuidctl: Uuidctl) -> None:
    """In the order in which they were given."""
    assert uuidctl("inspect", KSUID, V1) == (0, f"{KSUID_SHOWN}\n{V1_SHOWN}", "")


def test_several_readings_are_told_apart(uuidctl: Uuidctl) -> None:
    """Each after the first says what else the id may be, and its text if that is another."""
    status, out, _ = uuidctl("inspect", "017f22e279b07cc398c4dc0c0c07398f")
    assert status == 0
    assert out == (
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n"
        "  kind       v7\n"
        "  variant    RFC 9562\n"
        "  time       2022-02-22T19:22:22.000Z\n"
        "  timestamp  1645557742000\n"
        "  random     0x330d8c4dc0c0c07398f\n"
        "  full_on    +10889-08-02\n"
        "or, as a ulid: 01FWHE4YDGFK1SHH6W1G60EECF\n"
        "  time       2022-02-22T19:22:22.000Z\n"
        "  timestamp  1645557742000\n"
        "  random     0x7cc398c4dc0c0c07398f\n"
        "  tick       7984\n"
        "  lane       230\n"
        "  uuid       017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n"
        "  full_on    +10889-08-02\n"
    )


def test_an_id_without_fields_is_shown_by_its_kind(uuidctl: Uuidctl) -> None:
    """The nil UUID has nothing else to tell."""
    nil = "00000000-0000-0000-0000-000000000000"
    assert uuidctl("inspect", nil) == (0, f"{nil}\n  kind  nil\n", "")


def test_a_kind_that_is_asked_for_is_shown_alone(uuidctl: Uuidctl) -> None:
    """With the epoch that is told."""
    _, out, _ = uuidctl("inspect", "--kind", "snowflake", "--epoch", "1420070400000", SNOWFLAKE)
    assert out.startswith(
        f"{SNOWFLAKE}\n  kind           snowflake\n  time           2021-06-20T13:37:56.682Z"
    )
    assert "or, as" not in out


PUSH_IDS = ["-JhLeOlGIEjaIOFHR0xd", "-kind-is-no-option--", "--json-is-no-option-"]


@pytest.mark.parametrize("given", PUSH_IDS)
def test_a_push_id_is_an_id_although_it_begins_with_a_hyphen(uuidctl: Uuidctl, given: str) -> None:
    """Its letters may begin as an option does; options before and after it are options."""
    status, out, err = uuidctl("inspect", given)
    assert (status, err) == (0, "")
    assert out.startswith(f"{given}\n  kind       push_id\n")
    assert uuidctl("inspect", "--", given)[1] == out
    assert uuidctl("inspect", "-k", "push_id", given, V1)[2].startswith(
        f"uuidctl: {V1!r} is not a Push ID"
    )
    _, both, _ = uuidctl("inspect", V1, given, "--json")
    assert [one["id"] for one in json.loads(both)] == [V1, given]


def test_a_kind_is_read_as_bits_when_asked_to(uuidctl: Uuidctl) -> None:
    """Otherwise as the kind's own tools read it."""
    status, out, err = uuidctl("inspect", "--kind", "ksuid", "123")
    assert (status, out) == (1, "")
    assert err == (
        "uuidctl: '123' is not written as a ksuid is; raw=True (--raw) also accepts an"
        " integer, or bytes in hex\n"
    )
    status, out, err = uuidctl("inspect", "--kind", "ksuid", "--raw", "123")
    assert (status, err) == (0, "")
    assert out.startswith("00000000000000000000000001z\n")


def test_a_ulid_shows_its_uuid(uuidctl: Uuidctl) -> None:
    """As which a database may keep it."""
    _, out, _ = uuidctl("inspect", ULID)
    assert "  uuid       01563df3-6481-d676-4c61-efb99302bd5b\n" in out


@pytest.mark.parametrize(
    "wrong",
    ["xyz", "", "c232ab00-9414-11ec-b3c8-9f6bdeced84", "a\nb", "\udcff", "\u0663" * 32, "a" * 9999],
)
def test_one_that_is_no_id_refuses_all(uuidctl: Uuidctl, wrong: str) -> None:
    """One line that is not too long, and nothing of the others."""
    status, out, err = uuidctl("inspect", V1, wrong)
    assert (status, out) == (1, "")
    (line,) = err.splitlines()
    assert line.startswith("uuidctl: ")
    assert "is not a" in line
    assert len(line) < 250


def test_a_kind_that_an_id_is_not_of_is_told(uuidctl: Uuidctl) -> None:
    """And the kind that it is of."""
    refusal = f"uuidctl: {V1!r} is not of kind v4: it is of kind v1\n"
    assert uuidctl("inspect", "-k", "v4", V1) == (1, "", refusal)


def test_json_is_one_array(uuidctl: Uuidctl) -> None:
    """The id as it was given, and all its readings."""
    _, out, _ = uuidctl("inspect", "--json", V1.upper(), KSUID)
    first, second = json.loads(out)
    assert first["id"] == V1.upper()
    assert first["readings"] == [
        {
            "kind": "v1",
            "version": 1,
            "variant": "RFC 9562",
            "time": "2022-02-22T19:22:22.0000000Z",
            "timestamp": "138648505420000000",
            "clock_seq": 13256,
            "node": "9f:6b:de:ce:d8:46",
            "node_is": "random",
            "full_on": "5236-03-31",
        }
    ]
    assert [reading["kind"] for reading in second["readings"]] == ["ksuid"]


def test_ids_come_from_standard_input(uuidctl: Uuidctl) -> None:
    """One a line, with any end of line or none; blank lines are nothing."""
    given = f"{KSUID}\r\n\n   \n {V1.upper()} ".encode()
    assert uuidctl("inspect", "-", stdin=given) == (0, f"{KSUID_SHOWN}\n{V1_SHOWN}", "")


def test_no_input_is_no_failure(uuidctl: Uuidctl) -> None:
    """Nothing is shown for nothing."""
    assert uuidctl("inspect", "-", stdin=b"") == (0, "", "")
    assert uuidctl("inspect", "-", "--json", stdin=b"\n\n") == (0, "", "")


def test_standard_input_as_json_is_an_object_a_line(uuidctl: Uuidctl) -> None:
    """So that a program can read them one by one. Integers that a float cannot hold are texts."""
    status, out, _ = uuidctl("inspect", "--json", "-", stdin=f"{V1}\n{SNOWFLAKE}\n".encode())
    first, second = map(json.loads, out.splitlines())
    assert (status, first["id"], second["id"]) == (0, V1, SNOWFLAKE)
    assert first["readings"][0]["timestamp"] == "138648505420000000"
    assert second["readings"][0]["timestamp"] == 204125876682


def test_a_bad_line_of_standard_input_is_told_by_its_number(uuidctl: Uuidctl) -> None:
    """The others are shown, and the exit status is 1."""
    lines = [b"xyz", b"", KSUID.encode(), b"\xff\xfe", b"a" * 10_000, V1.encode(), b"\x00"]
    status, out, err = uuidctl("inspect", "-", stdin=b"\n".join(lines))
    assert (status, out) == (1, f"{KSUID_SHOWN}\n{V1_SHOWN}")
    told = err.splitlines()
    assert told[0].startswith("uuidctl: line 1: 'xyz' is not an id: ")
    assert told[1].startswith("uuidctl: line 4: '\\udcff\\udcfe' is not an id: ")
    assert told[2].startswith(f"uuidctl: line 5: the text '{'a' * 40}")
    assert told[3].startswith("uuidctl: line 7: '\\x00' is not an id: ")
    assert len(told) == 4


@pytest.mark.parametrize("length", [4094, 4095, 4096, 4097, 8191, 8192, 8193])
def test_a_huge_line_is_one_line(uuidctl: Uuidctl, length: int) -> None:
    """Wherever it is cut; the next one is read from its beginning."""
    given = b"a" * length + b"\n" + KSUID.encode() + b"\n"
    status, out, err = uuidctl("inspect", "-", stdin=given)
    assert (status, out) == (1, KSUID_SHOWN)
    (line,) = err.splitlines()
    assert line.startswith("uuidctl: line 1: ")
    assert len(line) < 120


def test_a_kind_is_asked_of_each_line(uuidctl: Uuidctl) -> None:
    """As of each argument."""
    status, out, err = uuidctl("inspect", "-k", "ulid", "-", stdin=f"{ULID}\n{KSUID}\n".encode())
    assert status == 1
    assert out.startswith(f"{ULID}\n  kind       ulid\n")
    assert err.startswith(f"uuidctl: line 2: {KSUID!r} is not a")


def test_a_closed_standard_input_is_told(uuidctl: Uuidctl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has no file for it then."""
    monkeypatch.setattr("sys.stdin", None)
    refusal = "uuidctl: standard input cannot be read: it is closed\n"
    assert uuidctl("inspect", "-") == (1, "", refusal)


def test_a_failure_to_read_is_not_told_as_one_to_write(
    uuidctl: Uuidctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails, say."""

    class Failing(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, _: Any) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(Failing())))
    refusal = "uuidctl: standard input cannot be read: Input/output error\n"
    assert uuidctl("inspect", "-") == (1, "", refusal)


@pytest.mark.process
def test_an_id_is_shown_before_the_next_is_given() -> None:
    """A pipe between programs holds nothing back."""
    with subprocess.Popen(
        [*UUIDCTL, "inspect", "--json", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for text in (V1, ULID):
            process.stdin.write(f"{text}\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], PATIENCE)[0]
            assert json.loads(process.stdout.readline())["id"] == text
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


@pytest.mark.process
def test_a_reader_that_has_seen_enough_ends_it_quietly() -> None:
    """A closed pipe causes no error message."""
    shell = f'yes {V1} | head -20000 | "$@" inspect - | head -1'
    assert output("sh", "-c", shell, "sh", *UUIDCTL) == f"{V1}\n"
