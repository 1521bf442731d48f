"""What is used of gssapi, which may not be installed."""

from collections.abc import Mapping
from typing import NamedTuple

from gssapi import exceptions as exceptions

class OID:
    @classmethod
    def from_int_seq(cls, integer_sequence: str) -> OID: ...

class MechType:
    kerberos: OID

class NameType:
    hostbased_service: OID
    kerberos_principal: OID

class RequirementFlag(int):
    mutual_authentication: RequirementFlag
    integrity: RequirementFlag
    confidentiality: RequirementFlag
    def __or__(self, other: int) -> RequirementFlag: ...

class Name:
    def __init__(self, base: str, name_type: OID) -> None: ...

class Credentials:
    def __init__(self, *, name: Name | None = None, usage: str, store: Mapping[str, str] | None = None) -> None: ...
    @property
    def name(self) -> Name: ...
    @property
    def lifetime(self) -> int: ...

class WrapResult(NamedTuple):
    message: bytes
    encrypted: bool

class UnwrapResult(NamedTuple):
    message: bytes
    encrypted: bool

class SecurityContext:
    def __init__(self, *, name: Name, creds: Credentials, usage: str, mech: OID, flags: int) -> None: ...
    @property
    def complete(self) -> bool: ...
    def step(self, token: bytes | None = None) -> bytes | None: ...
    def wrap(self, message: bytes, encrypt: bool) -> WrapResult: ...
    def unwrap(self, message: bytes) -> UnwrapResult: ...
