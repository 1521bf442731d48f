"""Names of directories on the target: everything below ``<database>/.repl`` and ``repl-<evid>-<n>``; and moving old data there.

Keep out of here: imports of other parts of ``load``.
"""
