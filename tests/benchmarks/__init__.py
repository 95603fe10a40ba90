"""Benchmarks: ``python -m tests.benchmarks``. pytest collects nothing here.

Speed swings with the machine and with what else runs on it. So both sides of a comparison take
turns in rounds, and there are several runs of several rounds. README.md says how to run them.
"""
