"""HDFS as it is found: how its checksums are made, and directories of which files cannot be copied, or not as cheaply.

Looked at are directories of databases, and in them those of the policy's tables: not partitions, nor tables that lie elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from shlex import quote

from hive_replication.doctor.finding import Finding, error, ok, warning
from hive_replication.errors import ReplicationError
from hive_replication.policy import Root
from hive_replication.storage import Storage, paths
from hive_replication.storage.hdfs_facts import Directory, ServerDefaults, directories, server_defaults
from hive_replication.storage.webhdfs_pool import namenode_setting

_DEFAULTS = "HDFS's defaults"
_KIND = "kind of directories"
_COMBINE = "dfs.checksum.combine.mode"
_KEYS = "hadoop.security.key.provider.path"
_SHOWN = 5  # directories that are named


def defaults(storage: Storage, side: str) -> Iterator[Finding]:
    """How each HDFS of a side makes checksums, whether it has a trash, whether it encrypts what it sends.

    Args:
        storage: of the side.
        side: of the findings.
    """
    for root in storage.roots:
        if not root.webhdfs:
            continue
        try:
            found = storage.about_webhdfs(root.uri, server_defaults)
        except (ReplicationError, OSError) as problem:  # before Hadoop 3.1; that WebHDFS does not answer is a finding of its own
            yield ok(side, _DEFAULTS, f"not told by {root.uri}: {problem}")
            continue
        if found:
            yield _judged(side, root, found, namenode_setting(root, _COMBINE))


def kinds(storage: Storage, side: str, database: str, location: str, included: Callable[[str], bool]) -> Iterator[Finding]:
    """Encryption zones, erasure coding, and on the target snapshots, of a database's directory and its tables.

    Args:
        storage: of the side.
        side: ``source`` or ``target``.
        database: its name on that side.
        location: URI of its directory.
        included: whether a table's name belongs to the policy.
    """
    check = f"{_KIND} of {database}"
    try:
        found = storage.about_webhdfs(location, lambda web, path: list(directories(web, path)))
    except FileNotFoundError:
        return  # the first load makes it
    except (ReplicationError, OSError) as problem:
        yield ok(side, check, f"not told: {problem}")
        return
    if not found:
        return
    top, tables = found[0], [one for one in found[1:] if _is_table(one.path.rpartition("/")[2], included)]
    root = next(root for root in storage.roots if paths.is_under(paths.normalise(location), paths.normalise(root.uri)))
    wrong = [*_encrypted(side, check, root, top, tables), *_coded(side, check, top, tables)]
    if side == "target":
        wrong += _snapshots(side, check, [top, *tables])
    yield from wrong or [ok(side, check, f"{location}: replicated files, no encryption zone")]


def _judged(side: str, root: Root, found: ServerDefaults, combine: str | None) -> Finding:
    composite = (combine or "").upper() == "COMPOSITE_CRC"
    shown = ", ".join(
        (
            f"{root.uri}: dfs.bytes-per-checksum={found.bytes_per_checksum}",
            f"dfs.checksum.type={found.checksum_type}",
            f"{_COMBINE}={combine}" if combine else f"{_COMBINE} is not told",
            f"dfs.encrypt.data.transfer={str(found.encrypts_transfer).lower()}",
            f"fs.trash.interval={found.trash_minutes}",
        )
    )
    if side == "source" and composite:
        advice = f"set {_COMBINE} alike for DataNodes, metastores and HiveServer2, else checksums in events prove nothing"
        return warning(side, _DEFAULTS, shown, advice)
    if (found.bytes_per_checksum, found.checksum_type) != (512, "CRC32C"):
        advice = (
            "to spare a second reading of each file set dfs.bytes-per-checksum=512 and dfs.checksum.type=CRC32C in hdfs-site.xml "
            "of NameNodes and of all who write, on both sides"
        )
        return warning(side, _DEFAULTS, shown, advice)
    return ok(side, _DEFAULTS, shown)


def _encrypted(side: str, check: str, root: Root, top: Directory, tables: Iterable[Directory]) -> Iterator[Finding]:
    zones = [top] if top.encrypted else [one for one in tables if one.encrypted]
    if not zones:
        return
    shown = f"in an encryption zone: {_named(zones)}"
    if keys := root.options.get(_KEYS):
        yield ok(side, check, f"{shown}; keys by {_KEYS}={keys}")
        return
    advice = f"set {_KEYS} in options of the root {root.uri} to the KMS that hdfs-site.xml names"
    if top.encrypted:
        yield error(side, check, shown, f"{advice}: without keys every table is held")
    else:
        yield warning(
            side, check, shown, f"{advice}, or name these tables under exclude in the policy: without keys they are held"
        )


def _coded(side: str, check: str, top: Directory, tables: Iterable[Directory]) -> Iterator[Finding]:
    coded = [one for one in (top, *tables) if one.coded]
    if not coded:
        return
    shown = f"erasure-coded by {', '.join(sorted({one.coded for one in coded}))}: {_named(coded)}"
    if side == "source":
        yield ok(side, check, f"{shown}; proven by the CRC32C of every byte")
        return
    directory = coded[0].path
    advice = f"to write each file once: hdfs ec -setPolicy -replicate -path {quote(directory)}"
    yield warning(side, check, f"{shown}; a file with a recorded checksum is written twice until it is proven", advice)


def _snapshots(side: str, check: str, found: Iterable[Directory]) -> Iterator[Finding]:
    """HDFS moves and deletes no directory that has snapshots of its own, which replacing and dropping a replica need."""
    if made := [one for one in found if one.snapshots]:
        directory = quote(made[0].path)
        advice = f"delete their snapshots and run hdfs dfsadmin -disallowSnapshot {directory}; take those of a directory above"
        yield warning(side, check, f"snapshots may be made of {_named(made)}: while there are any it is not moved away", advice)


def _named(found: list[Directory]) -> str:
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(one.path for one in found[:_SHOWN]) + more


def _is_table(name: str, included: Callable[[str], bool]) -> bool:
    return not name.startswith((".", "_")) and included(name)
