from thrift.transport.TTransport import TTransportBase

class TBinaryProtocolAccelerated:
    def __init__(self, trans: TTransportBase, *, string_length_limit: int = ...) -> None: ...
