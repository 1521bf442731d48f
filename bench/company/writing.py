"""Calls of a NameNode and of WebHDFS that read contents, and those that change a tree."""

from __future__ import annotations

from collections.abc import Callable

from bench.company.datanode import CRC32C, Blocks, located
from bench.company.files import Files
from bench.company.formula import BLOCK
from bench.company.namenode import NOT_FOUND, Method, Refusal, path_of, status
from bench.company.protobuf import Message, encoded
from bench.company.tree import Tree
from bench.company.webhdfs import Answer, Operation, refusal

_EXISTS = "org.apache.hadoop.fs.FileAlreadyExistsException"
_OVERWRITE = 2  # CreateFlagProto
_DATANODE = "datanode"  # a parameter of those requests that a NameNode would have sent to a DataNode
_OWNER, _GROUP = b"etl", b"hadoop"


def reads(files: Files, blocks: Blocks, datanode: int) -> dict[str, Method]:
    """The NameNode's calls of those who read contents.

    Args:
        files: what there is.
        blocks: of the DataNode.
        datanode: its port.
    """

    def locations(request: Message) -> bytes:
        path = path_of(request)
        content = files.content(path)
        if content is None:
            raise Refusal(NOT_FOUND, f"File does not exist: {path}")
        block = located(blocks.new(content), len(content), datanode) if content else b""
        fields: list[tuple[int, int | bytes]] = [(1, len(content)), (3, 0), (5, 1)]
        return encoded([(1, encoded([*fields, *([(2, block)] if content else [])]))])

    def access(request: Message) -> bytes:
        path = path_of(request)
        found = files.status(path)
        if found is None:
            raise Refusal(NOT_FOUND, f"File does not exist: {path}")
        mode = encoded([(1, 0o755 if found.size is None else 0o644)])
        return encoded([(1, encoded([(1, _OWNER), (2, _GROUP), (3, 0), (5, mode)]))])

    return {"getBlockLocations": locations, "getAclStatus": access, "getServerDefaults": _defaults}


class Writes:
    """The NameNode's calls that change a tree.

    Args:
        tree: what is changed.
        blocks: of the DataNode.
        datanode: its port.
    """

    def __init__(self, tree: Tree, blocks: Blocks, datanode: int) -> None:
        self._tree, self._blocks, self._datanode = tree, blocks, datanode
        self._open: dict[str, int] = {}

    def methods(self) -> dict[str, Method]:
        """The calls by their names."""
        return {
            "create": self._create,
            "addBlock": self._add_block,
            "complete": self._complete,
            "mkdirs": self._mkdirs,
            "rename2": self._rename,
            "delete": self._delete,
            "setPermission": _nothing,
            "setOwner": _nothing,
            "renewLease": _nothing,
        }

    def _create(self, request: Message) -> bytes:
        path = path_of(request)
        if self._tree.status(path) and not int(request[4]) & _OVERWRITE:
            raise Refusal(_EXISTS, f"{path} already exists")
        self._tree.put(path, b"")
        entry = self._tree.status(path)
        return encoded([(1, status(entry, entry.name))]) if entry else b""

    def _add_block(self, request: Message) -> bytes:
        number = self._open[path_of(request)] = self._blocks.new()
        return encoded([(1, located(number, 0, self._datanode))])

    def _complete(self, request: Message) -> bytes:
        path = path_of(request)
        if (number := self._open.pop(path, None)) is not None:
            self._tree.put(path, self._blocks.take(number))
        return encoded([(1, 1)])

    def _mkdirs(self, request: Message) -> bytes:
        self._tree.mkdirs(path_of(request))
        return encoded([(1, 1)])

    def _rename(self, request: Message) -> bytes:
        source, target = path_of(request), path_of(request, 2)
        problem = self._tree.rename(source, target)
        if problem == "source":
            raise Refusal(NOT_FOUND, f"rename source {source} is not found, or the directory of {target} is not")
        if problem:
            raise Refusal(_EXISTS, f"rename destination {target} already exists")
        return b""

    def _delete(self, request: Message) -> bytes:
        return encoded([(1, int(self._tree.delete(path_of(request))))])


def over_http(tree: Tree) -> dict[str, Operation]:
    """Operations of WebHDFS: one that writes a file in one request, and one of its own, which tells how much is complete."""

    def create(path: str, parameters: dict[str, str], body: bytes) -> Answer:
        if tree.status(path) and parameters.get("overwrite") != "true":
            return refusal(403, "FileAlreadyExistsException", f"{path} already exists")
        if _DATANODE not in parameters:
            return Answer(307, {}, f"{_DATANODE}=true")
        tree.put(path, body)
        return Answer(201, {})

    def complete(path: str, _parameters: dict[str, str], _body: bytes) -> Answer:
        return Answer(200, tree.complete(path))

    return {"CREATE": create, "COMPLETE": complete}


def growing(grow: Callable[[str, int], None]) -> dict[str, Operation]:
    """An operation of the simulated WebHDFS alone: a database at the source gets further partitions."""

    def more(path: str, parameters: dict[str, str], _body: bytes) -> Answer:
        grow(path.removeprefix("/"), int(parameters["partitions"]))
        return Answer(200, {})

    return {"GROW": more}


def _defaults(_request: Message) -> bytes:
    """``FsServerDefaultsProto``, as Hadoop ships."""
    defaults = [(1, BLOCK), (2, 512), (3, 64 << 10), (4, 3), (5, 4096), (6, 0), (7, 0), (8, CRC32C)]
    return encoded([(1, encoded(defaults))])


def _nothing(_request: Message) -> bytes:
    return b""
