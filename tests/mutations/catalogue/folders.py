"""What of the state's file and folder is not checked."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

STORE = "uuidd/store.py"
FILE = "uuidd/statefile.py"
SAVER = "uuidd/server/saver.py"
ISSUER = "uuidd/server/allocator.py"
STARTING = "uuidd/server/startup.py"
TESTS = ("tests/daemon/test_store.py",)
MISPLACED = ("tests/daemon/test_misplaced.py",)

MUTATIONS = [
    Mutation(
        "checksum-not-checked",
        "a state with a bit flipped is believed",
        FILE,
        'if words[2] != f"sha256:{digest(body)}":',
        'if not words[2].startswith("sha256:"):',
        TESTS,
    ),
    Mutation(
        "format-not-checked",
        "a newer daemon's state is misread",
        FILE,
        "if words[1] not in map(str, range(EARLIEST_FORMAT, FORMAT + 1)):",
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
    Mutation(
        "save-by-path",
        "a daemon whose folder was moved saves over another's state",
        STORE,
        "os.rename(_NEW, _STATE, src_dir_fd=folder, dst_dir_fd=folder)",
        "os.rename(f'/proc/self/fd/{folder}/{_NEW}', self.folder / _STATE)",
        MISPLACED,
    ),
    Mutation(
        "save-in-a-folder-that-is-gone",
        "a daemon whose folder was moved goes on beside another",
        STORE,
        "        if misplaced := self.misplaced():\n            raise OSError(misplaced)\n",
        "",
        MISPLACED,
    ),
    Mutation(
        "request-without-look",
        "a daemon whose folder was moved gives ids for 20 s beside another",
        ISSUER,
        "            self._saver.look(at.elapsed)\n",
        "            pass\n",
        MISPLACED,
    ),
    Mutation(
        "look-voids-nothing",
        "a daemon whose folder was moved gives ids for 20 s beside another",
        SAVER,
        "            self._timelines.void_saves()\n",
        "",
        MISPLACED,
    ),
    Mutation(
        "look-counts-though-gone",
        "a save that was under way lets a daemon go on beside another",
        SAVER,
        "            self.look_at = 0\n            self.trouble",
        "            self.look_at = elapsed + int(SURE_SECONDS * TICKS_PER_SECOND)\n"
        "            self.trouble",
        MISPLACED,
    ),
    Mutation(
        "start-without-wait",
        "a daemon gives what another, whose folder was moved, still gives",
        STARTING,
        "    select.select((), (), (), SURE_SECONDS)\n",
        "",
        MISPLACED,
    ),
]
