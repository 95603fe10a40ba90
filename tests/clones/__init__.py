"""Clones of a real virtual machine: which ids come in both. Run with ``python -m tests.clones``.

A machine of QEMU runs the daemon and programs that draw ids (``guest``). It is stopped, written to
a file, and resumed twice, as a hypervisor does with a snapshot (``machine``). The ids of both
clones are read from their serial ports and compared (``comparing``).
"""
