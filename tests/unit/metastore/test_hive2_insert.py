"""The request about an INSERT as Hive 2 numbers its fields."""

from __future__ import annotations

from typing import Any

import pytest
from hive_metastore.ThriftHiveMetastore import Client
from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolAccelerated
from thrift.Thrift import TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

from hive_replication.metastore.hive2_insert import fire_insert


def fields(protocol: TBinaryProtocol, kind: int) -> Any:
    """What was sent, by field number."""
    if kind == TType.LIST:
        inner, size = protocol.readListBegin()
        return [fields(protocol, inner) for _ in range(size)]
    if kind != TType.STRUCT:
        return protocol.readBool() if kind == TType.BOOL else protocol.readString()
    found: dict[int, Any] = {}
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            return found
        found[number] = fields(protocol, kind)


@pytest.mark.parametrize("values", [None, ["ü"]])
def test_files_come_first(values: list[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = TMemoryBuffer()
    client = Client(TBinaryProtocolAccelerated(buffer))
    monkeypatch.setattr(client, "recv_fire_listener_event", lambda: None)
    fire_insert(client, "d", "t", values, ["hdfs://nn/é"], ["00ff"])
    sent = TBinaryProtocol(TMemoryBuffer(buffer.getvalue()))
    assert sent.readMessageBegin()[:2] == ("fire_listener_event", TMessageType.CALL)
    event = {1: True, 2: {1: {1: ["hdfs://nn/é"], 2: ["00ff"]}}, 3: "d", 4: "t"} | ({5: values} if values else {})
    assert fields(sent, TType.STRUCT) == {1: event}
