"""What a run connects to: metastores, storage, the dump store, the copier on Spark, channels of alarms.

Keep out of here: decisions about what to replicate, and imports of ``repl_assets``, ``sensors`` or ``demo``.
"""
