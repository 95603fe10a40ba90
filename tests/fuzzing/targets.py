"""All targets, by name, and what is kept of their inputs."""

from __future__ import annotations

from tests.fuzzing import corpus, handler, states, texts, wire
from tests.fuzzing.corpus import Case

TARGETS = {
    target.name: target
    for target in (*wire.TARGETS, *states.TARGETS, *texts.TARGETS, *handler.TARGETS)
}

SHARES = {"handler": 3, "states": 4, "texts": 8, "spellings": 8}
"""Of a hundred inputs those that a target gets; the others share the rest."""

CORPUS: dict[str, list[Case]] = {
    "requests": corpus.REQUESTS,
    "pieces": corpus.REQUESTS,
    "calls": corpus.CALLS,
    "responses": corpus.RESPONSES,
    "asks": corpus.ASKS,
    "replies": corpus.REPLIES,
    "states": corpus.STATES,
    "texts": corpus.TEXTS,
    "handler": corpus.LIVES,
}


def shares(names: list[str], inputs: int) -> dict[str, int]:
    """Return how many of all inputs each of some targets gets: by what one costs and may find."""
    rest = (100 - sum(SHARES.values())) / (len(TARGETS) - len(SHARES))
    weights = {name: SHARES.get(name, rest) for name in names}
    return {
        name: max(1, round(inputs * weight / sum(weights.values())))
        for name, weight in weights.items()
    }
