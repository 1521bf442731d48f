"""Functions of a dump: those of their resources that are copied, and which functions are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from hive_replication.dump.cm_roots import CmRoots
from hive_replication.dump.format.record_types import FunctionRecord
from hive_replication.dump.source import Source
from hive_replication.dump.source_boundary import SourceBoundary
from hive_replication.errors import Refused
from hive_replication.events.files import FileRef
from hive_replication.metastore.types import Function, copy_of
from hive_replication.storage import Denied, Late, NoChecksum
from hive_replication.storage.boundary import qualified

#: Resources that are where they say on every machine: kept as they are. All others have to be copied.
_ANYWHERE = frozenset({"ivy", "http", "https", "file", ""})
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):")  # of any text: users write there what they like


def function_record(source: Source, function: Function, kept: CmRoots, boundary: SourceBoundary) -> FunctionRecord:
    """A function with those of its resources that have to be copied, as they are now.

    Hive records no checksum of them at the event (its own REPL DUMP looks at the dump, too), but copies them to cmroot at
    DROP FUNCTION.
    """
    function = with_stores(function, boundary.beside)
    if boundary.why_outside(function):  # then the load holds it
        return FunctionRecord(function, tuple(FileRef.barred(one.uri) for one in function.resourceUris or ()))
    return FunctionRecord(function, tuple(_files(source, function, kept)))


def unread_record(source: Source, function: Function, boundary: SourceBoundary) -> FunctionRecord:
    """The same without a look at the resources, so without their checksums."""
    function = with_stores(function, boundary.beside)
    resources = () if boundary.why_outside(function) else function.resourceUris or ()
    return FunctionRecord(function, tuple(FileRef(one.uri) for one in resources if _is_copied(source, one.uri)))


def with_stores(function: Function, beside: str) -> Function:
    """A function whose resources that name no store (``hdfs:///udfs/x.jar``) lie on that of ``beside``; paths alone are local."""
    made = copy_of(function)
    for resource in made.resourceUris or ():
        resource.uri = resource.uri or ""  # a metastore keeps one without, too
        if not resource.uri.startswith("/"):
            resource.uri = qualified(resource.uri, beside)
    return made


def why_left_out(function: Function, files: Iterable[FileRef]) -> str:
    """Why a function is not replicated, or "" where it is.

    Args:
        function: of the source.
        files: those of its resources that are copied.
    """
    uris = [resource.uri for resource in function.resourceUris or ()]
    copied = {file.uri for file in files}
    lost = [uri for uri in uris if uri not in copied and _scheme(uri) not in _ANYWHERE]
    if not uris:
        return "functions without USING are not replicated (as in Hive): their class is wherever the source's servers have it"
    if lost:
        return f"its resource {lost[0]} lies outside the source's storage roots"
    if not copied:
        return "none of its resources is copied, so that its replica could not be told from a function of somebody else"
    return ""


def _scheme(uri: str) -> str:
    found = _SCHEME.match(uri)
    return found[1].lower() if found else ""


def _files(source: Source, function: Function, kept: CmRoots) -> Iterator[FileRef]:
    names: set[str] = set()
    for number, resource in enumerate(function.resourceUris or ()):
        name = PurePosixPath(resource.uri).name
        subdir = str(number) if name in names else ""
        names.add(name)
        if not _is_copied(source, resource.uri):
            continue
        try:
            checksum = source.storage.checksum(resource.uri)
        except (FileNotFoundError, Denied, NoChecksum, Late):
            checksum = None  # the load holds the function, unless the resource can be copied by then
        yield FileRef(resource.uri, checksum.value if checksum else "", kept.of(resource.uri) if checksum else "", subdir)


def _is_copied(source: Source, uri: str) -> bool:
    """Whether a resource lies in the source's storage roots."""
    try:
        source.storage.check(uri)
    except Refused:
        return False
    return True
