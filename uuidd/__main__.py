"""``python -m uuidd``."""

from __future__ import annotations

import sys

from uuidd.cli import main

if __name__ == "__main__":
    sys.exit(main())
