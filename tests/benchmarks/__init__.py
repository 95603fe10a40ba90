"""Benchmarks: ``python -m tests.benchmarks``. They are no tests, and pytest collects none of them.

Every comparison is the median of the ratios of one run in which both sides took turns, for times
swing with the machine and with what else it does.
"""
