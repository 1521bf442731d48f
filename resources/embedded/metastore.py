"""A real Hive Metastore on Derby, 3.1.3 or 4.2.0, with notification listener, DML events and change management on."""

from __future__ import annotations

import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path

from resources.embedded import jars, java, processes
from resources.embedded.hdfs import Hdfs, write_xml
from resources.embedded.jars import Group
from resources.embedded.patches import patched
from resources.embedded.processes import Server

_SCHEMA_TOOL = threading.Lock()  # source and target want the same database: one makes it
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
    properties: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def server(self) -> Server:
        """The metastore's process."""
        folder = self.folder / f"{self.name}.metastore"
        path = ":".join(map(str, (folder / "conf", self.hdfs.conf, *self.software.jars)))
        # Derby reads a statement of a thousand partitions by recursion: more than a thread's usual stack. It looks for deadlocks,
        # which Hive's calls about transactions run into there, after 20 s by itself.
        derby = (f"-Dderby.system.home={folder}", "-Dderby.locks.deadlockTimeout=1")
        options = (*java.ADD_OPENS, *java.QUICK, "-Xmx512m", "-Xss16m", *derby, "-cp", path)
        main = ("org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(self.port))
        return Server(folder.name, folder, (str(self.software.java), *options, *main), (self.port,))

    def prepare(self) -> None:
        """Writes the configuration and makes the database if it is new."""
        folder = self.server.folder
        folder.mkdir(parents=True, exist_ok=True)
        self._configure(folder)
        if not (folder / "db").is_dir():
            with jars.staging(folder / "db") as scratch:
                shutil.copytree(_schema(self.software), scratch, dirs_exist_ok=True)

    def _configure(self, folder: Path) -> None:
        settings = {
            **_database(folder / "db"),
            "hive.metastore.warehouse.dir": warehouse(self.hdfs, self.name),
            "hive.metastore.transactional.event.listeners": "org.apache.hive.hcatalog.listener.DbNotificationListener",
            # The name in MetastoreConf repeats the prefix.
            "hive.metastore.event.db.notification.api.auth": "false",
            "metastore.metastore.event.db.notification.api.auth": "false",
            "hive.metastore.dml.events": "true",
            "hive.repl.cm.enabled": "true",
            "hive.repl.cmrootdir": cm_root(self.hdfs, self.name),
            "hive.stats.autogather": "false",
            "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
            **_BY_VERSION[self.software.hive],
            **self.properties,
        }
        (folder / "conf").mkdir(exist_ok=True)
        for name in ("hive-site.xml", "metastore-site.xml"):
            write_xml(folder / "conf" / name, settings)


def warehouse(hdfs: Hdfs, name: str) -> str:
    """URI of a metastore's warehouse directory."""
    return f"{hdfs.uri}/{name}/warehouse"


def cm_root(hdfs: Hdfs, name: str) -> str:
    """URI of the directory that keeps the deleted files of a metastore's tables (``hive.repl.cmrootdir``)."""
    return f"{hdfs.uri}/{name}/cmroot"


_TXN = "org.apache.hadoop.hive.metastore.txn.service"
_BY_VERSION = {
    # Locks of dead clients time out only where housekeeping runs; 3.1.3 ties that to the compactor's initiator.
    3: {"hive.compactor.initiator.on": "true"},
    4: {
        "metastore.thrift.bind.host": "127.0.0.1",  # 3.1.3 is patched instead
        "hive.compactor.initiator.on": "false",
        "metastore.housekeeping.threads.on": "true",
        "metastore.housekeeping.leader.election": "host",  # this one leads; no lease among the locks
        # Without the services that need classes of Iceberg's or look for partitions on their own.
        "metastore.task.threads.remote": ",".join(
            f"{_TXN}.{name}" for name in ("AcidHouseKeeperService", "AcidTxnCleanerService", "AcidOpenTxnsCounterService")
        ),
        # The tables are those of 4.0.1 (no later schema tool is published); DataNucleus adds the columns that 4.2.0 has besides,
        # and those that it no longer fills are made nullable (_NULLABLE).
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


# Columns of 4.0.1 that 4.2.0 leaves out when it writes column statistics (its own schema has them no longer).
_NULLABLE = {
    "TAB_COL_STATS": ("CAT_NAME", "DB_NAME", "TABLE_NAME"),
    "PART_COL_STATS": ("CAT_NAME", "DB_NAME", "TABLE_NAME", "PARTITION_NAME"),
}


def _schema(software: Software) -> Path:
    """An empty metastore database, made once by the schema tool and kept to be copied.

    Without the tool's scripts Derby makes event messages LONG VARCHAR, and any event over 32,700 characters fails.
    """
    made = jars.cache_home() / f"derby-{software.distribution.parent.name}{'-nullable' if software.hive == 4 else ''}"
    with _SCHEMA_TOOL:
        if not made.is_dir():
            _make_schema(software, made)
    return made / "db"


def _make_schema(software: Software, made: Path) -> None:
    with jars.staging(made) as scratch:
        write_xml(scratch / "metastore-site.xml", _database(scratch / "db"))
        path = ":".join(map(str, (scratch, *software.tool_jars)))
        command = [str(software.java), *java.ADD_OPENS, *java.QUICK, "-cp", path, _TOOL[software.hive]]
        home = {"METASTORE_HOME": str(software.distribution), "HIVE_HOME": str(software.distribution)}
        processes.run_once([*command, "-dbType", "derby", "-initSchema"], scratch, home, "schema.log")
        if software.hive == 4:
            script = scratch / "nullable.sql"
            script.write_text(
                f"connect 'jdbc:derby:{scratch / 'db'}';\n"
                + "".join(f'ALTER TABLE APP.{t} ALTER COLUMN "{c}" NULL;\n' for t, columns in _NULLABLE.items() for c in columns)
            )
            processes.run_once([*command[:-1], "org.apache.derby.tools.ij", str(script)], scratch, {}, "nullable.log")


def software(hive: int, hadoop: Group, own: Group) -> Software:
    """Puts the class paths together.

    Args:
        hive: major version, 3 or 4.
        hadoop: the group ``hadoop``.
        own: the group ``hms3`` or ``hive4``.
    """
    if own.distribution is None:
        raise ValueError("a metastore's group has a distribution with its schema scripts")
    shipped = [path for path in sorted((own.distribution / "lib").glob("*.jar")) if not path.name.startswith("derby")]
    if hive == 3:
        client = hadoop.without("slf4j-simple", "hadoop-client-minicluster")
        # Last, for its many copies of other libraries' classes; partition expressions of Hive clients need it.
        hive_exec = [path for path in own.jars if path.name.startswith("hive-exec")]
        path = (*shipped, *own.without("hive-exec"), *client, *hive_exec)
        return Software(3, java.java(), (patched(path), *path), own.distribution, path)
    derby = [path for path in own.jars if path.name.startswith("derby")]
    return Software(
        hive=4,
        java=java.newer_java(),
        jars=(*hadoop.without("slf4j"), *own.jars),
        distribution=own.distribution,
        tool_jars=(*shipped, *derby, *hadoop.without("slf4j-simple")),
    )
