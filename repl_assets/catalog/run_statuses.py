"""Statuses of finished runs, and of others; when a run ended."""

from __future__ import annotations

import dagster as dg

FAILED_STATUSES = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
FINISHED_STATUSES = [dg.DagsterRunStatus.SUCCESS, *FAILED_STATUSES]
NOT_FINISHED_STATUSES = [status for status in dg.DagsterRunStatus if status not in FINISHED_STATUSES]


def ended(record: dg.RunRecord) -> float:
    """When a finished run ended, seconds since the epoch."""
    return record.end_time or record.update_timestamp.timestamp()
