"""Images of tables, partitions and functions with texts that users wrote, read as loads and comparisons read them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any

from hive_replication.dump.functions import why_left_out, with_stores
from hive_replication.dump.source import why_skipped
from hive_replication.dump.source_boundary import ANYWHERE, source_boundary
from hive_replication.dump.statistics import changed_statistics, with_statistics
from hive_replication.errors import Refused
from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.load.apply.change_data import merged_image
from hive_replication.load.operations.conflict_resolutions import adopted_at
from hive_replication.load.replica.hive4_translation import is_translated
from hive_replication.load.replica.state import LAST_ID, SOURCE, object_id
from hive_replication.metastore.avro import schema_urls
from hive_replication.metastore.statistics import ACCURATE, claimed, with_claims
from hive_replication.metastore.types import (
    Database,
    FieldSchema,
    Function,
    Partition,
    ResourceUri,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
    copy_of,
)
from hive_replication.verify.avro_schemas import SchemaFiles
from hive_replication.verify.compare import Comparer, Listed, Pair
from hive_replication.verify.functions import function_differences
from tests.fuzz.memory import MemoryStorage
from tests.fuzz.mutations import TEXTS, mutated
from tests.fuzz.subjects import Outcome, Subject, tried
from tests.lags import POLICY
from tests.statistics import of_column

_PLACE = "hdfs://s/sales/t"
_STRUCT = {"type": "struct", "fields": [{"name": "a", "type": "integer", "nullable": True, "metadata": {}}]}
_PARAMETERS = {
    ACCURATE: '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}',
    "numFiles": "3",
    "EXTERNAL": "TRUE",
    "transactional": "false",
    "transient_lastDdlTime": "1700000000",
    "bucketing_version": "2",
    "avro.schema.literal": json.dumps({"type": "record", "name": "t", "fields": [{"name": "a", "type": "int"}]}),
    "avro.schema.url": f"{_PLACE}/a.avsc",
    "spark.sql.sources.provider": "parquet",
    "spark.sql.sources.schema": json.dumps(_STRUCT),
    "spark.sql.sources.schema.numParts": "1",
    "spark.sql.statistics.numRows": "3",
    "TRANSLATED_TO_EXTERNAL": "TRUE",
    "hive_replication.adopted": "170",
    "hive_replication.fingerprint": "ab",
    LAST_ID: "170",
    SOURCE: "uuid/sales",
}
_URIS = (
    "hdfs://s/udfs/f.jar",
    "http://host:80/f.jar",
    "http://[::1]/f.jar",
    "ivy://a:b:1",
    "file:///f.jar",
    "/f.jar",
    "hdfs:///f.jar",
)


def _described() -> StorageDescriptor:
    skewed = SkewedInfo(["a"], [["1"], ["2"]], {("1",): f"{_PLACE}/a=1", ("2",): f"{_PLACE}/a=2"})
    serde = SerDeInfo("", "S", {"path": _PLACE, "serialization.format": "1", "avro.schema.url": f"{_PLACE}/b.avsc"})
    columns = [FieldSchema("a", "int"), FieldSchema("b", "struct<c:array<string>>")]
    return StorageDescriptor(
        cols=columns, location=_PLACE, inputFormat="I", outputFormat="O", serdeInfo=serde, bucketCols=[], sortCols=[],
        parameters={"avro.schema.url": f"{_PLACE}/c.avsc"}, skewedInfo=skewed,
    )  # fmt: skip


def _thing(chance: random.Random) -> Table | Partition:
    parameters = {key: value for key, value in _PARAMETERS.items() if chance.random() < 0.7}
    if chance.random() < 0.3:
        return Partition(["1"], "sales", "t", sd=_described(), parameters=parameters)
    kind = chance.choice(("EXTERNAL_TABLE", "MANAGED_TABLE", "VIRTUAL_VIEW", "MATERIALIZED_VIEW"))
    text = "SELECT a FROM sales.t"
    keys = [FieldSchema("ds", "string")]
    return Table("t", "sales", "me", sd=_described(), partitionKeys=keys, parameters=parameters, tableType=kind,
                 viewOriginalText=text, viewExpandedText=text)  # fmt: skip


def _text(chance: random.Random, text: str) -> str:
    """Another text, which a metastore can keep."""
    data = mutated(chance, text.encode()) if chance.random() < 0.7 else chance.choice(TEXTS).encode(errors="replace")
    return data.decode(errors="replace")


def _change(chance: random.Random, thing: Table | Partition) -> None:
    """One text of an image is another one."""
    sd: Any = thing.sd
    found: list[MutableMapping[Any, str]] = [thing.parameters] * 4
    found += [sd.parameters, sd.serdeInfo.parameters, sd.skewedInfo.skewedColValueLocationMaps]
    holder = chance.choice([one for one in found if one])
    key = chance.choice(list(holder))
    what = chance.random()
    if what < 0.8:
        holder[key] = _text(chance, holder[key])
    elif what < 0.9 and isinstance(key, str):
        holder[_text(chance, key)] = holder.pop(key)
    elif what < 0.95:
        sd.location = _text(chance, sd.location)
    else:
        sd.cols[0].type = _text(chance, sd.cols[1].type)


def image(chance: random.Random) -> Callable[[], Outcome]:
    """A table or partition of the source, and its replica as loads see it."""
    thing, current = _thing(chance), _thing(chance)
    while type(current) is not type(thing):
        current = _thing(chance)
    for one in (thing, thing, current):
        if chance.random() < 0.8:
            _change(chance, one)
    schemas = SchemaFiles(*(MemoryStorage(root, {}) for root in ("hdfs://s/", "hdfs://t/"))).differences
    names = {"sales": "replica"}, {"me": "you"}
    comparer = Comparer(["hdfs://s/"], ["hdfs://t/"], lambda *_: True, True, *names, schemas=schemas)
    boundary = source_boundary(POLICY, "sales", Database("sales", locationUri="hdfs://s/sales"), None)

    def read() -> None:
        claims = claimed(thing.parameters)
        assert claimed(with_claims(thing.parameters, claims)) == claims
        made = merged_image(thing, current, "hdfs://t/sales/t")
        repr((object_id(made), adopted_at(made) if isinstance(made, Table) else 0, schema_urls(made)))
        ours, theirs = with_statistics(thing, [of_column("a", 1, 1)]), with_statistics(current, [of_column("a", 1, 2)])
        for column in ("", "a"):
            changed_statistics(ours, r.DeleteStatistics(7, 8, "TYPE", "sales", "t", partition_name="", column=column))
        if isinstance(thing, Table):
            repr((why_skipped(thing, metadata_only=False, acid=True), is_translated(thing)))
        repr([one.why_outside(thing) for one in (boundary, ANYWHERE)])
        comparer.table("t", [Pair("", Listed(ours, ()), Listed(theirs, ()))])

    return partial(tried, read)


def function(chance: random.Random) -> Callable[[], Outcome]:
    """A function with any resources."""
    uris = [chance.choice(_URIS) for _ in range(chance.randrange(4))]
    uris = [_text(chance, one) if chance.random() < 0.6 else one for one in uris]
    resources: list[Any] = [ResourceUri(1, one if chance.random() < 0.98 else None) for one in uris]
    made = Function("f", "sales", "C", "me", 1, 0, 1, resources)
    home = Database("sales", locationUri="hdfs://s/udfs")
    storage, boundary = MemoryStorage("hdfs://s/", {}), source_boundary(POLICY, "sales", home, None)

    def read() -> Outcome:
        found = with_stores(made, "hdfs://s/udfs")
        reason = boundary.why_outside(found)
        files: list[FileRef] = []
        for one in found.resourceUris:
            try:
                files.append(FileRef(storage.check(one.uri)))
            except Refused:
                continue
        list(function_differences(found, copy_of(made)))
        return Outcome(accepted=not (why_left_out(found, files) or reason))

    return read


IMAGES: dict[str, Subject] = {"images": image, "functions": function}
