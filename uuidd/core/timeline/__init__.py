"""What hands out ticks: lanes, and the two timelines made of them.

Theory of operation

1. A *lane* never gives a tick twice: it only ever moves up, and never past now (``lane``).
2. A *generation* is 16 lanes, told apart by the low 4 bits of the clock sequence, so that callers
   who need a whole run of ticks do not queue behind each other (``generation``).
3. When UTC steps back, ticks come again, so the next generation is opened: same ticks, another
   clock sequence. Each generation leaves a *mark* behind, past everything that it gave out, and
   is opened again only from that mark on (``utc``).
4. What is open gives out ticks only below its mark in the state that is known to be saved (its
   ``horizon``), so a crash at any moment costs a generation or a few seconds, never a repeat.
5. Where no state can be saved, a fresh random node stands in for it (``volatile``).
6. Kinds with no clock sequence have the *steady* timeline: one lane that never goes back, over a
   clock that goes on at half speed when UTC steps back past what was given out (``slew``), with a
   mark and a horizon of its own (``steady``).
7. Both are saved as one state (``timelines``), with the epochs of Snowflakes (``epochs``).

Nothing here reads a clock, draws a random number or writes a file: now and randomness are
arguments, and what is to be saved is a value (``state``).
"""

from uuidd.core.timeline.block import Block, SteadyBlock
from uuidd.core.timeline.generation import GENERATIONS, LANES, Generation
from uuidd.core.timeline.lane import Lane
from uuidd.core.timeline.outcomes import NoneFree

__all__ = ["GENERATIONS", "LANES", "Block", "Generation", "Lane", "NoneFree", "SteadyBlock"]
