"""The commands of ``hive-repl``, one module per verb; ``cli.command_table`` has their names.

Keep out of here: imports of the rest of the library at the top of a module (commands import it when they run), and formatting
that several commands share (``cli``).
"""
