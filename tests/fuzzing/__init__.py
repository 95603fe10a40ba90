"""A fuzzer of all that reads what others send or leave behind. Run ``python -m tests.fuzzing``.

Theory of operation

1. A *target* takes any bytes, hands them to the code, and names what came of it: ``ok``, or a named
   error. Any other exception, a property that does not hold, a hang, or memory without bound is a
   failure.
2. Inputs are mutations of a small corpus of valid messages: of their bytes, and of the values that
   they are made of. They repeat with the seed. The order in which trio's tasks run does not.
3. A failure is shrunk to the smallest input that fails the same way.
"""
