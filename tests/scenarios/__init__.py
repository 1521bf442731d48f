"""Scenarios of Hive's own replication tests (release 4.1), each as a named test: ``test_s<number>_<name>``.

The numbers are those of a catalogue of Hive's tests; ``catalogue.py`` lists the ones that concern tables without transactions,
and those that are about something only Hive has. A dump here carries no data, so what Hive tests on data staged by the dump is
shown where the data moves: in the load.
"""
