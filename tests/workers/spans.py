"""Which ticks of each worker number somebody used, and whether two used the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(slots=True)
class Seen:
    """What happened. *spans* are, for each number, the ticks that somebody used, and who."""

    spans: dict[int, list[tuple[int, int, str]]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)

    def use(self, number: int, first: int, end: int, who: str) -> None:
        """Note that *who* may have used the ticks from *first* to before *end*."""
        self.spans.setdefault(number, []).append((first, end, who))

    def overlaps(self) -> list[str]:
        """Return a line for each two neighbouring spans of a number that overlap."""
        found = []
        for number, spans in sorted(self.spans.items()):
            spans.sort()
            for (_, end, who), (first, _, other) in pairwise(spans):
                if first < end:
                    found.append(f"number {number}: {end - first} ticks of {who} and {other}")
        return found

    def report(self) -> str:
        """Return all of it as text."""
        taken = sum(len(spans) for spans in self.spans.values())
        ticks = sum(end - first for spans in self.spans.values() for first, end, _ in spans)
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
        return f"{taken} spans, {ticks} ticks; {counts}; overlaps {len(self.overlaps())}"
