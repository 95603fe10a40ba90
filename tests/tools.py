"""Other programs that tests need."""

from __future__ import annotations

import os
import shutil

import pytest


def need(program: str) -> str:
    """Return the path of *program*. Without it a test is skipped; in CI (env CI) it fails."""
    path = shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if path is None:
        missing = f"{program} is not installed"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return path


def need_root() -> None:
    """See to it that this is root. Otherwise a test is skipped; in CI (env CI) it fails."""
    if os.geteuid() != 0:
        if os.environ.get("CI"):
            pytest.fail("this is not root")
        pytest.skip("this is not root")


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
    return [
        "unshare",
        "-m",
        "--propagation",
        "private",
        "sh",
        "-c",
        f'{mounts}exec "$@"',
        "sh",
        *command,
    ]
