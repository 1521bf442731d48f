"""Reports of a planned load: its operations, files, bytes and estimated time, as tables, Markdown or HTML.

Belongs here: figures and formatting of a plan made by ``load``, and its approval.

Keep out of here: making plans (``load.plan``) and carrying them out (``load.apply``).
"""

from hive_replication.plans.report import PlanReport, plan_report
from hive_replication.plans.written import as_html, as_markdown, figures

__all__ = ["PlanReport", "as_html", "as_markdown", "figures", "plan_report"]
