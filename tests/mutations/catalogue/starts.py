"""What a start forgets."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

UTC = "uuidd/core/timeline/utc.py"
STEADY = "uuidd/core/timeline/steady.py"
STORE = "uuidd/store.py"
FILE = "uuidd/statefile.py"
MACHINE = "uuidd/machine.py"
EPOCHS = "uuidd/core/timeline/epochs.py"
STARTING = "uuidd/server/startup.py"
PIDFILE = "uuidd/server/pidfile.py"
PIDFILE_TESTS = ("tests/daemon/test_pidfile.py",)

MUTATIONS = [
    Mutation(
        "reload-checks-no-start",
        "what the next start refuses passes a reload",
        "uuidd/cli/options.py",
        "        wrong = problems(settings(given, words), running=settings(begun, words))\n",
        "        wrong = []\n",
        ("tests/daemon/test_reload.py::test_a_bad_file_keeps_what_was",),
    ),
    Mutation(
        "service-fails-over-and-over",
        "a service that cannot start fills the log",
        "uuidd/scripts/uuidd",
        "        time.sleep(2)\n",
        "        pass\n",
        ("tests/daemon/test_scripts.py",),
    ),
    Mutation(
        "start-ignores-mark",
        "after a crash the same generation goes on",
        UTC,
        "        elif past > 0:",
        "        elif past > now:",
        ("tests/core/test_utc.py",),
    ),
    Mutation(
        "start-takes-foreign-state",
        "two hosts make ids of one node",
        MACHINE,
        'if "" not in (state.machine, machine) and state.machine != machine:',
        "if not state.machine:",
        ("tests/daemon/test_store.py",),
    ),
    Mutation(
        "start-takes-numbers-that-are-none",
        "a mark below zero or past all time is believed",
        FILE,
        "if type(value) is not int or not 0 <= value < 1 << bits:",
        "if type(value) is not int:",
        ("tests/daemon/test_store.py",),
    ),
    Mutation(
        "start-without-lock",
        "two daemons save over each other",
        STORE,
        "fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        ("tests/daemon/test_store.py",),
    ),
    Mutation(
        "start-forgets-lost-state",
        "a state that was deleted counts as none ever made",
        STORE,
        "self.lost = not self._unused",
        "self.lost = False",
        ("tests/daemon/test_store.py",),
    ),
    Mutation(
        "start-forgets-damaged-state",
        "a state that was set aside counts as none ever made",
        STORE,
        "            self.lost = True\n",
        "            self.lost = False\n",
        ("tests/daemon/test_store.py",),
    ),
    Mutation(
        "start-tells-steady-of-no-loss",
        "after a lost state steady ids come again",
        STARTING,
        "lost=store.lost,",
        "lost=False,",
        ("tests/daemon/test_process.py::test_a_state_that_is_gone_holds_steady_back",),
    ),
    Mutation(
        "start-without-hold",
        "after a lost state steady ids come again",
        STEADY,
        "now + LOST_SECONDS * TICKS_PER_SECOND if mark is None and lost else 0",
        "0",
        ("tests/core/test_steady.py",),
    ),
    Mutation(
        "start-steady-at-utc",
        "after a crash steady ids come again",
        STEADY,
        "begin = mark if mark is not None else max(now, self.held_until)",
        "begin = now if mark is not None else max(now, self.held_until)",
        ("tests/core/test_steady.py",),
    ),
    Mutation(
        "start-steady-without-mark",
        "steady's mark is saved, and not read",
        STARTING,
        "None if loaded is None else loaded.steady,",
        "None,",
        ("tests/daemon/test_process.py::test_a_start_far_ahead_adds_nothing_to_its_lead",),
    ),
    Mutation(
        "start-without-first-save",
        "ids are given past a horizon that no disk has",
        STARTING,
        "        store.save(state)\n",
        "        pass\n",
        ("tests/daemon/test_survivors.py",),
    ),
    Mutation(
        "start-takes-pid-file-of-a-living-daemon",
        "of two daemons only one is in the pid file, and its end removes the other's",
        PIDFILE,
        "fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        "pass",
        PIDFILE_TESTS,
    ),
    Mutation(
        "stop-removes-anothers-pid-file",
        "the next daemon's pid file is gone",
        PIDFILE,
        "if os.path.samestat(os.fstat(fd), os.lstat(path)):",
        "if os.lstat(path):",
        PIDFILE_TESTS,
    ),
    Mutation(
        "start-keeps-node-of-unknown-host",
        "hosts made from one image make ids of one node",
        UTC,
        "same = not loaded.node.fixed and loaded.machine == machine",
        "same = not loaded.node.fixed",
        ("tests/core/test_utc.py",),
    ),
    Mutation(
        "start-with-a-later-epoch",
        "Snowflakes of the past come again",
        EPOCHS,
        "    if epoch > earliest:\n",
        "    if epoch > earliest + 1000:\n",
        ("tests/core/test_epochs.py",),
    ),
    Mutation(
        "start-forgets-the-epoch",
        "a later epoch is noticed by nobody",
        STARTING,
        "worker=settings.worker, epoch=settings.epoch, epochs=epochs",
        "worker=settings.worker, epoch=settings.epoch",
        ("tests/daemon/test_epochs.py",),
    ),
    Mutation(
        "failed-start-leaves-its-lock",
        "after a first start that failed steady ids are held back for 20 s",
        STORE,
        "        if self._unused:\n            self._remove_lock()\n",
        "",
        ("tests/daemon/test_store.py",),
    ),
]
