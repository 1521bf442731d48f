"""Definitions of assets.

Keep out of here: jobs, checks, and what a step does (``steps``).
"""
