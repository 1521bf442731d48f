"""Databases with more tables than Dagster shows well: one asset whose partitions are the tables."""

# No postponed annotations here: Dagster compares those of contexts as types.
import logging
from collections.abc import Sequence
from dataclasses import replace

import dagster as dg

from repl_assets.catalog import CatalogDatabase
from repl_assets.databases import load_pool
from repl_assets.keys import partition_name
from repl_assets.repairs import repair_table
from repl_assets.reporting import load_metadata
from repl_assets.specs import Specs
from repl_assets.work import Work
from repl_assets.worker import tag_run

_LOG = logging.getLogger("dagster")


def limited(databases: Sequence[CatalogDatabase], most: int) -> list[CatalogDatabase]:
    """Puts databases into overflow, so that at most so many tables have assets of their own: the largest ones first.

    Args:
        databases: with all their tables.
        most: tables of all databases together; 0 puts each of them into overflow.
    """
    chosen: dict[str, CatalogDatabase] = {}
    for database in sorted(databases, key=lambda one: len(one.tables)):
        number = len(database.tables)
        if number <= most:
            chosen[database.name] = database
            most -= number
        else:
            _LOG.warning(
                "the %d tables of %s are partitions of one asset, they are too many for assets of their own (max_tables)",
                number,
                database.name,
            )
            chosen[database.name] = replace(database, tables=(), overflow=number)
            most = 0
    return [chosen[database.name] for database in databases]


def tables_asset(specs: Specs, database: CatalogDatabase) -> dg.AssetsDefinition:
    """``<db>__tables``: materializing one of its partitions brings that table to the present state of the source."""
    names = specs.names

    @dg.multi_asset(
        name=names.local(f"{database.name}__tables"),
        specs=[specs.tables(database)],
        required_resource_keys={names.connection},
        pool=load_pool(names, database.name),
    )
    def tables(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        if not context.has_partition_key:
            raise dg.Failure("choose tables: each is a partition")
        tag_run(context)
        work = Work.of(getattr(context.resources, names.connection), context.log)
        table = partition_name(context.partition_key)
        report = repair_table(context.op_execution_context, work, names, database, table)
        return dg.MaterializeResult(
            metadata=load_metadata(report, names, database.name), data_version=dg.DataVersion(str(report.to_evid))
        )

    return tables
