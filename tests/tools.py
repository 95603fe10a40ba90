"""Other programs that tests need."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import socket
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest

from tests.rig import PATIENCE, until
from uuidd.refused import Refused


def need(program: str) -> str:
    """Return the path of *program*. Without it a test is skipped; in CI (env CI) it fails."""
    path = shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if path is None:
        _lacks(f"{program} is not installed")
    return path


def need_their_uuidd() -> str:
    """Return the path of util-linux's uuidd, as ``need``; PATH may have ours, which is named so."""
    path = "/usr/sbin/uuidd"
    return path if os.access(path, os.X_OK) else need("uuidd of util-linux")


def need_package(name: str) -> ModuleType:
    """Return a Python package by its name; as ``need``."""
    try:
        return importlib.import_module(name)
    except ImportError:
        _lacks(f"the Python package {name} is not installed")


def need_compiler() -> str:
    """Return the path of a C compiler, beside which Python's headers are installed; as ``need``."""
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        _lacks("the headers of Python are not installed")
    return need("cc")


def need_root() -> None:
    """See to it that this is root. Otherwise a test is skipped; in CI (env CI) it fails.

    In CI's lane of an ordinary user (env CI_LANE) it is skipped too.
    """
    if os.geteuid() != 0:
        if os.environ.get("CI_LANE") == "user":
            pytest.skip("this is not root; CI runs the test in another lane")
        _lacks("this is not root")


def _lacks(what: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def run(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Return what a command says, as text, and its exit status.

    *options* are those of ``subprocess.run``. Unless they name another timeout, it is PATIENCE.
    """
    words = [str(word) for word in command]
    options = {"timeout": PATIENCE, "text": True, "check": False, **options}
    done: subprocess.CompletedProcess[str]
    done = subprocess.run(words, capture_output=True, **options)
    return done


def output(*command: object, **options: Any) -> str:
    """Return what a command says on standard output. The command has to succeed."""
    done = run(*command, **options)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}"
    return done.stdout


@contextlib.contextmanager
def holding(*command: object) -> Iterator[int]:
    """Run a command that holds something from its first line on; yield its process id.

    It ends with its standard input, which ends with the context.
    """
    words = [str(word) for word in command]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"\n"
        yield holder.pid


def refusal(act: Callable[..., object], *arguments: object, **named: object) -> str:
    """Return the one line with which *act* is refused."""
    with pytest.raises(Refused) as refused:
        act(*arguments, **named)
    (line,) = str(refused.value).splitlines()
    return line


def failing(number: int) -> Callable[..., Any]:
    """Return what fails with this error of the system, whatever it is called with."""

    def fail(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def kept_port() -> socket.socket:
    """Return a socket that keeps a port of 127.0.0.1 from all but a server with SO_REUSEADDR."""
    keeper = socket.socket()
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    keeper.bind(("127.0.0.1", 0))
    return keeper


def descriptors() -> list[str]:
    """Return the descriptors that are open here, without those that other tests have forgotten."""
    gc.collect()
    return os.listdir("/proc/self/fd")


def remove(folder: Path) -> None:
    """Remove a folder, but nothing that is mounted below it.

    Processes that were ended a moment ago may still write there.
    """
    words = ("rm", "-rf", "--one-file-system", folder)
    until(lambda: run(*words, timeout=6 * PATIENCE).returncode == 0)


def with_own_mounts(*command: object) -> list[str]:
    """Return a command that runs *command* where its mounts concern nobody else. It takes root."""
    need_root()
    return [need("unshare"), "-m", "--propagation", "private", *map(str, command)]


def in_private_mounts(*command: str) -> list[str]:
    """Return a command that runs *command* with /run/uuidd and /var/lib/libuuid of its own.

    libuuid's paths are compiled in; so what it does there touches nobody else. Both go away with
    the command.
    """
    mounts = "".join(
        f"mkdir -p {folder} && mount -t tmpfs uuidd-test {folder} && "
        for folder in ("/run/uuidd", "/var/lib/libuuid")
    )
    # libuuid's own user writes its clock file; a fresh tmpfs is open to all.
    return with_own_mounts("sh", "-c", f'{mounts}exec "$@"', "sh", *command)
