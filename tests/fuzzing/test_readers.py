"""What programs may send or leave behind comes to what it should, or to an expected error."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given

from tests.fuzzing import MANY
from tests.fuzzing.readers import READERS
from tests.fuzzing.watching import MOST, highest, in_time_and_room, peak

SECONDS = 5.0
"""Of the processor, for the inputs of an example."""

GROWTH = 64
"""MiB by which the process may grow while it reads them all."""


@pytest.mark.parametrize("name", READERS)
def test_what_is_kept_comes_to_what_it_should(name: str) -> None:
    for data, outcome in READERS[name].kept:
        with in_time_and_room(SECONDS):
            found = READERS[name].read(data)
            # Once more, because what was cached the first time is not the input's.
            assert peak(partial(READERS[name].read, data)) <= MOST
        assert outcome in (found, "any"), data


@pytest.mark.parametrize("name", READERS)
def test_changed_bytes_come_to_expected_outcomes_only(name: str) -> None:
    read, outcomes = READERS[name].read, set()

    @MANY
    @given(READERS[name].changes.many)
    def come_to_something(inputs: list[bytes]) -> None:
        with in_time_and_room(SECONDS):
            for data in inputs:
                try:
                    outcomes.add(read(data))
                except Exception as error:
                    error.add_note(f"the input that fails, in hex: {data.hex()}")
                    raise
        assert peak(partial(read, inputs[0])) <= MOST

    before = highest()
    come_to_something()
    assert highest() - before <= GROWTH
    # Bytes that are all refused would prove little.
    assert len(outcomes) > 1
