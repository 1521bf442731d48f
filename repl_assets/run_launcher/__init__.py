"""How runs get their process: as forks of one that has the definitions already.

Belongs here: the run launcher that ``dagster.yaml`` names, and the process that it forks.

Keep out of here: what a run does (``repl_assets.steps``), and when one starts (``sensors``).
"""

from repl_assets.run_launcher.launcher import ForkingRunLauncher

__all__ = ["ForkingRunLauncher"]
