"""A check on the tests: the code is broken on purpose, and each time a test has to see it.

Run with ``python -m tests.mutations``.
"""
