"""The types of ``uuidd_client.pydantic``."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import TypeAdapter, ValidationError

import uuidd_client
from tests.kinds import KINDS
from uuidd_client import pydantic
from uuidd_client.pydantic import Snowflake, Ulid
from uuidd_client.testing import fixed_ids

if TYPE_CHECKING:
    from uuidd_client.client import Kind

TYPES: dict[str, Any] = {
    kind: getattr(pydantic, kind.title().replace("_", ""))
    for kind, found in KINDS.items()
    if found.alphabet
}

each_kind = pytest.mark.parametrize("kind", TYPES)


@each_kind
def test_an_id_is_valid_and_the_same_after_json(kind: Kind) -> None:
    adapter = TypeAdapter(TYPES[kind])
    schema = adapter.json_schema()
    with fixed_ids() as ids:
        for made in ids.make(kind, 20):
            assert adapter.validate_python(made) == made
            written = adapter.dump_json(made)
            assert adapter.validate_json(written) == made
            assert re.search(schema["pattern"], json.loads(written))


@each_kind
def test_the_example_in_the_schema_is_an_id(kind: Kind) -> None:
    with fixed_ids() as ids:
        assert TypeAdapter(TYPES[kind]).json_schema()["examples"] == [str(ids.make(kind, 1)[0])]


@each_kind
def test_the_schema_is_that_of_a_text(kind: str) -> None:
    adapter = TypeAdapter(TYPES[kind])
    assert adapter.json_schema(mode="validation") == adapter.json_schema(mode="serialization")
    assert adapter.json_schema()["type"] == "string"


@each_kind
@pytest.mark.parametrize("wrong", ["", "x!", "Z" * 40, "\u017f" * 26, 1.5, None, True, -1])
def test_what_is_no_id_is_refused(kind: str, wrong: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(TYPES[kind]).validate_python(wrong)


def test_the_error_names_the_text_and_the_rule() -> None:
    with pytest.raises(ValidationError, match="'x!' is not a ULID: it has 2 characters, not 26"):
        TypeAdapter(Ulid).validate_python("x!")


def test_a_ulid_in_lower_case_is_changed_to_upper_case() -> None:
    """So that equal ids are equal texts."""
    text = uuidd_client.at_time("ulid", 1_645_557_742_000)
    assert TypeAdapter(Ulid).validate_python(str(text).lower()) == text


def test_a_snowflake_has_63_bits() -> None:
    adapter = TypeAdapter(Snowflake)
    assert adapter.validate_json(b'"9223372036854775807"') == (1 << 63) - 1
    assert adapter.dump_json((1 << 63) - 1) == b'"9223372036854775807"'
    with pytest.raises(ValidationError):
        adapter.validate_python(1 << 63)


@pytest.mark.parametrize("wrong", ["-5", "1" * 20, ""])
def test_a_text_that_is_no_snowflake_is_refused_with_the_rule(wrong: str) -> None:
    """Pydantic would say of "-5" that it must be an integer, which it is."""
    with pytest.raises(ValidationError, match="as text 1 to 19 decimal digits"):
        TypeAdapter(Snowflake).validate_python(wrong)
