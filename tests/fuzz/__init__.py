"""Mutated inputs for everything that is read from outside: ``make fuzz``, or ``python -m tests.fuzz --inputs N --seed S``.

Each input is read, and a dump also planned against a recorded target. It may be refused with one of this project's errors, or
accepted. It may not end in a traceback, take more than 300 MB of memory or 2 s, change the target, or be accepted where a digest
shows that it is not what was written.
"""
