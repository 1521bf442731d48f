"""Files in sub-directories of plain tables, as Hive's UNION ALL leaves them on Tez: two of them have one name."""

from __future__ import annotations

import pytest

from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


def union(warehouse: Warehouse, location: str, number: int) -> list[str]:
    """Writes a file for each branch of a UNION ALL."""
    files = [f"{location}/HIVE_UNION_SUBDIR_{number + branch}/000000_0" for branch in (0, 1)]
    for file in files:
        warehouse.connection.source.storage.write(file, f"{file}\n".encode())
    return files


def test_files_of_one_name_come_each_to_its_sub_directory(warehouse: Warehouse) -> None:
    source = warehouse.connection.source
    warehouse.sql("CREATE TABLE two (a STRING)", "CREATE TABLE parts (a STRING) PARTITIONED BY (ds STRING)")
    warehouse.replicate()
    database = source.metastore.database(warehouse.database)
    assert database is not None
    root = str(database.locationUri)
    files = union(warehouse, f"{root}/two", 1)
    sums = [source.storage.checksum(file) for file in files]
    values = [one.value for one in sums if one is not None]
    source.metastore.fire_insert_event(warehouse.database, "two", values=None, files=files, checksums=values, replace=False)
    union(warehouse, f"{root}/made", 1)
    union(warehouse, f"{root}/parts/ds=1", 1)
    for new in ("mixed", "parts/ds=2"):
        union(warehouse, f"{root}/{new}", 1)
        source.storage.write(f"{root}/{new}/000000_0", b"beside them\n")
    warehouse.sql(
        "CREATE TABLE made (a STRING)",
        "CREATE TABLE mixed (a STRING)",
        "ALTER TABLE parts ADD PARTITION (ds='1')",
        "ALTER TABLE parts ADD PARTITION (ds='2')",
        "ALTER TABLE two SET TBLPROPERTIES ('b'='c')",
    )
    assert warehouse.replicate().held == ()
    warehouse.assert_equal()
    found = warehouse.content(source=False)
    assert [len(found[name]["files"]) for name in ("two", "made", "mixed")] == [2, 2, 3]  # type: ignore[index]
    assert len(found["parts"]["partition ['2']"][0]) == 3  # type: ignore[index]
    warehouse.sql(
        "CREATE TABLE others (a STRING) PARTITIONED BY (ds STRING)",
        "ALTER TABLE others EXCHANGE PARTITION (ds='2') WITH TABLE parts",
    )
    assert warehouse.replicate().held == ()
    warehouse.assert_equal()
    assert len(warehouse.content(source=False)["others"]["partition ['2']"][0]) == 3  # type: ignore[index]
