"""``uuidctl renew``, for the hooks of what restores machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.conftest import Uuidctl
from tests.client.fakes import Server, refused
from tests.rig import Daemon


@pytest.mark.process
def test_renew_says_what_it_did(uuidctl: Uuidctl) -> None:
    """A second one within 10 s is joined with the next that is saved."""
    with Daemon() as daemon:
        assert uuidctl("renew", socket=daemon.socket) == (0, "renewed, 0 leases ended\n", "")
        assert uuidctl("renew", socket=daemon.socket) == (
            0,
            "renewed, 0 leases ended; the state is saved within 10 s\n",
            "",
        )


def test_a_user_who_may_not_renew_gets_one_line(tmp_path: Path, uuidctl: Uuidctl) -> None:
    path = tmp_path / "s"
    with Server(path, lambda request: refused(request, "not_permitted: renew is for root")):
        status, out, err = uuidctl("renew", socket=path)
    assert (status, out) == (1, "")
    assert err.startswith("uuidctl: ")
    assert "renew is for root" in err
    assert err.count("\n") == 1
