"""Measurements on real servers, apart from the tests: against real Hive (``make bench``), and of the console's pages.

Belongs here: workloads, runs of Hive's own commands and of this project on them, and reports. Does not belong here: tests of
correctness, and anything that production code uses.
"""
