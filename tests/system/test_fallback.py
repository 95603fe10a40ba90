"""Ids that programs made while the daemon was away are seen when it is back."""

from __future__ import annotations

import os
from uuid import SafeUUID

import pytest

from tests.rig import Daemon, until
from uuidd_client import Client
from uuidd_client.command import metrics, panel

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_the_next_daemon_shows_how_many_ids_were_made_without_it() -> None:
    with Daemon() as daemon, Client(daemon.socket, max_age=0) as client:
        ids = [client.uuid1()]

        def is_served() -> bool:
            ids.append(client.uuid1())
            return ids[-1].is_safe is SafeUUID.safe

        daemon.kill()
        while len(ids) < 100:
            assert not is_served()
        daemon.start()
        until(is_served)
        for _ in range(100):
            assert is_served()
        status = daemon.call("status")
    count = sum(id.is_safe is SafeUUID.unknown for id in ids)
    assert status["fallback"]["ids"] == {str(os.getuid()): count}
    screen = panel.draw(status, None, width=100, coloured=False)
    assert f"fallback     {count} ids made without the daemon, most by uid {os.getuid()}" in screen
    sample = f'uuidd_fallback_ids_total{{uid="{os.getuid()}"}} {count}.0'
    assert sample in metrics.text(status).splitlines()
