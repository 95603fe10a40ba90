"""The timelines, which hand out ticks: lanes, generations, utc and steady.

Theory of operation

1. A *lane* never gives out a tick twice: it only moves up, and never past now (``generation``).
2. A *generation* is 256 lanes, told apart by the low 8 bits of the clock sequence. 16 of them serve
   blocks, so that callers that need a whole run of ticks do not queue behind each other
   (``generation``). The others can be *leased*, each to one connection, whose client then reads the
   clock itself (``leases``).
3. When UTC steps back, ticks come again, so the next generation is opened: same ticks, another
   clock sequence. Each generation leaves a *mark* behind, past everything that it gave out, and
   is opened again only from that mark on (``utc``). A start goes on by the same rule.
4. What is open gives out ticks only below its mark in the state that is known to be saved, its
   *horizon* (``state``). So a crash at any moment costs a generation or a few seconds, never a
   repeat.
5. Where no state can be saved, a fresh random node takes its place (``utc``).
6. Kinds with no clock sequence have the *steady* timeline: one lane that never goes back. Its
   clock goes on at half speed when UTC steps back past what was given out (``steady``, ``slew``).
   Steady has a mark and a horizon of its own.
7. Both timelines are saved as one state (``timelines``, ``state``), with the epochs of Snowflakes.
8. A timeline that cannot give out anything just now says why and what has to happen first
   (``outcomes``).

Nothing here reads a clock, draws a random number, writes a file or logs a line: now, randomness and
what another program uses are arguments; the state to save and the openings to log are results.
"""
