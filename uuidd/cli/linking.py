"""Links in /usr/local to what an environment of uuidd's own has: commands, manual, completion."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PLACE = "usr/local"

LINKS = (
    "bin/uuidd",
    "bin/uuidctl",
    "share/man/man8/uuidd.8",
    "share/man/man1/uuidctl.1",
    "share/bash-completion/completions/uuidd",
    "share/bash-completion/completions/uuidctl",
    "share/zsh/site-functions/_uuidd",
    "share/zsh/site-functions/_uuidctl",
    "share/fish/vendor_completions.d/uuidd.fish",
    "share/fish/vendor_completions.d/uuidctl.fish",
)
"""Where shells and man(1) look below /usr/local, before /usr.

The environment has the same paths.
"""


def put(prefix: Path, environment: Path) -> Iterator[str]:
    """Link to what *environment* has, and give a line on each; raises OSError.

    A link of an earlier environment is replaced; whatever else is there is left, and told of.
    """
    for name in LINKS:
        path, target = prefix / PLACE / name, environment / name
        if not target.exists() or (path.exists() and path.samefile(target)):
            # An editable installation has no manual; one in /usr/local needs no links.
            continue
        if _is_ours(path, name):
            path.unlink()
        elif path.exists() or path.is_symlink():
            yield f"left {path}, which is no link to an environment of uuidd's"
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
        yield f"linked {path} to {target}"


def take(prefix: Path) -> Iterator[str]:
    """Take the links away again, and give a line on each; raises OSError."""
    for name in LINKS:
        path = prefix / PLACE / name
        if _is_ours(path, name):
            path.unlink()
            yield f"took away {path}"


def _is_ours(path: Path, name: str) -> bool:
    """Whether it is a link to the same path below an environment, be that there or not."""
    return path.is_symlink() and os.readlink(path).endswith(f"/{name}")
