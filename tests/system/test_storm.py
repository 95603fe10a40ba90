"""A storm: many processes draw ids of every kind while the daemon is killed again and again.

In one storm UTC goes on (P1 and P7), in the other it is set back meanwhile (P4).
"""

from __future__ import annotations

import contextlib
import threading
from typing import NamedTuple

import pytest

from tests import kinds
from tests.judge import assert_no_id_twice
from tests.rig import PATIENCE, Daemon, dice, until
from tests.system.fake_time import HOUR, FakeTime
from tests.system.far import far_reaching
from tests.system.holders import KINDS, Drawn, Holder, assert_sound, leases
from tests.tools import need_root

CLIENTS, STDLIB = 8, 4
"""Processes that draw by our client, and by the standard library."""

REACH = 20
"""Seconds for which a lease outlasts the daemon where UTC goes on, as after a long time without a
kill. Where UTC is set back it is less than a second, as after a start."""

BACK = 1.1
"""Seconds after which every client asks the daemon again."""

STEPS = (-5.0, 60.0 - HOUR, 55.0 - HOUR)
"""By what UTC is off: from three of the kills on, spread over all of them.

Together less than an hour, for further ahead than that the order of steady ids begins again.
"""

FORWARD = [
    pytest.param((3, False), id="3 kills"),
    pytest.param((20, False), id="20 kills", marks=pytest.mark.thorough),
]
"""Storms in which UTC goes on."""

BACKWARD = [
    pytest.param((3, True), id="3 kills and steps back"),
    pytest.param((10, True), id="10 kills and steps back", marks=pytest.mark.thorough),
]


class Storm(NamedTuple):
    """What each process drew by our client, and by the standard library; and the daemon's node."""

    clients: list[list[Drawn]]
    stdlib: list[list[Drawn]]
    node: int

    def is_daemons(self, v1: Drawn) -> bool:
        """Tell whether a v1 has the node of the daemon."""
        return v1.id % (1 << 48) == self.node


@pytest.fixture(scope="module", params=FORWARD + BACKWARD)
def storm(
    request: pytest.FixtureRequest,
    session_time: FakeTime,
    tmp_path_factory: pytest.TempPathFactory,
) -> Storm:
    """What libuuid does without the daemon where UTC is set back is its own matter."""
    kills, back = request.param
    if not back:
        need_root()
    session_time.set(0)
    moments, folder = dice(), tmp_path_factory.mktemp("storm")
    environment = session_time.environment if back else {}
    daemon = (
        Daemon("--worker=5", environment=environment) if back else far_reaching(REACH, "--worker=5")
    )
    steps = {kills * number // 3: offset for number, offset in enumerate(STEPS)} if back else {}
    ways = ["leases", "blocks"] * (CLIENTS // 2) + ["stdlib"] * (0 if back else STDLIB)
    drawers = [
        Holder(
            daemon.socket, folder / str(n), environment=environment, way=way, kinds=KINDS, list=10
        )
        for n, way in enumerate(ways)
    ]
    with daemon, contextlib.ExitStack() as running:
        for drawer in drawers:
            running.enter_context(drawer)
        for kill in range(kills):
            if kill in steps:
                session_time.set(steps[kill])
            elif not kill:
                # Of each timeline; the next daemon grants none for as long as these may last.
                until(lambda: leases(daemon)["out"] >= CLIENTS // 2, 3 * PATIENCE)
            for drawer in drawers:
                drawer.more(100)
            # A random moment of what they do.
            threading.Event().wait(moments.uniform(0, 0.2))
            daemon.kill()
            # So that some are drawn without it, however fast it starts.
            for drawer in drawers:
                drawer.more(20)
            daemon.start()
            threading.Event().wait(BACK)
        for drawer in drawers:
            drawer.more(2000)
        status = daemon.call("status")
        running.close()
        daemon.stop()
    assert (status["steady"]["lead"] > 3000) == back
    assert not [line for line in daemon.lines if "Traceback" in line or "ERROR" in line]
    drawn = [drawer.drawn() for drawer in drawers]
    return Storm(drawn[:CLIENTS], drawn[CLIENTS:], int(status["node"], 16))


def test_no_id_comes_twice_and_each_kind_is_in_order(storm: Storm) -> None:
    assert_sound(storm.clients, utc_set_back=True)
    assert_no_id_twice(
        [each.id for each in some if each.is_v1] for some in storm.clients + storm.stdlib
    )
    assert [{each.kind for each in some} for some in storm.clients] == [set(KINDS)] * CLIENTS


def test_what_came_from_the_daemon_is_marked_safe_and_nothing_else_is(storm: Storm) -> None:
    """The daemon's v1, known by its node, are the ones that our client marks."""
    v1 = [each for some in storm.clients for each in some if each.is_v1]
    assert any(each.safe for each in v1)
    assert [each for each in v1 if storm.is_daemons(each) != each.safe] == []


def test_both_the_daemon_and_the_fallback_gave_ids(storm: Storm) -> None:
    """Ids went on while the daemon was down, and came from it again.

    The node of a Flake tells which it was. A v1 may come from a lease even while it is down.
    """
    flakes = [each.id for some in storm.clients for each in some if each.kind == "flake"]
    nodes = {kinds.fields("flake", id)["node"] for id in flakes}
    assert len(nodes) > 1
    assert storm.node in nodes


@pytest.mark.parametrize("storm", FORWARD, indirect=True, scope="module")
def test_libuuid_has_ids_of_the_last_daemon(storm: Storm) -> None:
    assert any(storm.is_daemons(each) for some in storm.stdlib for each in some[-1000:])
