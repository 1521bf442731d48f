from typing import ClassVar

class TType:
    BOOL: ClassVar[int]
    BYTE: ClassVar[int]
    I16: ClassVar[int]
    I32: ClassVar[int]
    I64: ClassVar[int]
    DOUBLE: ClassVar[int]
    STRING: ClassVar[int]
    STRUCT: ClassVar[int]
    MAP: ClassVar[int]
    SET: ClassVar[int]
    LIST: ClassVar[int]

class TMessageType:
    CALL: ClassVar[int]

class TException(Exception): ...

class TApplicationException(TException):
    UNKNOWN_METHOD: ClassVar[int]
    INTERNAL_ERROR: ClassVar[int]
    type: int
    message: str | None
