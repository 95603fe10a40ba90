"""What of the state's file and folder is not checked."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

STORE = "uuidd/store.py"
TESTS = ("tests/daemon/test_store.py",)

MUTATIONS = [
    Mutation(
        "checksum-not-checked",
        "a state with a bit flipped is believed",
        STORE,
        'if words[2] != f"sha256:{_digest(body)}":',
        'if not words[2].startswith("sha256:"):',
        TESTS,
    ),
    Mutation(
        "format-not-checked",
        "a newer daemon's state is misread",
        STORE,
        "if words[1] != str(FORMAT):",
        "if not words[1]:",
        TESTS,
    ),
    Mutation(
        "folder-owner-not-checked",
        "another user can give the daemon old marks",
        STORE,
        "if found.st_uid not in (0, own):",
        "if found.st_uid < 0:",
        TESTS,
    ),
    Mutation(
        "folder-mode-not-checked",
        "anybody can give the daemon old marks",
        STORE,
        "if found.st_mode & 0o022:",
        "if found.st_mode & 0o002:",
        TESTS,
    ),
    Mutation(
        "set-aside-over-another",
        "a state that was set aside before is deleted",
        STORE,
        "            number += 1\n",
        "            break\n",
        TESTS,
    ),
]
