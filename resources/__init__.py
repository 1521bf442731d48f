"""What a run connects to: metastores, storage, the dump store, the PySpark copier; ``embedded`` has real servers for tests.

Does not belong here: decisions about what to replicate.
"""
