"""The published values in vectors.json, against our own functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from uuidd.core.ids import uuids, versions
from uuidd.core.ids.kinds import FORMATS
from uuidd_client.times import bounds

ROWS: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("vectors.json").read_text()
)

NAMED = {"v3": versions.v3, "v5": versions.v5}


def each(section: str) -> pytest.MarkDecorator:
    """Run a test with each row of a section."""
    return pytest.mark.parametrize(
        "row",
        [pytest.param(row, id=f"{at}-{row['source']}") for at, row in enumerate(ROWS[section])],
    )


def test_there_are_63_published_values() -> None:
    """No row gets lost."""
    assert sum(map(len, ROWS.values())) == 63


@each("fields")
def test_a_text_has_these_fields(row: dict[str, Any]) -> None:
    form = FORMATS[row["kind"]]
    # A number that is too long for other readers of JSON is in hex.
    fields = {name: int(str(value), 0) for name, value in row["fields"].items()}
    assert form.to_text(form.pack(*fields.values())) == row["text"]
    assert form.unpack(form.from_text(row["text"])) == fields


@each("names")
def test_a_name_in_a_namespace_has_this_uuid(row: dict[str, Any]) -> None:
    made = NAMED[row["kind"]](versions.namespace(row["namespace"]), row["name"])
    assert uuids.to_text(made) == row["text"]


@each("refused")
def test_a_text_of_no_id_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^'{row['text']}' is not a "):
        FORMATS[row["kind"]].from_text(row["text"])


@each("versions")
def test_a_uuid_has_this_version(row: dict[str, Any]) -> None:
    assert uuids.version(uuids.from_text(row["text"])) == row["version"]


@each("bounds")
def test_all_ids_of_a_time_lie_between_these(row: dict[str, Any]) -> None:
    unit = "tick" if row["kind"] == "cassandra" else None
    low, high = bounds(row["kind"], row["time"], unit=unit)
    assert (str(low), str(high)) == (row["low"], row["high"])
