"""A real Hive Metastore on PostgreSQL, with notification listener, DML events and change management on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hive_replication.errors import BadRequest
from resources.embedded import certificates, java, kerberos
from resources.embedded.hdfs import Hdfs, write_xml
from resources.embedded.postgresql import USER, Postgresql
from resources.embedded.processes import Server
from resources.embedded.versions import Software


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
        sasl = self.hdfs.kdc is not None and self.software.version.major == 4
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
        more = () if self.software.version.complete else nullable
        self.database.create(shared(self.name), self.software.schema, "\n".join((_NULL_IF_NO_NUMBER, *more)))

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
            **_BY_MAJOR[self.software.version.major],
            **({} if self.software.version.complete else _INCOMPLETE),
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
# Locks of dead clients time out only where housekeeping runs; before Hive 4 that is tied to the compactor's initiator.
_BY_MAJOR = {
    2: {"hive.compactor.initiator.on": "true", "hive.async.log.enabled": "false"},  # else a library is needed
    3: {"hive.compactor.initiator.on": "true"},
    4: {
        "metastore.thrift.bind.host": "127.0.0.1",  # earlier ones are patched instead
        "hive.compactor.initiator.on": "false",
        "metastore.housekeeping.threads.on": "true",
        "metastore.housekeeping.leader.election": "host",  # this one leads; no lease among the locks
        # Without the services that need classes of Iceberg's or look for partitions on their own.
        "metastore.task.threads.remote": ",".join(
            f"{_TXN}.{name}" for name in ("AcidHouseKeeperService", "AcidTxnCleanerService", "AcidOpenTxnsCounterService")
        ),
    },
}
# Where the tables are those of an earlier version, DataNucleus adds the columns that are missing, and those that are no longer
# filled are made nullable (_NULLABLE).
_INCOMPLETE = {
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "metastore.schema.verification": "false",
}

# Where a partition key is a number, a metastore's SQL casts values of partitions to one: on PostgreSQL, as its planner chooses,
# also those of other tables, of which the first that is no number fails the call.
_NULL_IF_NO_NUMBER = """
CREATE FUNCTION number_or_null(varchar) RETURNS numeric LANGUAGE sql IMMUTABLE
  AS $$ SELECT CASE WHEN $1 ~ '^ *[-+]?[0-9]+([.][0-9]+)? *$' THEN $1::text::numeric END $$;
CREATE CAST (varchar AS numeric) WITH FUNCTION number_or_null(varchar);
"""

# Columns of 4.0.1 that 4.2.0 leaves out when it writes column statistics (its own schema has them no longer).
_NULLABLE = {
    "TAB_COL_STATS": ("CAT_NAME", "DB_NAME", "TABLE_NAME"),
    "PART_COL_STATS": ("CAT_NAME", "DB_NAME", "TABLE_NAME", "PARTITION_NAME"),
}
