from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tools import refusal
from uuidd import systemd
from uuidd.systemd import inherited_kernel_log, inherited_socket

FD = 200
"""Stands for the first descriptor that systemd passes, which is in use here."""


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Pass descriptors as systemd does, until the end of the test."""
    monkeypatch.setattr(systemd, "FIRST_FD", FD)

    def passed(*descriptors: int, **variables: str) -> None:
        for number, fd in enumerate(descriptors, FD):
            os.dup2(fd, number)
            os.close(fd)
        variables = {"PID": str(os.getpid()), "FDS": "1", "FDNAMES": "", **variables}
        for name, value in variables.items():
            monkeypatch.setenv(f"LISTEN_{name}", value)
            if not value:
                monkeypatch.delenv(f"LISTEN_{name}")

    yield passed
    for fd in (FD, FD + 1):
        with contextlib.suppress(OSError):
            os.close(fd)


def unix(
    path: Path, kind: int = socket.SOCK_STREAM, *, bound: bool = True, listens: bool = True
) -> int:
    """Return the descriptor of a Unix socket."""
    sock = socket.socket(socket.AF_UNIX, kind)
    if bound:
        sock.bind(str(path))
    if listens:
        sock.listen()
    return sock.detach()


@pytest.mark.parametrize(
    ("fds", "names", "log"),
    [("1", "uuidd.socket", None), ("1", "", None), ("2", "uuidd.socket:kmsg", FD + 1)],
)
def test_a_listening_socket_is_served_and_the_kernels_log_is_told_from_it_by_its_name(
    place: Path, passed: Callable[..., None], fds: str, names: str, log: int | None
) -> None:
    passed(unix(place / "s"), os.open(os.devnull, os.O_RDONLY), FDS=fds, FDNAMES=names)
    with inherited_socket() as served, socket.socket(socket.AF_UNIX) as caller:
        assert (served.fileno(), served.getsockname()) == (FD, str(place / "s"))
        assert not served.get_inheritable()
        assert inherited_kernel_log() == log
        assert os.get_inheritable(FD + 1) == (log is None)
        caller.connect(str(place / "s"))
        served.accept()[0].close()


ONE = "exactly one socket is served (see uuidd.socket)"


OTHERS = (
    "no socket was passed (LISTEN_PID is not ours); start through uuidd.socket, or without"
    " --socket-activation"
)


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        *(("PID", pid, OTHERS) for pid in ("", "1", "x")),
        *(
            ("FDS", fds, f"LISTEN_FDS is {fds!r}; {ONE}")
            for fds in ("", "0", "2", "01", "x", "9" * 12)
        ),
    ],
)
def test_other_variables_than_of_one_socket_are_refused(
    place: Path, passed: Callable[..., None], name: str, value: str, line: str
) -> None:
    passed(unix(place / "s"), **{name: value})
    assert refusal(inherited_socket) == line
    os.fstat(FD)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: unix(path, socket.SOCK_DGRAM, listens=False),
        lambda path: unix(path, bound=False, listens=False),
        lambda path: unix(path, listens=False),
        lambda _: socket.create_server(("127.0.0.1", 0)).detach(),
        lambda path: os.open(path, os.O_CREAT | os.O_RDWR),
        None,
    ],
    ids=["datagram", "unbound", "bound", "inet", "file", "nothing"],
)
def test_another_descriptor_is_refused_and_left_open(
    place: Path, passed: Callable[..., None], make: Callable[[Path], int] | None
) -> None:
    passed(*([] if make is None else [make(place / "s")]))
    assert refusal(inherited_socket) == (
        f"descriptor {FD}, passed by systemd, is not a listening Unix stream socket; use"
        " ListenStream= with a path"
    )
    if make is not None:
        os.fstat(FD)
