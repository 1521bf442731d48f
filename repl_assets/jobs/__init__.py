"""Definitions of jobs.

Keep out of here: assets, and what a step does (``steps``).
"""
