"""Avro tables whose schema is in a file: which one a table or partition names (pure)."""

from __future__ import annotations

from hive_replication.metastore.types import Partition, Table

#: Parameter with the URI of the file, which Hive reads whenever the table is used.
SCHEMA_URL = "avro.schema.url"
#: What Hive takes for no URI, in lower case.
NO_URL = frozenset({"", "none"})


def schema_urls(thing: Table | Partition) -> dict[str, str]:
    """The URIs of the files with an object's schema, by the parameters that name them."""
    serde = thing.sd.serdeInfo
    values = {"parameter": thing.parameters, "parameter of the storage": thing.sd.parameters}
    values |= {"serde parameter": serde.parameters if serde else None}
    return {
        f"{kind} {key}": value
        for kind, found in values.items()
        for key, value in (found or {}).items()
        if key.lower() == SCHEMA_URL and value.lower() not in NO_URL
    }
