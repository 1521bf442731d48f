from typing import Any

from thrift.transport.TTransport import TTransportBase

class TSocket(TTransportBase):
    def __init__(self, host: str = ..., port: int = ..., *, socket_keepalive: bool = ...) -> None: ...
    handle: Any
    def setTimeout(self, ms: float | None) -> None: ...
