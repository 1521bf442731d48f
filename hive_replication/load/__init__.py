"""REPL LOAD and REPL STATUS: applies a dump to the target.

A load goes through ``plan`` (what to do), ``journal`` (what is about to change), ``apply`` (doing it) and ``records`` (what is
kept of it). ``undo`` goes back, ``retention`` removes old data, ``replica`` knows the target, ``layout`` names its directories.

Belongs here: one load from statement to report (``command``), the two kinds of dump (``window``, ``bootstrap``), the context of a
load (``session``), and what protects the target before anything is planned.

Keep out of here: reading the source's objects (``dump``), copying one file (``copy``), and direct writes to the target: these
belong in ``operations`` and ``apply``.
"""
