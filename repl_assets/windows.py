"""What the steps of a window share: the window, its dump, the engine."""

# No postponed annotations here: Dagster compares those of contexts as types.
import dagster as dg

from repl_assets.keys import Names, Window
from repl_assets.work import Work
from repl_assets.worker import tag_run


def work_of(context: dg.AssetExecutionContext | dg.OpExecutionContext, names: Names) -> Work:
    """The engine for a step, whose run is tagged with its process."""
    tag_run(context)
    return Work.of(getattr(context.resources, names.connection), context.log)


def window_of(context: dg.AssetExecutionContext) -> Window:
    """The window that is materialized.

    Raises:
        Failure: there is none.
    """
    if not context.has_partition_key:
        raise dg.Failure("choose one window, a partition such as 170-1400 or bootstrap-170")
    try:
        return Window.parse(context.partition_key)
    except ValueError as error:
        raise dg.Failure(str(error)) from error


def dump_of(context: dg.AssetExecutionContext, key: dg.AssetKey, window: str) -> dg.AssetMaterialization:
    """The window's newest dump: of this run, or of the run that this one repeats.

    Raises:
        Failure: there is none.
    """
    found = context.instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=key, asset_partitions=[window]), limit=1
    ).records
    made = found[0].asset_materialization if found else None
    if made is None:
        raise dg.Failure(f"the window {window} has no dump yet: materialize {key.to_user_string()} too")
    return made
