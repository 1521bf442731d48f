"""What a load would do, for people: its operations, files and bytes, how long it may take, as a table, Markdown or HTML.

Belongs here: figures and reports of a plan that ``load`` has made. Does not belong here: making or carrying out plans.
"""

from hive_replication.plans.report import PlanReport, plan_report
from hive_replication.plans.written import as_html, as_markdown, figures

__all__ = ["PlanReport", "as_html", "as_markdown", "figures", "plan_report"]
