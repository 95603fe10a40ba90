from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.tools import run

pytestmark = pytest.mark.process

CHILD = """
import os, socket, sys
from uuidd.refused import Refused
from uuidd.systemd import inherited_kernel_log, inherited_socket

kind, pid, fds, names, folder = sys.argv[1:]
path = folder + "/s"
unix, inet, stream, datagram = (
    socket.AF_UNIX, socket.AF_INET, socket.SOCK_STREAM, socket.SOCK_DGRAM
)
if kind == "file":
    passed = os.open(path, os.O_CREAT | os.O_RDWR)
elif kind == "nothing":
    passed = -1
else:
    family = inet if kind == "inet" else unix
    sock = socket.socket(family, datagram if kind == "datagram" else stream)
    if kind == "inet":
        sock.bind(("127.0.0.1", 0))
    elif kind != "unbound":
        sock.bind(path)
    if kind in ("good", "inet"):
        sock.listen()
    passed = sock.detach()
if passed >= 0 and passed != 3:
    os.dup2(passed, 3)
if passed < 0:
    os.closerange(3, 4)
else:
    os.set_inheritable(3, True)
if pid != "unset":
    os.environ["LISTEN_PID"] = str(os.getpid()) if pid == "own" else pid
if fds != "unset":
    os.environ["LISTEN_FDS"] = fds
if names:
    os.dup2(2, 4)
    os.environ["LISTEN_FDNAMES"] = names
try:
    served = inherited_socket()
except Refused as error:
    print(error)
    served = None
if served is None:
    if passed >= 0:
        os.fstat(3)
else:
    log = inherited_kernel_log()
    more = [] if log is None else ["and", log]
    print(served.fileno(), served.getsockname() == path, served.get_inheritable(), *more)
    served.setblocking(False)
    caller = socket.socket(unix)
    caller.connect(path)
    served.accept()
"""


def inherit(folder: Path, kind: str, *, pid: str = "own", fds: str = "1", names: str = "") -> str:
    """Return the line that a process says about what it was passed as descriptor 3.

    It fails, and so does the test, if a descriptor that was refused is no longer open.
    """
    quiet = ("-W", "ignore::ResourceWarning")
    done = run(sys.executable, *quiet, "-c", CHILD, kind, pid, fds, names, folder)
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    return line


@pytest.mark.parametrize(
    ("fds", "names", "more"),
    [("1", "uuidd.socket", ""), ("1", "", ""), ("2", "uuidd.socket:kmsg", " and 4")],
)
def test_a_listening_socket_is_served_and_the_kernels_log_is_told_from_it_by_its_name(
    place: Path, fds: str, names: str, more: str
) -> None:
    assert inherit(place, "good", fds=fds, names=names) == f"3 True False{more}"


OTHERS = (
    "no socket was passed (LISTEN_PID is not ours); start through uuidd.socket, or without"
    " --socket-activation"
)
COUNTS = ["0", "2", "01", "x", "9" * 12]
ONE = "exactly one socket is served (see uuidd.socket)"
UNFIT = "descriptor 3 is not a listening Unix stream socket; use ListenStream= with a path"


@pytest.mark.parametrize(
    ("kind", "pid", "fds", "line"),
    [
        *(("good", pid, "1", OTHERS) for pid in ("unset", "1", "x")),
        *(("good", "own", fds, f"LISTEN_FDS is {fds!r}; {ONE}") for fds in COUNTS),
        ("good", "own", "unset", f"LISTEN_FDS is ''; {ONE}"),
        *((kind, "own", "1", UNFIT) for kind in ("datagram", "unbound", "bound", "inet")),
        ("file", "own", "1", "descriptor 3, passed by systemd, is not a socket"),
        ("nothing", "own", "1", "descriptor 3, passed by systemd, is not a socket"),
    ],
)
def test_anything_else_is_refused(place: Path, kind: str, pid: str, fds: str, line: str) -> None:
    assert inherit(place, kind, pid=pid, fds=fds) == line
