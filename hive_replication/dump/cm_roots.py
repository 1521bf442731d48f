"""Where a source keeps deleted files: in its cmroot, and with Hive 4 those of each encryption zone in the zone itself.

HDFS moves no file out of its zone. The rules are those of ``getCmRoot`` of Hive's ``ReplChangeManager``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.logs import reason
from hive_replication.storage import Storage, paths
from hive_replication.storage.hdfs_facts import zone_of, zones_in
from hive_replication.storage.webhdfs import WebHdfs

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CmRoots:
    """The cmroots of a source, as URIs.

    Args:
        plain: of files in no encryption zone; "" where change management is off.
        zones: of files in encryption zones, by the directories at which these begin.
    """

    plain: str
    zones: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, location: str) -> str:
        """The cmroot of files in a directory."""
        return next((root for zone, root in self.zones.items() if paths.is_under(location, zone)), self.plain)


NOTHING_KEPT = CmRoots("")


def cm_roots(storage: Storage, setting: Callable[[str, str], str], cm_root: str, directories: Iterable[str]) -> CmRoots:
    """The cmroots of a database of Hive 4, as far as WebHDFS tells of encryption zones.

    Tables that lie elsewhere than in the database's directories count as being in no zone.

    Args:
        storage: of the source.
        setting: reads settings of the source's metastore.
        cm_root: ``hive.repl.cmrootdir``.
        directories: URIs of the database's own.

    Raises:
        Unreachable: no NameNode answers.
    """
    own = _zones(storage, cm_root, zone_of)
    hidden = in_zones(setting)
    found = (zone for directory in directories for zone in _zones(storage, directory, zones_in))
    zones = {zone: cm_root if zone in own else f"{zone}/{hidden}" for zone in found}
    return CmRoots(setting("hive.repl.cm.nonencryptionzone.rootdir", "") if own else cm_root, zones)


def in_zones(setting: Callable[[str, str], str]) -> str:
    """The path, in each encryption zone, of the cmroot of its files."""
    return setting("hive.repl.cm.encryptionzone.rootdir", ".cmroot").strip("/")


def _zones(storage: Storage, uri: str, ask: Callable[[WebHdfs, str], tuple[str, ...]]) -> tuple[str, ...]:
    """URIs without a slash at the end; none where it cannot be told.

    Raises:
        Unreachable: no NameNode answers.
    """
    try:
        uri = paths.normalise(uri)
        store = uri.removesuffix(paths.split(uri)[2])
        return tuple(f"{store}{zone}".rstrip("/") for zone in storage.about_webhdfs(uri, ask, again=True) or ())
    except FileNotFoundError:
        return ()
    except Unreachable:  # a dump that names another cmroot than Hive's is worse than none now
        raise
    except (ReplicationError, OSError) as error:
        _LOG.info("whether %s lies in an encryption zone is not told: %s", uri, reason(error))
        return ()
