"""A real Hive Metastore on Derby, 3.1.3 or 4.2.0, with notification listener, DML events and change management on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from resources.embedded import jars, java, processes
from resources.embedded.hdfs import Hdfs, write_xml
from resources.embedded.jars import Jar
from resources.embedded.processes import Server

_TOOL = {
    3: "org.apache.hadoop.hive.metastore.tools.MetastoreSchemaTool",
    4: "org.apache.hadoop.hive.metastore.tools.schematool.MetastoreSchemaTool",
}


@dataclass(frozen=True, slots=True)
class Software:
    """What a metastore runs with.

    Args:
        hive: major version: 3 (3.1.3) or 4 (4.2.0).
        java: the ``java`` program.
        jars: class path of the metastore.
        distribution: unpacked distribution with the schema scripts.
        tool_jars: class path of the schema tool.
    """

    hive: int
    java: Path
    jars: tuple[Path, ...]
    distribution: Path
    tool_jars: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Metastore:
    """One metastore and its own warehouse on an HDFS.

    Args:
        name: e.g. ``source`` or ``source4``.
        folder: data folder of the cluster.
        port: of its thrift service.
        hdfs: where its warehouse lies.
        software: what it runs with.
        properties: added to its configuration.
    """

    name: str
    folder: Path
    port: int
    hdfs: Hdfs
    software: Software
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def warehouse(self) -> str:
        """URI of the warehouse directory."""
        return f"{self.hdfs.uri}/{self.name}/warehouse"

    @property
    def cm_root(self) -> str:
        """URI of the directory that keeps deleted files (``hive.repl.cmrootdir``)."""
        return f"{self.hdfs.uri}/{self.name}/cmroot"

    @property
    def server(self) -> Server:
        """The metastore's process."""
        folder = self.folder / f"{self.name}.metastore"
        path = ":".join(map(str, (folder / "conf", self.hdfs.conf, *self.software.jars)))
        options = (*java.ADD_OPENS, *java.QUICK, "-Xmx512m", f"-Dderby.system.home={folder}", "-cp", path)
        main = ("org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(self.port))
        return Server(folder.name, folder, (str(self.software.java), *options, *main), (self.port,))

    def prepare(self, cache: Path) -> None:
        """Writes the configuration and makes the database if it is new."""
        folder = self.server.folder
        folder.mkdir(parents=True, exist_ok=True)
        self._configure(folder)
        if not (folder / "db").is_dir():
            with jars.staging(folder / "db") as scratch:
                shutil.copytree(_schema(self.software, cache), scratch, dirs_exist_ok=True)

    def _configure(self, folder: Path) -> None:
        settings = {
            **_database(folder / "db"),
            "hive.metastore.warehouse.dir": self.warehouse,
            "hive.metastore.transactional.event.listeners": "org.apache.hive.hcatalog.listener.DbNotificationListener",
            # 3.1.3 reads the name with its own prefix twice.
            "hive.metastore.event.db.notification.api.auth": "false",
            "metastore.metastore.event.db.notification.api.auth": "false",
            "hive.metastore.dml.events": "true",
            "hive.repl.cm.enabled": "true",
            "hive.repl.cmrootdir": self.cm_root,
            "hive.stats.autogather": "false",
            "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
            **_BY_VERSION[self.software.hive],
            **self.properties,
        }
        (folder / "conf").mkdir(exist_ok=True)
        for name in ("hive-site.xml", "metastore-site.xml"):
            write_xml(folder / "conf" / name, settings)


_TXN = "org.apache.hadoop.hive.metastore.txn.service"
_BY_VERSION = {
    # Locks of dead clients time out only where housekeeping runs; 3.1.3 ties that to the compactor's initiator.
    3: {"hive.compactor.initiator.on": "true"},
    4: {
        "hive.compactor.initiator.on": "false",
        "metastore.housekeeping.threads.on": "true",
        "metastore.housekeeping.leader.election": "host",  # this one leads; no lease among the locks
        # Without the services that need classes of Iceberg's or look for partitions on their own.
        "metastore.task.threads.remote": ",".join(
            f"{_TXN}.{name}" for name in ("AcidHouseKeeperService", "AcidTxnCleanerService", "AcidOpenTxnsCounterService")
        ),
        # The tables are those of 4.0.1 (no later schema tool is published); DataNucleus adds the columns that 4.2.0 has besides.
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "metastore.schema.verification": "false",
    },
}


def _database(path: Path) -> dict[str, str]:
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={path};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
    }


def _schema(software: Software, cache: Path) -> Path:
    """An empty metastore database, made once by the schema tool and kept to be copied.

    Without the tool's scripts Derby makes event messages LONG VARCHAR, and any event over 32,700 characters fails.
    """
    made = cache / f"derby-{software.distribution.parent.name}"
    if not made.is_dir():
        with jars.staging(made) as scratch:
            write_xml(scratch / "metastore-site.xml", _database(scratch / "db"))
            path = ":".join(map(str, (scratch, *software.tool_jars)))
            command = [str(software.java), *java.ADD_OPENS, *java.QUICK, "-cp", path, _TOOL[software.hive]]
            home = {"METASTORE_HOME": str(software.distribution), "HIVE_HOME": str(software.distribution)}
            processes.run_once([*command, "-dbType", "derby", "-initSchema"], scratch, home, "schema.log")
    return made / "db"


def software(hive: int, hadoop: list[Path], group: list[tuple[Jar, Path]], cache: Path) -> Software:
    """Puts the class paths together.

    Args:
        hive: major version, 3 or 4.
        hadoop: files of the group ``hadoop``.
        group: artifacts and files of the group ``hms3`` or ``hive4``.
        cache: where distributions are unpacked.
    """
    distribution = next(jars.unpacked(jar, path, cache) for jar, path in group if jar.is_distribution)
    own = [path for jar, path in group if not jar.is_distribution]
    lib = sorted((distribution / "lib").glob("*.jar"))
    if hive == 3:
        client = _without(hadoop, "slf4j-simple", "hadoop-client-minicluster")
        path = (*_without(lib, "derby"), *own[:-1], *client, own[-1])
        return Software(3, java.java(), path, distribution, path)
    tool = [*_without(lib, "derby", "hadoop-"), *_only(own, "derby"), *_without(hadoop, "slf4j-simple")]
    return Software(4, java.newer_java(), (*_without(hadoop, "slf4j"), *own), distribution, tuple(tool))


def _without(paths: list[Path], *prefixes: str) -> list[Path]:
    return [path for path in paths if not path.name.startswith(prefixes)]


def _only(paths: list[Path], *prefixes: str) -> list[Path]:
    return [path for path in paths if path.name.startswith(prefixes)]
