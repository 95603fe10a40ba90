from __future__ import annotations

import json

import pytest

from tests.benchmarks import quote


def test_the_readme_of_the_benchmarks_quotes_the_results_beside_it() -> None:
    """Its figures are those of one run, and of no other."""
    readme = quote.README.read_text()
    figures = quote.quoted(json.loads(quote.RESULTS.read_text()))
    assert quote.replaced(readme, figures) == readme


def test_the_results_that_are_quoted_are_whole() -> None:
    """Nothing was left out of that run, and nothing broke."""
    results = json.loads(quote.RESULTS.read_text())
    assert (results["left_out"], results["failed"]) == ([], [])


def test_a_readme_without_a_place_for_figures_is_refused() -> None:
    """Rather than left as it is without a word."""
    with pytest.raises(ValueError, match="no lines"):
        quote.replaced("# uuidd\n", "")
