"""Which ticks of each worker number somebody used, and whether two used the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.judge import Judge, Repeated, Span


@dataclass(slots=True)
class Seen:
    """What happened. *overlaps* says of each span that it overlaps one that came before."""

    judge: Judge = field(default_factory=Judge)
    overlaps: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)

    def use(self, number: int, first: int, end: int, who: str) -> None:
        """Note that *who* may have used the ticks from *first* to before *end*."""
        try:
            self.judge.note(Span(number, first, end, who))
        except Repeated as repeated:
            self.overlaps.append(str(repeated))

    def report(self) -> str:
        """Return all of it as text."""
        spans = [span for some in self.judge.spans.values() for span in some]
        ticks = sum(span.end - span.first for span in spans)
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
        return f"{len(spans)} spans, {ticks} ticks; {counts}; overlaps {len(self.overlaps)}"
