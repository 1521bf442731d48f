"""The window of a run, and its dump."""

# No postponed annotations here: Dagster compares those of contexts as types.
import dagster as dg

from repl_assets.catalog.keys import Window


def window_of(context: dg.AssetExecutionContext) -> Window:
    """The window that the run materializes.

    Raises:
        Failure: no window is chosen, or the partition key is none.
    """
    if not context.has_partition_key:
        raise dg.Failure("choose one window, a partition such as 170-1400 or bootstrap-170")
    try:
        return Window.parse(context.partition_key)
    except ValueError as error:
        raise dg.Failure(str(error)) from error


def dump_of(context: dg.AssetExecutionContext, key: dg.AssetKey, window: str) -> dg.AssetMaterialization:
    """The latest dump of the window: of this run, or of the run that this one retries.

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
