"""Turns reports of dumps and loads into Dagster's metadata and events.

Keep out of here: definitions of assets and jobs.
"""
