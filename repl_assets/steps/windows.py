"""The window of a run, its dump, and whether it may be loaded now."""

# No postponed annotations here: Dagster compares those of contexts as types.
import dagster as dg

from repl_assets.catalog.keys import KIND_TAG, Window
from repl_assets.recording.metadata import text_of
from repl_assets.steps.engine import Engine, as_dagster_failure

#: After the database's name, how the failure of a run begins that found it paused: an operator's wish, and no alarm.
PAUSED = "was paused"


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
        Failure: there is none, or what was reported by hand in its place names none.
    """
    found = context.instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=key, asset_partitions=[window]), limit=1
    ).records
    made = found[0].asset_materialization if found else None
    if made is None or not text_of(made.metadata, "directory"):
        raise dg.Failure(f"the window {window} has no dump yet: materialize {key.to_user_string()} too")
    return made


def refuse_paused(context: dg.AssetExecutionContext, engine: Engine, database: str) -> None:
    """Lets a run of a sensor load nothing of a database that was paused since, as while the run waited in Dagster's queue.

    Nor one that executes such a run again, which has its tags.

    Raises:
        Failure: it is paused.
    """
    if KIND_TAG not in context.run.tags:  # an operator loads by hand what he has paused
        return
    with as_dagster_failure():
        paused = engine.state(database).paused
    if paused:
        again = f"once it is resumed (hive-repl resume {database}), the sensor asks for this window again"
        by_hand = f"to load it now, materialize the window's partition of {database}__load"
        raise dg.Failure(f"{database} {PAUSED} {paused}, before this load began: {again}; {by_hand}", allow_retries=False)
