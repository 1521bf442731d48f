"""Names and specs of assets, and what is known of the source when definitions load.

Keep out of here: calls of the engine.
"""
