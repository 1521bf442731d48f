"""Files in sub-directories of plain tables, as Hive's UNION ALL leaves them: two of them may have one name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive, pytest.mark.long]

SETTINGS = {
    "hive.optimize.union.remove": "false",
    "hive.mapred.supports.subdirectories": "false",
    "hive.merge.mapfiles": "true",
}
OTHER = {"true": "false", "false": "true"}


@pytest.fixture
def unions(warehouse: Warehouse) -> Iterator[Warehouse]:
    """Each branch of a UNION ALL writes into a sub-directory of its own, as on Tez."""
    warehouse.sql(*(f"SET {name}={OTHER[value]}" for name, value in SETTINGS.items()))
    yield warehouse
    warehouse.sql(*(f"SET {name}={value}" for name, value in SETTINGS.items()))


def test_files_of_one_name_come_each_to_its_sub_directory(unions: Warehouse) -> None:
    unions.sql("CREATE TABLE one (a INT)", "CREATE TABLE two (a INT)", "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)")
    unions.load_data("one", "1\n")
    unions.replicate()
    union = "SELECT max(a) AS a FROM one UNION ALL SELECT min(a) + 1 AS a FROM one"
    unions.sql(
        f"INSERT INTO TABLE two {union}",
        f"CREATE TABLE made AS {union}",
        f"INSERT INTO TABLE parts PARTITION (ds='1') {union}",
    )
    content = unions.content(source=True)
    for name in ("two", "made"):
        files = [path.split("/") for path in content[name]["files"]]  # type: ignore[index]
        assert [[place[:17], file] for place, file in files] == [["HIVE_UNION_SUBDIR", "000000_0"]] * 2
    assert unions.replicate().held == ()
    unions.assert_equal()
