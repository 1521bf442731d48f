from __future__ import annotations

from dataclasses import replace

import pytest

from hive_replication.events.files import FileRef
from hive_replication.load.replica.state import CHECKPOINT
from hive_replication.metastore.types import (
    FieldSchema,
    Partition,
    PrincipalType,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)
from hive_replication.verify.compare import MOST_DIFFERENCES, Comparer, Listed, Pair

SOURCE, TARGET = "hdfs://source:8020", "hdfs://target:8020"


def never(source: FileRef, target: FileRef) -> bool:
    raise AssertionError(f"{source} and {target} need not be read")


COMPARER = Comparer([f"{SOURCE}/"], [f"{TARGET}/"], never)


def descriptor(root: str, below: str = "", *columns: str, **serde: str) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(name=name, type="int") for name in columns or ("id",)],
        location=f"{root}/warehouse/t{below}",
        inputFormat="Text",
        outputFormat="Text",
        serdeInfo=SerDeInfo(serializationLib="Lazy", parameters=serde),
        bucketCols=[],
        sortCols=[],
    )


def table(root: str, *, kind: str = "MANAGED_TABLE", sd: StorageDescriptor | None = None, **parameters: str) -> Table:
    return Table(tableName="t", dbName="d", tableType=kind, sd=sd or descriptor(root), partitionKeys=[], parameters=parameters)


def partition(root: str, value: str, *columns: str) -> Partition:
    return Partition(values=[value], sd=descriptor(root, f"/ds={value}", *columns), parameters={})


def file(root: str, name: str, checksum: str = "abc", subdir: str = "") -> FileRef:
    return FileRef(f"{root}/warehouse/t/{name}", checksum, "", subdir)


def compared(source: Table, target: Table, *, comparer: Comparer = COMPARER) -> tuple[str, ...]:
    return comparer.table("t", [Pair("", Listed(source, ()), Listed(target, ()))]).differences


def test_an_equal_table_is_proven_file_by_file() -> None:
    pairs = [Pair("", Listed(table(SOURCE), ()), Listed(table(TARGET, **{"repl.last.id": "7", "numFiles": "2"}), ()))]
    for day in ("1", "2"):
        files = [(file(root, "a"), file(root, "b", "def", "sub")) for root in (SOURCE, TARGET)]
        pairs.append(
            Pair(f"ds={day}", *(Listed(partition(root, day), refs) for root, refs in zip((SOURCE, TARGET), files, strict=True)))
        )
    found = COMPARER.table("t", pairs)
    assert (found.partitions_source, found.partitions_target) == (2, 2)
    assert (found.files_source, found.files_target, found.files_proven) == (4, 4, 4)
    assert found.differences == ()


def test_every_difference_of_files_is_told() -> None:
    read: list[tuple[str, str]] = []

    def same(source: FileRef, target: FileRef) -> bool:
        read.append((source.name, target.name))
        return source.name == "odd"

    ours = (
        file(SOURCE, "same"),
        file(SOURCE, "odd", "1"),
        file(SOURCE, "other", "1"),
        file(SOURCE, "new"),
        file(SOURCE, "n", "", "x"),
    )
    theirs = (
        file(TARGET, "same"),
        file(TARGET, "odd", "2"),
        file(TARGET, "other", "2"),
        file(TARGET, "old"),
        file(TARGET, "n", "", "y"),
    )
    comparer = Comparer([SOURCE], [TARGET], same)
    found = comparer.table("t", [Pair("", Listed(table(SOURCE), ours), Listed(table(TARGET), theirs))])
    assert found.differences == (
        "file new is on the source only",
        "file x/n is on the source only",
        "file old is on the target only",
        "file y/n is on the target only",
        "file other has other content",
    )
    assert found.files_proven == 2
    assert read == [("odd", "odd"), ("other", "other")]


def test_files_without_a_checksum_are_read() -> None:
    comparer = Comparer([SOURCE], [TARGET], lambda *_: False)
    pair = Pair("", Listed(table(SOURCE), (file(SOURCE, "a", ""),)), Listed(table(TARGET), (file(TARGET, "a", ""),)))
    assert comparer.table("t", [pair]).differences == ("file a has other content",)


def test_objects_on_one_side_only_are_told_and_their_files_counted() -> None:
    here = Listed(partition(SOURCE, "1"), (file(SOURCE, "a"),))
    there = Listed(partition(TARGET, "2"), (file(TARGET, "a"), file(TARGET, "b")))
    found = COMPARER.table("t", [Pair("", Listed(table(SOURCE), ()), None), Pair("ds=1", here, None), Pair("ds=2", None, there)])
    assert found.differences == (
        "the table is on the source, not on the target",
        "partition ds=1 is on the source, not on the target",
        "partition ds=2 is on the target, not on the source",
    )
    assert (found.partitions_source, found.partitions_target, found.files_source, found.files_target) == (1, 1, 1, 2)


def test_many_differences_are_counted() -> None:
    found = COMPARER.table(
        "t", [Pair(f"ds={n}", Listed(partition(SOURCE, str(n)), ()), None) for n in range(MOST_DIFFERENCES + 5)]
    )
    assert len(found.differences) == MOST_DIFFERENCES + 1
    assert found.differences[-1] == "and 5 more differences"


@pytest.mark.parametrize(
    ("target", "difference"),
    [
        (table(TARGET, kind="EXTERNAL_TABLE"), "type is 'EXTERNAL_TABLE' on the target, 'MANAGED_TABLE' on the source"),
        (table(TARGET, sd=descriptor(TARGET, "", "id", "x")), "columns is 'id int, x int' on the target, 'id int' on the source"),
        (table(TARGET, comment="x"), "parameter comment is 'x' on the target, absent on the source"),
        (table(TARGET, sd=descriptor(TARGET, sep="|")), "serde parameter sep is '|' on the target, absent on the source"),
    ],
)
def test_a_difference_of_schema_names_both_sides(target: Table, difference: str) -> None:
    assert compared(table(SOURCE), target) == (difference,)


def test_partitions_keep_their_own_columns() -> None:
    pair = Pair("ds=1", Listed(partition(SOURCE, "1", "a"), ()), Listed(partition(TARGET, "1", "a", "b"), ()))
    assert COMPARER.table("t", [pair]).differences == (
        "partition ds=1: columns is 'a int, b int' on the target, 'a int' on the source",
    )


@pytest.mark.parametrize(
    "key",
    [
        "impala.lastComputeStatsTime",
        "impala.events.catalogVersion",
        "impala_intermediate_stats_num_chunks",
        "impala_intermediate_stats_chunk0",
        "STATS_GENERATED_VIA_STATS_TASK",
    ],
)
def test_statistics_of_impala_on_one_side_are_no_difference(key: str) -> None:
    for here, there in (({}, {key: "7"}), ({key: "7"}, {}), ({key: "7"}, {key: "8"})):
        for name, ours, theirs in (
            ("", table(SOURCE), table(TARGET)),
            ("ds=1", partition(SOURCE, "1"), partition(TARGET, "1")),
        ):
            ours.parameters, theirs.parameters = here, there
            assert COMPARER.table("t", [Pair(name, Listed(ours, ()), Listed(theirs, ()))]).differences == ()


def test_what_hive_4_makes_of_managed_tables_is_no_difference() -> None:
    made = {"EXTERNAL": "TRUE", "external.table.purge": "TRUE", "TRANSLATED_TO_EXTERNAL": "TRUE"}
    assert compared(table(SOURCE), table(TARGET, kind="EXTERNAL_TABLE", **made)) == ()
    assert compared(table(SOURCE), table(TARGET, EXTERNAL="TRUE")) != ()


@pytest.mark.parametrize(
    ("target", "place"),
    [
        (table(SOURCE), "location"),
        (table(TARGET, sd=descriptor(TARGET, path=f"{SOURCE}/warehouse/t")), "serde parameter path"),
        (table(TARGET, **{"avro.schema.url": f"{SOURCE}/schemas/t.avsc"}), "parameter avro.schema.url"),
        (table(TARGET, jars=f"{TARGET}/a.jar,{SOURCE.upper()}/b.jar"), "parameter jars"),
    ],
)
def test_nothing_on_the_target_points_at_the_source(target: Table, place: str) -> None:
    found = [difference for difference in compared(table(SOURCE), target) if "points to the source" in difference]
    assert len(found) == 1
    assert found[0].startswith(f"{place} points to the source: ")


def test_directories_of_skewed_values_do_not_lie_at_the_source() -> None:
    """Where `hive.optimize.listbucketing` is on, queries of such values read them alone."""

    def skewed(root: str, values: str) -> Partition:
        made = partition(root, "1")
        made.sd.skewedInfo = SkewedInfo(["a", "b"], [["1", "2"]], {("1", "2"): f"{values}/warehouse/t/ds=1/a=1/b=2"})
        return made

    for values, told in (
        (TARGET, ()),
        (SOURCE, (f"directory of skewed values 1, 2 points to the source: {SOURCE}/warehouse/t/ds=1/a=1/b=2",)),
    ):
        pair = Pair("ds=1", Listed(skewed(SOURCE, SOURCE), ()), Listed(skewed(TARGET, values), ()))
        assert COMPARER.table("t", [pair]).differences == tuple(f"partition ds=1: {one}" for one in told)


def test_what_a_table_is_skewed_by_is_compared() -> None:
    """A replica that had missed it was equal for ``verify``, repairs and recoveries."""

    def skewed(root: str, *values: str, directories: bool = False) -> Table:
        sd = descriptor(root)
        places = {(value,): f"{root}/warehouse/t/id={value}" for value in values} if directories else {}
        sd.skewedInfo, sd.storedAsSubDirectories = SkewedInfo(["id"], [[value] for value in values], places), directories
        return table(root, sd=sd)

    none = table(TARGET)
    none.sd.skewedInfo = SkewedInfo([], [], {})  # as some metastores write it
    assert compared(table(SOURCE), none) == ()
    assert compared(skewed(SOURCE, "1", "2"), skewed(TARGET, "2", "1")) == ()
    assert compared(skewed(SOURCE, "1", directories=True), skewed(TARGET, "1", directories=True)) == ()
    differing = ((table(TARGET), "''"), (skewed(TARGET, "2"), "\"['id'] on [['2']]\""))
    for replica, shown in differing:
        told = f"skewed by is {shown} on the target, \"['id'] on [['1']]\" on the source"
        assert compared(skewed(SOURCE, "1"), replica) == (told,)
    assert len(compared(skewed(SOURCE, "1", directories=True), skewed(TARGET, "1"))) == 1


def test_the_dump_of_a_bootstrap_may_lie_at_the_source() -> None:
    """As after a failback, when the dump root of both directions is on one of the sides."""
    assert compared(table(SOURCE), table(TARGET, **{CHECKPOINT: f"{SOURCE}/repl/dumps/sales/1"})) == ()


@pytest.mark.parametrize("uri", ["/schemas/t.avsc", "hdfs:///schemas/t.avsc"])
def test_schemas_that_name_no_store_are_others_on_the_target(uri: str) -> None:
    theirs = table(TARGET, **{"avro.schema.url": f"{TARGET}/t.avsc"})
    assert compared(table(SOURCE, **{"avro.schema.url": uri}), theirs) == ()
    assert len(compared(table(SOURCE, note="/schemas/t.avsc"), table(TARGET, note="x"))) == 1


def test_paths_of_the_source_are_others_on_the_target() -> None:
    ours = table(SOURCE, sd=descriptor(SOURCE, path=f"{SOURCE}/warehouse/t"), **{"avro.schema.url": f"{SOURCE}/t.avsc"})
    theirs = table(TARGET, sd=descriptor(TARGET, path=f"{TARGET}/warehouse/t"), **{"avro.schema.url": f"{TARGET}/t.avsc"})
    assert compared(ours, theirs) == ()
    assert compared(ours, table(TARGET, sd=descriptor(TARGET, path=f"{TARGET}/warehouse/t"))) == (
        f"parameter avro.schema.url is absent on the target, '{SOURCE}/t.avsc' on the source",
    )


@pytest.mark.parametrize(
    "texts",
    [
        {"comment": f"see {SOURCE}/landing"},
        {"comment": f"({SOURCE}/landing)"},
        {"notes": f"exported from {SOURCE}/landing/x"},
        {"spark.sql.sources.schema.part.0": f'{{"comment":"({SOURCE}/a)"}}'},
    ],
)
def test_a_text_that_mentions_a_path_of_the_source_stays_as_it_is(texts: dict[str, str]) -> None:
    """Loads copy it, and no load or repair would remove the difference; of another text nobody knows what it says."""
    assert compared(table(SOURCE, **texts), table(TARGET, **texts)) == ()
    others = {key: value.replace("landing", "old").replace("/a", "/b") for key, value in texts.items()}
    (differs, points) = compared(table(SOURCE, **texts), table(TARGET, **others))
    assert " on the target, " in differs
    assert "points to the source: " in points


@pytest.mark.parametrize(
    "paths", [{"comment": f"{SOURCE}/landing/x y"}, {"jars": f"{TARGET}/a.jar,{SOURCE}/b.jar"}, {"dir": f"{SOURCE}/a b"}]
)
def test_a_path_of_the_source_on_both_sides_is_no_text(paths: dict[str, str]) -> None:
    assert len(compared(table(SOURCE, **paths), table(TARGET, **paths))) == 1


def test_columns_whose_comments_mention_a_path_are_compared() -> None:
    """A path in one of them hid all that differed."""

    def commented(root: str, kind: str) -> Table:
        return table(
            root, sd=StorageDescriptor(cols=[FieldSchema("a", kind, f"from {SOURCE}/x")], location=f"{root}/warehouse/t")
        )

    assert compared(commented(SOURCE, "int"), commented(TARGET, "int")) == ()
    assert compared(commented(SOURCE, "int"), commented(TARGET, "string"))[0].startswith('columns is "a string ')


def test_content_that_differs_is_told_from_metadata() -> None:
    pairs = [
        Pair("", Listed(table(SOURCE, comment="x"), ()), Listed(table(TARGET), ())),
        Pair("ds=1", Listed(partition(SOURCE, "1"), (file(SOURCE, "a"),)), Listed(partition(TARGET, "1"), ())),
        Pair("ds=2", Listed(partition(SOURCE, "2"), ()), None),
        Pair("ds=3", Listed(partition(SOURCE, "3"), ()), Listed(partition(TARGET, "3", "other"), ())),
    ]
    found = COMPARER.table("t", pairs)
    assert (found.repairs, found.content) == (("", "ds=1", "ds=2", "ds=3"), ("ds=1", "ds=2"))
    rebuilt = Pair("", Listed(table(SOURCE), (), write_id=3), Listed(table(TARGET), (), write_id=2))
    assert COMPARER.table("t", [rebuilt]).content == ("",)


def test_a_stale_path_of_spark_is_a_difference() -> None:
    ours = table(SOURCE, sd=descriptor(SOURCE, path=f"{SOURCE}/warehouse/t/"))
    theirs = table(TARGET, sd=descriptor(TARGET, path=f"{TARGET}/warehouse/old"))
    assert compared(ours, theirs) == (f"serde parameter path is {TARGET}/warehouse/old, location is {TARGET}/warehouse/t",)


def test_a_target_root_below_a_source_root_is_the_target() -> None:
    comparer = Comparer(["hdfs://one:8020/"], ["hdfs://one:8020/replica/"], never)
    assert compared(table("hdfs://one:8020"), table("hdfs://one:8020/replica"), comparer=comparer) == ()
    assert "location points to the source" in compared(table("hdfs://one:8020"), table("hdfs://one:8020"), comparer=comparer)[0]
    assert compared(table("hdfs://one:80"), table("hdfs://one:8020"), comparer=Comparer(["hdfs://one:80/"], [], never)) == ()


def test_a_partition_that_both_sides_lack_is_no_difference() -> None:
    """One that was named, and dropped on both sides since."""
    found = COMPARER.table("t", [Pair("", Listed(table(SOURCE), ()), Listed(table(TARGET), ())), Pair("ds=1", None, None)])
    assert (found.differences, found.repairs) == ((), ())


def test_owners_are_those_that_the_policy_gives_them() -> None:
    """Of an earlier metastore the kind is not known; what the policy maps are users."""

    def owned(root: str, owner: str | None, kind: int | None = None) -> Table:
        made = table(root)
        made.owner, made.ownerType = owner, kind
        return made

    comparer = replace(COMPARER, owners={"ann": "anna"})
    user, role = PrincipalType.USER, PrincipalType.ROLE
    for ours, theirs in (
        ((None, None), ("", user)),
        (("bob", None), ("bob", user)),
        (("ann", user), ("anna", None)),
        (("ann", role), ("ann", role)),
    ):
        assert compared(owned(SOURCE, *ours), owned(TARGET, *theirs), comparer=comparer) == ()
    found = compared(owned(SOURCE, "ann", user), owned(TARGET, "ann", user), comparer=comparer)
    assert found == ("owner is 'ann' on the target, 'anna' on the source",)
    found = compared(owned(SOURCE, "ann", role), owned(TARGET, "ann", user), comparer=comparer)
    assert found == ("owner is 'ann' on the target, 'role ann' on the source",)


@pytest.mark.parametrize(
    ("source", "target", "files", "differs"),
    [(3, 0, False, False), (3, 0, True, True), (3, 2, False, True), (0, 3, False, True), (3, 3, True, False)],
)
def test_write_ids_that_a_source_kept_of_a_dropped_table_are_no_difference(
    source: int, target: int, *, files: bool, differs: bool
) -> None:
    """Hive keeps them where it does not delete the files; loads forget them, so the new table of the name begins anew."""
    ours, theirs = ((file(root, "delta_0000001_0000001/a"),) if files else () for root in (SOURCE, TARGET))
    pair = Pair(
        "", Listed(table(SOURCE), ours, transactional=True, write_id=source), Listed(table(TARGET), theirs, write_id=target)
    )
    found = COMPARER.table("t", [pair]).differences
    assert found == ((f"write ids go up to {target} on the target, {source} on the source",) if differs else ())
