"""A real Hive Metastore on PostgreSQL, 3.1.3 or 4.2.0, with notification listener, DML events and change management on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hive_replication.errors import BadRequest
from resources.embedded import certificates, java, kerberos
from resources.embedded.hdfs import Hdfs, write_xml
from resources.embedded.jars import Group
from resources.embedded.patches import patched
from resources.embedded.postgresql import USER, Postgresql
from resources.embedded.processes import Server


@dataclass(frozen=True, slots=True)
class Software:
    """What a metastore runs with.

    Args:
        hive: major version: 3 (3.1.3) or 4 (4.2.0).
        java: the ``java`` program.
        jars: class path of the metastore.
        schema: the script of Hive's schema tool for PostgreSQL.
    """

    hive: int
    java: Path
    jars: tuple[Path, ...]
    schema: Path


@dataclass(frozen=True, slots=True)
class Metastore:
    """One metastore and its own warehouse on an HDFS.

    Args:
        name: e.g. ``source`` or ``source4``.
        folder: data folder of the cluster.
        port: of its thrift service.
        hdfs: where its warehouse lies.
        database: the server of its database.
        software: what it runs with.
        properties: added to its configuration.
    """

    name: str
    folder: Path
    port: int
    hdfs: Hdfs
    database: Postgresql
    software: Software
    properties: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def server(self) -> Server:
        """The metastore's process."""
        folder = self.folder / f"{self.name}.metastore"
        sasl = self.hdfs.kdc is not None and self.software.hive == 4
        more, sasl_options = ((kerberos.sasl_classes(),), kerberos.SASL_OPTIONS) if sasl else ((), ())
        path = ":".join(map(str, (folder / "conf", self.hdfs.conf, *self.software.jars, *more)))
        options = (*java.ADD_OPENS, *java.QUICK, *self.hdfs.java_options, *sasl_options, "-Xmx512m", "-cp", path)
        main = ("org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(self.port))
        return Server(folder.name, folder, (str(self.software.java), *options, *main), (self.port,))

    def prepare(self) -> None:
        """Writes the configuration and makes the database if it is new; its server has to run.

        Raises:
            ReplicationError: PostgreSQL refused a statement.
        """
        self._configure(self.server.folder)
        nullable = (
            f'ALTER TABLE "{table}" ALTER "{name}" DROP NOT NULL;' for table, names in _NULLABLE.items() for name in names
        )
        self.database.create(shared(self.name), self.software.schema, "\n".join(nullable) if self.software.hive == 4 else "")

    def _configure(self, folder: Path) -> None:
        settings = {
            "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://127.0.0.1:{self.database.port}/{shared(self.name)}",
            "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
            "javax.jdo.option.ConnectionUserName": USER,
            "javax.jdo.option.ConnectionPassword": self.database.password,
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
            **(tls.metastore() if (tls := certificates.of(self.folder)) else {}),
            **(self.hdfs.kdc.metastore_settings() if self.hdfs.kdc else {}),
            **self.properties,
        }
        (folder / "conf").mkdir(0o700, parents=True, exist_ok=True)  # with the password
        for name in ("hive-site.xml", "metastore-site.xml"):
            write_xml(folder / "conf" / name, settings)


def shared(name: str) -> str:
    """The side whose database, warehouse and cmroot a metastore serves: its own, or ``source`` for ``source-second``."""
    return name.replace("-second", "")


def warehouse(hdfs: Hdfs, name: str) -> str:
    """URI of a metastore's warehouse directory."""
    return f"{hdfs.uri}/{shared(name)}/warehouse"


def cm_root(hdfs: Hdfs, name: str) -> str:
    """URI of the directory that keeps the deleted files of a metastore's tables (``hive.repl.cmrootdir``)."""
    return f"{hdfs.uri}/{shared(name)}/cmroot"


def require_postgresql(folder: Path, name: str) -> None:
    """Checks that a metastore's data are not of a version that kept them in Derby.

    Raises:
        BadRequest: they are.
    """
    if (folder / f"{name}.metastore" / "db").is_dir():
        raise BadRequest(f"{folder} has metastores on Derby, made by an earlier version: delete it, or name another folder")


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
        # The tables are those of 4.0.1 (no later script is published); DataNucleus adds the columns that 4.2.0 has besides,
        # and those that it no longer fills are made nullable (_NULLABLE).
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "metastore.schema.verification": "false",
    },
}


_SCHEMAS = {3: "hive-schema-3.1.0.postgres.sql", 4: "hive-schema-4.0.0.postgres.sql"}  # of 3.1.3 and 4.0.1
# Columns of 4.0.1 that 4.2.0 leaves out when it writes column statistics (its own schema has them no longer).
_NULLABLE = {
    "TAB_COL_STATS": ("CAT_NAME", "DB_NAME", "TABLE_NAME"),
    "PART_COL_STATS": ("CAT_NAME", "DB_NAME", "TABLE_NAME", "PARTITION_NAME"),
}


def software(hive: int, hadoop: Group, own: Group) -> Software:
    """Puts the class paths together.

    Args:
        hive: major version, 3 or 4.
        hadoop: the group ``hadoop``.
        own: the group ``hms3`` or ``hive4``.
    """
    if own.distribution is None:
        raise ValueError("a metastore's group has a distribution with its schema scripts")
    schema = own.distribution / "scripts" / "metastore" / "upgrade" / "postgres" / _SCHEMAS[hive]
    if hive == 4:
        http = sorted((own.distribution / "lib").glob("pac4j-core-*.jar"))  # needed where it speaks over HTTP
        return Software(4, java.newer_java(), (*hadoop.without("slf4j"), *own.jars, *http), schema)
    shipped = [path for path in sorted((own.distribution / "lib").glob("*.jar")) if not path.name.startswith("derby")]
    client = hadoop.without("slf4j-simple", "hadoop-client-minicluster")
    # Last, for its many copies of other libraries' classes; partition expressions of Hive clients need it.
    hive_exec = [path for path in own.jars if path.name.startswith("hive-exec")]
    path = (*shipped, *own.without("hive-exec"), *client, *hive_exec)
    return Software(3, java.java(), (patched(path), *path), schema)
