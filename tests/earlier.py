# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
"""What an earlier version wrote (:mod:`tests.fixtures.record_replica`), restored at today's paths, and how it looks."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hive_replication.dump.source import Source
from hive_replication.load.replica.state import LAST_ID
from hive_replication.load.replica.target import Target
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import Database, Partition, Table
from hive_replication.storage import Storage
from tests.fixtures.record_replica import FOLDER

VERSIONS = ("11f67ea",)


@dataclass(frozen=True)
class Recorded:
    """What one version wrote of one database.

    Args:
        value: as recorded.
        names: what stands now, as long as it was, for each name of the servers and the database of then.
    """

    value: dict[str, Any]
    names: Mapping[str, str]

    @classmethod
    def read(cls, version: str, name: str, **names: str) -> Recorded:
        """What was recorded.

        Args:
            version: that wrote it.
            name: of the recording, ``replica`` or ``acid``.
            names: what is to stand for each of its ``names``; they stay as they are where none are given.
        """
        value = json.loads((FOLDER / version / f"{name}.json").read_text(encoding="utf-8"))
        changed = {value["names"][key]: new for key, new in names.items()}
        assert all(len(old) == len(new) for old, new in changed.items())  # binary forms hold lengths of texts
        return cls(value, changed)

    def text(self, value: str) -> str:
        """A text with the names of today."""
        for old, new in self.names.items():
            value = value.replace(old, new)
        return value

    def files(self, value: Mapping[str, Any]) -> dict[str, bytes]:
        """Files by URI, with the names of today."""
        return {self.text(uri): self._content(data) for uri, data in value.items()}

    def _content(self, data: str | list[str]) -> bytes:
        if isinstance(data, str):
            return self.text(data).encode()
        rows = pq.read_table(BytesIO(base64.b64decode(data[0])))
        values = [{name: self._renamed(value) for name, value in row.items()} for row in rows.to_pylist()]
        out = BytesIO()
        pq.write_table(pa.Table.from_pylist(values, rows.schema), out)
        return out.getvalue()

    def _renamed(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case bytes():
                return self.text(value.decode("latin-1")).encode("latin-1")
            case list():
                return [self._renamed(one) for one in value]
            case dict():
                return {name: self._renamed(one) for name, one in value.items()}
            case _:
                return value

    def write(self, storage: Storage, value: Mapping[str, Any]) -> None:
        """Writes files."""
        for uri, data in self.files(value).items():
            storage.write(uri, data)

    def restore(self, side: Source | Target, snapshot: Mapping[str, Any]) -> None:
        """Makes a database as it was, with its objects and all files below its directory."""
        metastore = side.metastore
        self.write(side.storage, snapshot["files"])
        database = tjson.loads(Database, self.text(snapshot["database"]))
        metastore.create_database(database)
        for text in snapshot["tables"]:
            metastore.create_table(tjson.loads(Table, self.text(text)))
        parts = [tjson.loads(Partition, self.text(text)) for text in snapshot["partitions"]]
        for table, some in groupby(parts, lambda part: str(part.tableName)):
            metastore.add_partitions(database.name, table, list(some))

    def picture(self, snapshot: Mapping[str, Any], *, ids: bool = True) -> dict[str, object]:
        """What readers see of a recorded database, or of one of today (:func:`~tests.fixtures.record_replica.snapshot`)."""
        files = {uri: data for uri, data in self.files(snapshot["files"]).items() if "/.repl/journal/" not in uri}
        tables = {one.tableName: one for one in (tjson.loads(Table, self.text(text)) for text in snapshot["tables"])}
        shown = {name: _shown(table, files, ids=ids) for name, table in tables.items() if not table.partitionKeys}
        for text in snapshot["partitions"]:
            part = tjson.loads(Partition, self.text(text))
            shown[f"{part.tableName} {part.values}"] = _shown(part, files, ids=ids)
        return shown | {f"{name}, its id": table.parameters.get(LAST_ID) for name, table in tables.items() if ids}


def _shown(thing: Table | Partition, files: Mapping[str, bytes], *, ids: bool) -> object:
    place, parameters = f"{thing.sd.location}/", thing.parameters
    content = {uri.removeprefix(place): data for uri, data in files.items() if uri.startswith(place)}
    columns = [(column.name, column.type) for column in thing.sd.cols]
    return columns, content, parameters.get("colour"), parameters.get(LAST_ID) if ids else None
