"""What this project uses of Dagster beside its public names: a test for each, so that an upgrade shows what is gone."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path

import dagster as dg
import pytest

ROOT = Path(__file__).parents[3]
MODULE = ROOT / "repl_assets/dagster_private.py"  # read, not imported: one name that is gone would hide the others
ADVICE = "see what the docstring of repl_assets/dagster_private.py says of it"

IMPORTED = [
    (node.module, name.name)
    for node in ast.parse(MODULE.read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dagster._")
    for name in node.names
]
TAGS = {
    "ASSET_PARTITION_RANGE_END_TAG": "dagster/asset_partition_range_end",
    "ASSET_PARTITION_RANGE_START_TAG": "dagster/asset_partition_range_start",
    "DATA_VERSION_TAG": "dagster/data_version",
    "PARTITION_NAME_TAG": "dagster/partition",
    "PRIORITY_TAG": "dagster/priority",
    "RUN_KEY_TAG": "dagster/run_key",
}
COLUMNS = {
    "AssetCheckExecutionsTable": "id asset_key check_name partition run_id execution_status create_timestamp "
    "evaluation_event evaluation_event_storage_id",
    "DynamicPartitionsTable": "partitions_def_name partition",
    "SqlEventLogStorageTable": "id run_id dagster_event_type asset_key timestamp",
}
#: Members of what public calls give, which the manual does not describe, and the arguments that are given by name.
MEMBERS = {
    "AssetCheckExecutionRecord.from_db_row": "row key",
    "DagsterInstance.event_log_storage": "",
    "DagsterInstance.compute_log_manager": "",
    "DagsterInstance.daemon_cursor_storage": "",
    "DagsterInstance.get_execution_plan_snapshot": "",
    "DagsterRun.has_repository_load_data": "",
    "DefinitionsLoadContext.add_to_pending_reconstruction_metadata": "",
    "DefinitionsLoadContext.reconstruction_metadata": "",
    "ReconstructableRepository.with_repository_load_data": "",
    "DaemonCursorStorage.get_cursor_values": "",
    "DaemonCursorStorage.set_cursor_values": "",
    "EventLogStorage.get_latest_storage_id_by_partition": "",
    "EventLogStorage.get_latest_tags_by_partition": "",
    "EventLogStorage.get_asset_check_execution_history": "limit status partition_filter",
    "EventLogStorage.get_asset_check_partition_info": "",
    "EventLogStorage.get_latest_asset_check_execution_by_key": "",
    "SqlEventLogStorage.index_connection": "",
    "SqliteEventLogStorage.run_connection": "",
    "SqliteEventLogStorage.path_for_shard": "",
    "StepExecutionContext.wipe_input_asset_version_info": "",
    "DagsterGrpcClient.get_server_id": "",
    "DagsterGrpcClient.reload_code": "timeout",
}
OWNERS = {
    "AssetCheckExecutionRecord": "dagster._core.storage.asset_check_execution_record",
    "DaemonCursorStorage": "dagster._core.storage.daemon_cursor",
    "DagsterInstance": "dagster",
    "DagsterRun": "dagster",
    "DefinitionsLoadContext": "dagster._core.definitions.definitions_load_context",
    "ReconstructableRepository": "dagster._core.definitions.reconstruct",
    "EventLogStorage": "dagster._core.storage.event_log.base",
    "SqlEventLogStorage": "dagster._core.storage.event_log.sql_event_log",
    "SqliteEventLogStorage": "dagster._core.storage.event_log.sqlite.sqlite_event_log",
    "StepExecutionContext": "dagster._core.execution.context.system",
    "DagsterGrpcClient": "dagster._grpc.client",
}


@pytest.mark.parametrize(("module", "name"), IMPORTED)
def test_a_private_name_is_there_and_explained(module: str, name: str) -> None:
    assert hasattr(import_module(module), name), f"Dagster {dg.__version__} has no {module}.{name}: {ADVICE}"
    assert f"``{name}``" in (ast.get_docstring(ast.parse(MODULE.read_text(encoding="utf-8"))) or "")


@pytest.mark.parametrize("name", TAGS)
def test_a_tag_has_its_name(name: str) -> None:
    (module,) = (module for module, imported in IMPORTED if imported == name)
    assert getattr(import_module(module), name) == TAGS[name], ADVICE


@pytest.mark.parametrize("name", COLUMNS)
def test_a_table_has_its_columns(name: str) -> None:
    (module,) = (module for module, imported in IMPORTED if imported == name)
    assert set(COLUMNS[name].split()) <= set(getattr(import_module(module), name).c.keys()), ADVICE


@pytest.mark.parametrize("member", MEMBERS)
def test_an_undocumented_member_is_there(member: str) -> None:
    owner, name = member.split(".")
    found = inspect.getattr_static(getattr(import_module(OWNERS[owner]), owner), name, None)
    assert found is not None, f"Dagster {dg.__version__} has no {member}: {ADVICE}"
    for argument in MEMBERS[member].split():
        assert argument in inspect.signature(getattr(found, "__func__", found)).parameters, (
            f"{member} takes no {argument}: {ADVICE}"
        )


def test_no_other_module_imports_what_is_private() -> None:
    packages = ("hive_replication", "repl_assets", "resources", "sensors")
    files = [file for package in packages for file in (ROOT / package).rglob("*.py") if file != MODULE]
    assert len(files) > 100
    private: list[str] = []
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [name.name for name in node.names] if isinstance(node, ast.Import) else []
            private += [f"{file.relative_to(ROOT)}: {module}" for module in modules if module.startswith("dagster._")]
    assert private == []
