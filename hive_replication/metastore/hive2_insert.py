"""INSERT events for a metastore of Hive 2, whose ``InsertEventRequestData`` numbers its fields otherwise than Hive 3's.

Sent as Hive 3 numbers them, it takes the files for the checksums, and closes the connection for want of files.
"""

from __future__ import annotations

from collections.abc import Sequence

from hive_metastore.ThriftHiveMetastore import Client
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TMessageType, TType

Value = bool | str | Sequence[str] | dict[int, "Value"]
_CALL = "fire_listener_event"


def fire_insert(
    client: Client, db: str, table: str, values: Sequence[str] | None, files: Sequence[str], checksums: Sequence[str]
) -> None:
    """Tells the metastore of files that an INSERT added; whether they replaced others cannot be told.

    Args:
        client: of the metastore.
        db: database of the table.
        table: its name.
        values: values of the partition, or None for a table without partitions.
        files: URIs of the new files.
        checksums: for each file, lowercase hex of Hadoop's ``getFileChecksum`` bytes (or "").
    """
    request: dict[int, Value] = {1: True, 2: {1: {1: files, 2: checksums}}, 3: db, 4: table}
    if values is not None:
        request[5] = values
    out = client._oprot  # noqa: SLF001 - the generated classes know one numbering  # pyright: ignore[reportPrivateUsage]
    out.writeMessageBegin(_CALL, TMessageType.CALL, 0)
    _write(out, {1: request})
    out.writeMessageEnd()
    out.trans.flush()
    client.recv_fire_listener_event()


def _write(out: TBinaryProtocolAccelerated, fields: dict[int, Value]) -> None:
    for number, value in fields.items():
        match value:
            case bool():
                out.writeFieldBegin("", TType.BOOL, number)
                out.writeBool(value)
            case str():
                out.writeFieldBegin("", TType.STRING, number)
                out.writeString(value)
            case dict():
                out.writeFieldBegin("", TType.STRUCT, number)
                _write(out, value)
            case _:
                out.writeFieldBegin("", TType.LIST, number)
                out.writeListBegin(TType.STRING, len(value))
                for one in value:
                    out.writeString(one)
    out.writeFieldStop()
