"""The core's tests: pure, without clock, disk or network."""
