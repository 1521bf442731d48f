"""Names of directories on the target: everything below ``<database>/.repl`` and ``repl-<evid>-<n>``, and where old data goes.

Keep out of here: imports of other parts of ``load``.
"""
