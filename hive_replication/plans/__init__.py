"""Reports of a planned load: its operations, files, bytes and estimated time, as tables, Markdown or HTML.

Belongs here: figures and formatting of a plan made by ``load``, and its approval.

Keep out of here: making plans (``load.plan``) and carrying them out (``load.apply``).
"""

from hive_replication.plans.markdown_and_html import as_html, as_markdown, figures
from hive_replication.plans.plan_report import PlanReport, plan_report

__all__ = ["PlanReport", "as_html", "as_markdown", "figures", "plan_report"]
