"""What clients know of a side of a cluster, and how its servers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from resources.embedded.kerberos import Kdc
from resources.embedded.versions import Version, parsed


@dataclass(frozen=True, slots=True)
class Side:
    """Where the servers of one side are.

    Args:
        name: e.g. ``source``; ``source4`` is a metastore 4.2.0 (others: ``versions``), ``source-short`` another 3.1.3, both
            on ``source``'s HDFS; ``source-second`` is a second metastore on ``source``'s database.
        metastore: ``thrift://127.0.0.1:port``.
        hdfs: ``hdfs://127.0.0.1:port/``, or ``hdfs://source/`` where it has a nameservice.
        webhdfs: ``http://127.0.0.1:port``; two, comma-separated, where it has a nameservice.
        warehouse: URI of the warehouse directory.
        cm_root: URI of ``hive.repl.cmrootdir``.
        conf: folder with ``core-site.xml`` and ``hdfs-site.xml`` for Hadoop clients.
        ca: the servers' certificate authority, where they speak TLS.
        kdc: of the side, where it runs with Kerberos.
        options: what HDFS clients have to know of its nameservice, where it has one.
    """

    name: str
    metastore: str
    hdfs: str
    webhdfs: str
    warehouse: str
    cm_root: str
    conf: Path
    ca: Path | None = None
    kdc: Kdc | None = None
    options: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def hive(self) -> int:
        """Major version of the metastore."""
        return self.version.major

    @property
    def version(self) -> Version:
        """Version of the metastore."""
        return parsed(self.name)[1]


@dataclass(frozen=True, slots=True)
class Status:
    """One server: ``state`` is ``running``, ``stopped``, or ``died`` where nobody stopped it."""

    name: str
    address: str
    pid: int | None
    state: str
