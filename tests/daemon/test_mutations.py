from __future__ import annotations

from pathlib import Path

import uuidd
from tests.mutations.catalogue import MUTATIONS
from tests.mutations.mutation import faults


def test_each_mutation_finds_the_text_that_it_breaks() -> None:
    """So ``python -m tests.mutations`` breaks the code as it is, and not as it once was."""
    assert faults(MUTATIONS, Path(uuidd.__file__).parents[1]) == []
