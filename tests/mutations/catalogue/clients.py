"""What a client makes ids of, and what it says of them."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "block-deadline-not-checked-at-draw",
        "ids are drawn from a block that is too old, or a parent's",
        "Client.factory.draw",
        "begin <= clock() < deadline[0]",
        "deadline",
        ("test_fast_paths", "test_forks"),
    ),
    Mutation(
        "block-deadline-not-checked-at-iteration",
        "ids of an iterator are drawn from a block that is too old, or a parent's",
        "Client.iter.draw",
        "begin <= now < deadline[0]",
        "deadline",
        ("test_fast_paths", "test_forks"),
    ),
    Mutation(
        "block-deadline-not-checked-at-refill",
        "ids are made from a block that is too old",
        "Supply._have",
        "self._first < self._end and self._counts()",
        "self._first < self._end",
        ("test_supply", "test_steady_supply"),
    ),
    Mutation(
        "block-age-from-its-end",
        "the first ids of a block lag by more than max_age",
        "Supply._fetch",
        "begin + self._max_age - age",
        "begin + self._max_age",
        ("test_supply", "test_steady_supply"),
    ),
    Mutation(
        "block-outlives-a-step-back-at-draw",
        "v1 ids are of the future after UTC stepped back",
        "Client.factory.draw",
        "begin <= clock() < deadline[0]",
        "clock() < deadline[0]",
        ("test_spans",),
    ),
    Mutation(
        "block-outlives-a-step-back-at-iteration",
        "v1 ids of an iterator are of the future after UTC stepped back",
        "Client.iter.draw",
        "begin <= now < deadline[0]",
        "now < deadline[0]",
        ("test_spans",),
    ),
    Mutation(
        "block-outlives-a-step-back-at-refill",
        "v1 ids made at once are of the future after UTC stepped back",
        "Supply._counts",
        "self._begin <= utc() < self._deadline[0]",
        "utc() < self._deadline[0]",
        ("test_spans",),
    ),
    Mutation(
        "random-ids-wait-for-good",
        "a core dump holds the next secrets, and a clone of the machine repeats them",
        "Supply._fetch",
        "self._span(begin, begin + self._max_age)",
        'self._span(begin, float("inf"))',
        ("test_spans",),
    ),
    Mutation(
        "many-random-ids-wait",
        "a core dump holds the next thousand secrets",
        "Supply.run",
        "LONG_RUNS[form] if self._timeline else RANDOM_RUN",
        "LONG_RUNS[form]",
        ("test_spans",),
    ),
    Mutation(
        "waiting-for-a-block-is-lack-of-demand",
        "on a busy host blocks stay small, and most time goes into requests",
        "Supply._fetch",
        """
        asked = self._demand.size(..., ..., asked_at)
        block, from_daemon = self._take(asked)
        self._demand.came(elapsed())
        """,
        """
        asked = self._demand.size(..., ..., asked_at)
        block, from_daemon = self._take(asked)
        self._demand.came(asked_at)
        """,
        ("test_supply", "test_steady_supply", "test_demand"),
    ),
    Mutation(
        "burst-sized-by-its-last-block",
        "each burst of ids costs more than one round trip",
        "Demand.size",
        "self._burst + used",
        "used",
        ("test_demand", "test_bursts"),
    ),
    Mutation(
        "warning-names-the-client",
        "a user is told of a missing daemon, and not where his program asked for one",
        "_warn",
        "_callers_level()",
        "2",
        ("test_fallback",),
    ),
    Mutation(
        "function-without-its-name",
        "uuid7 cannot be the default of a field of Django, nor be sent to a pool of processes",
        "_named",
        "draw.__module__, draw.__name__, draw.__qualname__ = (__name__, name, name)",
        "draw.__module__ = __name__",
        ("test_public",),
    ),
    Mutation(
        "client-pickled-without-wait",
        "a client that does not wait does so in another process",
        "Client.__reduce__",
        "partial(type(self), wait=self._wait)",
        "type(self)",
        ("test_public",),
    ),
    Mutation(
        "module-names-sought-at-exit",
        "a program with a hook for exceptions ends with a traceback",
        "Stream.is_there",
        "self._fstat(self.fileno())",
        "os.fstat(self.fileno())",
        ("test_a_process_ends_without_a_word",),
    ),
    Mutation(
        "safe-mark-on-all",
        "ids made without a daemon are marked safe",
        "safety",
        "SafeUUID.safe if from_daemon else SafeUUID.unknown",
        "SafeUUID.safe",
        ("test_supply", "test_steady_supply"),
    ),
    Mutation(
        "safe-mark-on-fallback",
        "ids made without a daemon are marked safe",
        "Source.take",
        "return found, False",
        "return found, True",
        ("test_source",),
    ),
    Mutation(
        "runs-overlap",
        "two runs hold the same ids",
        "Supply._cut",
        """
        ids = self._ids(form, count)
        self._first += count
        """,
        "ids = self._ids(form, count)",
        ("test_supply", "test_steady_supply"),
    ),
    Mutation(
        "run-taken-back-while-drawn-from",
        "an id that another thread has just drawn is made again",
        "Supply._take_back",
        "not self._recipe.random and left[0] not in self._ids(self._out_form, 1)",
        "not left",
        ("test_supply", "test_steady_supply"),
    ),
    Mutation(
        "larger-block-accepted",
        "a client uses what another daemon never gave",
        "Connection._checked",
        "block.count > count",
        "block.count > 1_000_000",
        ("test_survivors",),
    ),
    Mutation(
        "larger-libuuid-block-accepted",
        "a client uses what util-linux's daemon never reserved",
        "Connection._take_by_libuuid",
        "min(block.count, asked)",
        "block.count",
        ("client.test_connection",),
    ),
    Mutation(
        "response-to-another-msgid-accepted",
        "one block is taken for two requests' answer",
        "Connection._exchange",
        "response.msgid != self._msgid",
        "response.msgid < 0",
        ("client.test_connection",),
    ),
    Mutation(
        "line-kept-after-interrupt",
        "the answer to a broken-off request is the next one's",
        "Connection._exchange",
        """
        if self._unanswered is None:
            self.close()
        """,
        "",
        ("client.test_connection",),
    ),
    Mutation(
        "fallback-steady-not-past-used",
        "steady ids of the fallback are those of the daemon again",
        "Source.take_steady",
        "self._reached.tick",
        "0",
        ("test_source",),
    ),
    Mutation(
        "fallback-of-each-session-its-own",
        "steady ids fall when a signal handler draws where there is no daemon",
        "Source.take_steady",
        "here()",
        "type(here())()",
        ("test_source",),
    ),
    Mutation(
        "fallback-loses-a-handlers-change",
        "a signal handler and what it interrupted get the same ticks",
        "_Shared.change",
        'link.after.setdefault("next", following) is following',
        'link.after.setdefault("next", following)',
        ("test_in_process",),
    ),
    Mutation(
        "fallback-shared-with-child",
        "a child without a daemon goes on under its parent's node",
        "here",
        """
        while not found.alive[0]:
            ...
        """,
        """
        while not found:
            ...
        """,
        ("test_in_process",),
    ),
    Mutation(
        "frozen-clock-is-waited-for",
        "a v1 without a daemon hangs where a test has frozen the clock",
        "StandIn.take.give",
        "waited >= STILL or now <= utc.still",
        "False",
        ("test_in_process",),
    ),
    Mutation(
        "fallback-never-lets-go",
        "one id drawn at a time far ahead leaves all later ones there",
        "StandIn.take_steady.give",
        "end - now > MAX_LEAD",
        "end < now",
        ("test_in_process",),
    ),
    Mutation(
        "floor-never-let-go",
        "a client that was far ahead never uses the daemon again",
        "Source._take_later",
        "reached - end > MAX_LEAD",
        "reached < 0",
        ("test_source",),
    ),
    Mutation(
        "daemon-steady-not-past-used",
        "steady ids fall when the daemon is back",
        "Source._take_later",
        "max(block.first, reached)",
        "block.first",
        ("test_source",),
    ),
    Mutation(
        "daemon-behind-is-used",
        "steady ids fall when a daemon that lost its state is back",
        "Source._take_later",
        "end <= reached",
        "end < 0",
        ("test_source",),
    ),
    Mutation(
        "reached-forgotten",
        "steady ids fall between daemon and fallback",
        "Source.take_steady",
        "reached.tick = end",
        "",
        ("test_source",),
    ),
    Mutation(
        "snowflake-without-worker",
        "a host without a number makes Snowflakes",
        "Supply._take",
        "block.worker is None",
        "block.worker == -1",
        ("test_supply", "test_steady_supply"),
    ),
    Mutation(
        "snowflake-by-fallback",
        "a process without a daemon tries to make Snowflakes",
        "Supply._take",
        'self._source.take_steady(count, fallback=self._kind != "snowflake")',
        "self._source.take_steady(count, fallback=True)",
        ("test_supply", "test_steady_supply"),
    ),
    Mutation(
        "blocks-without-a-place-are-asked-for-without-an-end",
        "a broken daemon holds a caller for good",
        "Supply._have",
        """
        for _ in range(MOST_EMPTY):
            ...
        """,
        """
        while True:
            ...
        """,
        ("test_supply", "test_steady_supply"),
    ),
    Mutation(
        "node-may-change-without-an-end",
        "a broken daemon holds a caller for a minute",
        "Supply._fetch",
        "self._nodes > MOST_NODES",
        "False",
        ("test_supply", "test_steady_supply"),
    ),
    Mutation(
        "older-block-not-trimmed",
        "v1 ids fall from block to block",
        "Supply._have",
        "self._first = last_used + 1",
        "",
        ("test_supply", "test_steady_supply"),
    ),
    Mutation(
        "another-node-in-the-same-run",
        "steady ids fall when the node changes",
        "Supply._fetch",
        "self._not_before = self._end - 1 + recipe.room(self._end - 1)",
        "",
        ("test_supply", "test_steady_supply"),
    ),
    Mutation(
        "fallback-without-consent",
        "ids are made without a daemon where that was forbidden",
        "may_fall_back",
        'bool(wanted) and os.environ.get("UUIDD_FALLBACK") != "0"',
        "bool(wanted)",
        ("test_environment",),
    ),
    Mutation(
        "stand-in-node-is-fixed",
        "two processes without a daemon make the same ids",
        "_random_bits",
        'int.from_bytes(os.urandom((count + 7) // 8), "big") >> -count % 8',
        "0",
        ("test_survivors",),
    ),
    Mutation(
        "closed-descriptor-taken-for-line",
        "a program's own file is written to, or closed",
        "Stream.is_there",
        "(found.st_dev, found.st_ino) == self._identity",
        "found.st_dev >= 0",
        ("test_fallback",),
    ),
    Mutation(
        "line-is-left-to-the-collector",
        "a program that turns warnings into errors is warned of a socket that is no leak",
        "uuidd_client.stream.Stream",
        "def __del__(self) -> None: ...",
        "def unused(self) -> None: ...",
        ("client.test_connection",),
    ),
    Mutation(
        "half-made-line-is-not-closed",
        "each Ctrl-C in a connect costs a descriptor",
        "Stream.hang_up",
        """
        if self._identity is None and descriptor >= 0:
            ...
        """,
        "",
        ("client.test_connection",),
    ),
    Mutation(
        "want-of-descriptors-gets-through",
        "a program without a descriptor left gets an OSError where it had a fallback",
        "Connection._open",
        """
        try:
            sock = Stream()
        except OSError as error:
            ...
        """,
        """
        try:
            sock = Stream()
        except TimeoutError as error:
            ...
        """,
        ("client.test_connection",),
    ),
    Mutation(
        "signal-ends-the-connect",
        "a signal during a connect makes a line of what is none",
        "Stream.reach",
        """
        if elapsed() >= deadline:
            raise TimeoutError from None
        """,
        "raise OSError from None",
        ("client.test_connection",),
    ),
    Mutation(
        "ours-taken-for-util-linuxs",
        "each block of v1 from our own daemon costs a connection for a minute",
        "Connection.take",
        """
        if self._closes_on_rpc:
            ...
        """,
        """
        if True:
            ...
        """,
        ("client.test_connection",),
    ),
    Mutation(
        "trickle-is-read-for-ever",
        "who sends byte after byte holds a caller past its time-out",
        "Connection._receive",
        "left <= 0",
        "left <= -1e9",
        ("client.test_connection",),
    ),
    Mutation(
        "older-block-outlives-a-handler",
        "ids after a signal handler's are below them",
        "_Channel.in_turn",
        "self._give_up()",
        "",
        ("test_client",),
    ),
]
