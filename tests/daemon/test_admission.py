from __future__ import annotations

import os
import socket
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.daemon.test_acceptor import Listener
from tests.rig import Daemon
from tests.tools import need, need_root
from uuidd.server.admission import Admission
from uuidd.server.peers import outsiders_uid, peer_uid
from uuidd.server.settings import Limits

OWN, USER, OTHER = 990, 1000, 1001


@pytest.fixture
def admission() -> Admission:
    """Room for five connections, two of one user."""
    return Admission(Limits(connections=5, connections_per_uid=2), own_uid=OWN)


def enter(admission: Admission, *uids: int) -> list[bool]:
    """Try to let connections in, and give which found room."""
    found = []
    for uid in uids:
        found.append(not admission.refusal(uid))
        if found[-1]:
            admission.enter(Mock(uid=uid, refusal=""))
    return found


def leave(admission: Admission, uid: int) -> None:
    """Let a connection of a user end."""
    admission.leave(next(client for client in admission.open if client.uid == uid))


@pytest.mark.parametrize(
    ("uids", "let_in"),
    [
        ((USER, USER, USER, OTHER, OTHER), [True, True, False, True, True]),
        ((0,) * 6, [True] * 5 + [False]),
        ((OWN,) * 6, [True] * 5 + [False]),
    ],
    ids=["each user", "root", "the daemon's user"],
)
def test_each_user_but_root_and_the_daemons_has_a_limit_of_its_own(
    admission: Admission, uids: tuple[int, ...], let_in: list[bool]
) -> None:
    assert enter(admission, *uids) == let_in


def test_of_a_single_connection_none_is_kept() -> None:
    admission = Admission(Limits(connections=1), own_uid=OWN)
    assert enter(admission, USER, USER) == [True, False]


def test_users_outside_of_a_user_namespace_are_not_exempt() -> None:
    """Not even if the daemon has the uid that stands for all of them."""
    admission = Admission(Limits(connections_per_uid=1), own_uid=65534, outsiders=65534)
    assert enter(admission, 65534, 65534, 0, 0) == [True, False, True, True]


def test_the_user_with_the_most_may_lose_connections(admission: Admission) -> None:
    enter(admission, 0, 0, USER)
    assert admission.largest(OTHER)[1] == 0
    enter(admission, 0)
    assert admission.largest(OTHER) == (0, 2)
    assert admission.largest(USER) == (0, 1)
    leave(admission, 0)
    enter(admission, USER)
    assert admission.largest(USER) == (USER, 0)


@pytest.mark.parametrize("uid", [0, OWN])
@pytest.mark.parametrize("others", [(), (USER, USER, OTHER)], ids=["alone", "with others"])
def test_root_and_the_daemons_user_make_room_for_themselves(
    admission: Admission, uid: int, others: tuple[int, ...]
) -> None:
    enter(admission, *others, *[uid] * (5 - len(others)))
    assert admission.largest(uid) == (uid, 1)


@pytest.mark.parametrize("uid", [0, OWN])
def test_one_connection_is_kept_for_root_and_the_daemons_user(
    admission: Admission, uid: int
) -> None:
    """However many users have taken all others, an administrator can ask what is wrong."""
    assert enter(admission, *range(USER, USER + 5)) == [True] * 4 + [False]
    assert admission.refusal(USER) == (
        "4 connections are open, and the last one is kept for root and uuidd's own user; try again"
        " later"
    )
    assert enter(admission, uid, uid) == [True, False]


def test_a_refusal_names_what_is_full(admission: Admission) -> None:
    enter(admission, USER, USER)
    assert admission.refusal(USER) == (
        "uid 1000 has 2 connections open, the most one user may have; share one, or close some"
    )
    enter(admission, 0, 0, 0)
    assert (
        admission.refusal(USER) == "5 connections are open, the most there may be; try again later"
    )


def test_a_connection_that_ends_makes_room(admission: Admission) -> None:
    enter(admission, USER, USER, OTHER, 0)
    leave(admission, OTHER)
    assert enter(admission, USER) == [False]
    leave(admission, USER)
    assert enter(admission, USER, USER) == [True, False]
    assert enter(admission, OTHER, 0, 0) == [True, True, False]
    leave(admission, 0)
    assert (len(admission.open), admission.highest) == (4, 5)


@pytest.mark.parametrize("uid", [4343, 4_000_000_000])
def test_another_peers_user_is_known(uid: int) -> None:
    """Whose uid may need all 32 bits, as in a user namespace, or of a directory of many users."""
    # Nobody else can become somebody else.
    need_root()
    with Listener() as listener, socket.socket(socket.AF_UNIX) as caller:
        os.setegid(4242)
        os.seteuid(uid)
        try:
            caller.connect(listener.getsockname())
        finally:
            os.seteuid(0)
            os.setegid(0)
        with listener.accept()[0] as accepted:
            assert peer_uid(accepted) == uid


@pytest.mark.parametrize(
    ("mapped", "overflow", "expected"),
    [
        ("         0          0 4294967295\n", "65534\n", None),
        ("         0       1000          1\n", "65534\n", 65534),
        ("         0       1000          1\n         1     100000      65536\n", "4242\n", 4242),
        ("         0       1000          1\n", None, 65534),
        (None, None, None),
    ],
)
def test_users_outside_of_a_user_namespace_have_one_uid(
    tmp_path: Path, mapped: str | None, overflow: str | None, expected: int | None
) -> None:
    """There are none if all uids are mapped; a host may choose the uid."""
    files = {"map": mapped, "overflow": overflow}
    for name, text in files.items():
        if text is not None:
            (tmp_path / name).write_text(text)
    assert outsiders_uid(tmp_path / "map", tmp_path / "overflow") == expected


@pytest.mark.process
def test_a_daemon_in_a_user_namespace_warns() -> None:
    def inside(*command: str) -> list[str]:
        return [need("unshare"), "--user", "--map-root-user", *command]

    with Daemon(wrap=inside) as daemon:
        (line,) = [line for line in daemon.lines if "in a user namespace" in line]
        assert line.startswith("uuidd: WARNING: in a user namespace: users outside of it count as")
        assert line.endswith("uid=65534")
    with Daemon() as daemon:
        assert not [line for line in daemon.lines if "in a user namespace" in line]


@pytest.mark.process
def test_users_outside_of_a_user_namespace_may_not_renew() -> None:
    """Not even if the daemon has the uid that stands for all of them."""

    def inside(*command: str) -> list[str]:
        return [need("unshare"), "--user", *command]

    with Daemon(wrap=inside) as daemon, daemon.connect() as connection:
        _, _, error, _ = connection.ask("renew")
        assert error == "not_permitted: renew is for root, and this is uid 65534"
        assert connection.call("status")["clones"]["noticed"] == 0
