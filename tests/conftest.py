"""What all tests share.

Hypothesis profiles: ``ci`` is repeatable and looks longer, ``dev`` draws anew each time.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("dev", deadline=None, max_examples=100)
settings.register_profile("ci", deadline=None, max_examples=300, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# For clients that are told no other, here and in the processes that tests start: a daemon on a busy
# machine is slow, and not silent.
os.environ["UUIDD_TIMEOUT"] = "20"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in the background of a shell that is no terminal's. Processes that tests start would ignore
    # it too, and some are to be ended by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
