"""``uuidd`` as on a kernel without SO_PASSRIGHTS: ``python -m tests.system.older_kernel``."""

from __future__ import annotations

import sys

from uuidd.cli import main
from uuidd.server import descriptors

if __name__ == "__main__":
    # An option that no kernel has: it can neither be set nor be asked for.
    descriptors.SO_PASSRIGHTS = 0x7FFF
    sys.exit(main())
