"""What a step of a run does with the engine, shared by assets, checks and jobs.

Keep out of here: definitions.
"""
