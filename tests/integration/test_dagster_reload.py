"""New tables and databases get their assets in a running ``dagster dev``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dagster_dev import Dagster, dagster_dev, wait_for
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive, pytest.mark.long]

_ASSETS = "{ assetNodes { assetKey { path } } }"


def assets(dagster: Dagster) -> set[str]:
    return {"/".join(node["assetKey"]["path"]) for node in dagster.query(_ASSETS)["assetNodes"]}


def test_new_tables_and_databases_get_assets_without_a_restart(warehouse: Warehouse, tmp_path: Path) -> None:
    name = warehouse.database
    warehouse.sql("CREATE TABLE plain (a INT)")
    databases = {"databases": {f"{name}*": "*"}, "new_databases": True, "name": name}
    policy = warehouse.connection.source.policy.model_copy(update=databases)
    with dagster_dev(policy, tmp_path) as dagster:
        assert f"{name}/{name}/plain" in assets(dagster)
        warehouse.sql("CREATE TABLE later (a INT)", f"CREATE DATABASE {name}_b", f"CREATE TABLE {name}_b.other (a INT)")
        wanted = {f"{name}/{name}/later", f"{name}/{name}_b/other"}
        wait_for("no reload", lambda: wanted <= assets(dagster))
        target = warehouse.connection.target.metastore
        wait_for("no replica", lambda: target.database(f"{name}_b") is not None)
