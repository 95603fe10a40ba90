"""A kernel of Debian that reports clones: an amd64 one, for a machine of QEMU."""

from __future__ import annotations

import subprocess
from pathlib import Path

SUITE = "trixie"
"""The first with Linux 6.8, which reports a new vmgenid. Its kernel for clouds has no vmgenid."""

SOURCES = (
    "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    f" http://deb.debian.org/debian {SUITE} main\n"
)

PACKAGE = "linux-image-amd64"


def fetched(folder: Path) -> Path:
    """Download the kernel into *folder*; return the path of its image.

    What is set up on this system, such as its own sources of packages, is left alone.
    """
    lists, cache = folder / "lists", folder / "cache"
    for each in (lists, cache):
        (each / "partial").mkdir(parents=True)
        (each / "archives" / "partial").mkdir(parents=True)
    sources = folder / "sources.list"
    sources.write_text(SOURCES)
    options = [
        f"Dir::Etc::sourcelist={sources}",
        "Dir::Etc::sourceparts=/dev/null",
        f"Dir::State::lists={lists}",
        f"Dir::Cache={cache}",
        "APT::Architecture=amd64",
        "APT::Sandbox::User=root",
        "Acquire::Languages=none",
    ]

    def apt(command: str, *words: str) -> str:
        return subprocess.run(
            [command, "-qq", *(f"-o{option}" for option in options), *words],
            cwd=folder,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout

    apt("apt-get", "update")
    # The package that is named depends on that of the newest version.
    depends = apt("apt-cache", "depends", PACKAGE).split()
    apt("apt-get", "download", next(word for word in depends if word.startswith("linux-image-6")))
    (package,) = folder.glob("linux-image-*.deb")
    subprocess.run(["dpkg-deb", "-x", package, folder / "kernel"], check=True)
    (image,) = (folder / "kernel" / "boot").glob("vmlinuz-*")
    return image
