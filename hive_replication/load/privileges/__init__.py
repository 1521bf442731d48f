"""Grants and roles of the metastore, which it writes no events of: compared with the source's after a load, or by hand.

What is to be granted and revoked is found by ``compare`` (pure), from what both metastores answer; ``replicate`` reads that,
carries it out, and looks what came of it.

Keep out of here: the calls (``metastore.privileges``), and access to files (``apply.directory_access``).
"""
