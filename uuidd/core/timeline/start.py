"""What a start keeps of the state that it finds: the node, and the generation that goes on."""

from __future__ import annotations

from uuidd.core.ids.nodes import RandomBits, random_node
from uuidd.core.timeline.generation import GENERATION_BITS, LANE_BITS
from uuidd.core.timeline.ring import Opening, Ring
from uuidd.core.timeline.state import Node, State

COPIED = "the state was copied"
"""The reason of the opening at a start with another product UUID than the state's."""


def begin_ring(
    loaded: State | None,
    *,
    machine: str,
    product: str,
    now: int,
    random: RandomBits,
    node: Node | None,
    avoid: int | None,
    floor: int | None,
    size: int,
) -> tuple[Ring, Opening | None]:
    """Return the ring of a start, and the opening if another generation than the state's is open.

    The arguments are those of ``Utc``. Nothing is open if no generation can be opened.
    """
    copied = loaded is not None and loaded.copied_to(product)
    kept: Node | None = None
    # A state that names another machine, or none, may be in many copies of one image.
    known = loaded is not None and loaded.machine == machine and not copied
    if loaded is not None and known and not loaded.node.fixed:
        kept = loaded.node
    node = node or kept or Node(random_node(random), "random")
    if loaded is None:
        drawn = random(GENERATION_BITS) % size
        ring = Ring(node, drawn, marks={}, floor=_floor(node, now, floor), size=size)
        return ring, ring.open_next(now, "no state", avoid=avoid)
    changed = not node.same_as(loaded.node)
    begin = _floor(node, now, floor) if changed and node.fixed else loaded.floor
    number = loaded.generation
    ring = Ring(node, number, marks=loaded.marks, floor=begin, size=size)
    past = ring.mark(number) - now
    if copied:
        # The original goes on with its generation, and with the next one after a step of UTC.
        used = {number, number if avoid is None else avoid >> LANE_BITS}
        others = [other for other in range(size) if other not in used]
        ring.number = (others[random(GENERATION_BITS) % len(others)] - 1) % size
        return ring, ring.open_next(now, COPIED)
    if changed:
        return ring, ring.open_next(now, "node changed", avoid=avoid)
    if past > 0:
        return ring, ring.open_next(now, "the saved mark lies past now", back=past, avoid=avoid)
    ring.open_number(number)
    return ring, None


def _floor(node: Node, now: int, floor: int | None) -> int:
    return max(now, floor or now) if node.fixed else now
