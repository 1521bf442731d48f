"""Maps names and paths of the source to the target (pure).

Event paths are mapped for new objects only; where an existing object's data lies is what the target's metastore records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar
from zlib import crc32

from hive_replication.load.layout.directories import Layout
from hive_replication.load.replica.owners import owner_on_target
from hive_replication.load.replica.state import LAST_ID, SOURCE, is_state
from hive_replication.load.replica.view_rewriting import rewritten, sources_of_replicas, why_named
from hive_replication.load.replica.view_text import CannotRewrite, ReadsReplica, reference
from hive_replication.metastore.avro import SCHEMA_URL, schema_urls
from hive_replication.metastore.materialized_views import MARK, REPLICA, is_definition
from hive_replication.metastore.names import table_directory
from hive_replication.metastore.spark_tables import PATH
from hive_replication.metastore.statistics import ACCURATE, is_statistic
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Partition, StorageDescriptor, Table, copy_of
from hive_replication.policy.model import RenamedViews
from hive_replication.storage.boundary import is_reserved, qualified

T = TypeVar("T", Table, Partition)
#: Directory of files with the schemas of Avro tables, among the paths outside of the source database's directory.
_SCHEMAS = ".schemas"
#: What no database is called.
_NO_DATABASE = "?"
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True)
class NameMapping:
    """The target's names and paths for those of the source.

    Args:
        source: identity of the source metastore and database, recorded on every replica.
        source_database, target_database: names.
        source_location, target_location: the databases' directories.
        source_roots: storage roots of the source; no path under them stays in a replica's metadata.
        external_root: directory for paths outside the source database's directory; "" for one below the target database.
        functions_root: directory for resources of functions; "" for one below the target database.
        source_table, target_table: a table-level load's names, or None.
        renamed_views: the policy's setting.
        databases: databases that have another name on the target, by their names at the source.
        owners: the policy's setting.
        metadata_only: whether no data is replicated; then nothing of what statistics tell of it is true of the replica.
        source_managed: the source database's directory for managed tables, where it has another one for them.
        of_replica: whether the source database is a replica itself, or was one.
    """

    source: str
    source_database: str
    target_database: str
    source_location: str
    target_location: str
    source_roots: tuple[str, ...]
    external_root: str = ""
    functions_root: str = ""
    source_table: str | None = None
    target_table: str | None = None
    renamed_views: RenamedViews = "warn"
    databases: Mapping[str, str] = field(default_factory=dict[str, str])
    owners: Mapping[str, str] = field(default_factory=dict[str, str])
    metadata_only: bool = False
    source_managed: str = ""
    of_replica: bool = False

    def why_held(self, table: Table) -> str:
        """Why a view cannot be replicated, "" for any other and where the policy only warns."""
        if self.renamed_views.startswith("rewrite"):
            return self._why_not_rewritten(table)
        return why_named(table, self.databases) if self.renamed_views == "hold" else ""

    def _why_not_rewritten(self, table: Table) -> str:
        try:
            rewritten(table, self.databases)
        except CannotRewrite as error:
            if self.renamed_views == "rewrite-or-warn" and not isinstance(error, ReadsReplica):
                return ""  # its text stays
            return f"the view cannot be rewritten for {self.target_database}: {error}"
        return ""

    def with_view_text(self, table: Table) -> Table:
        """A view with the text that its replica has to have; any other table, and a view whose text stays, as it is."""
        if not self.renamed_views.startswith("rewrite"):
            return table
        try:
            return rewritten(table, self.databases)
        except CannotRewrite:  # then the view is held, or the policy says that the text stays
            return table

    def reads_source(self, replica: Table) -> bool:
        """Whether a view of the target reads a database by a name that it has at the source, as far as its text alone tells.

        Where texts are rewritten, a name that is a replica's too is taken for what was written.
        """
        if self.renamed_views == "warn":  # then each name is the source's
            here = self.databases.keys() | sources_of_replicas(self.databases).keys()
        else:
            here = self.databases.keys() - self.databases.values()
        try:
            return rewritten(replica, dict.fromkeys(here, _NO_DATABASE)) != replica
        except CannotRewrite:
            return any(reference(replica, name) for name in here)

    def table(self, name: str) -> str:
        """Target name of a source table."""
        return self.target_table if self.target_table and name == self.source_table else name

    def table_location(self, table: Table) -> str:
        """The directory of a new table: its place below the database's directory, else Hive's plain path.

        External data outside the database's directory keeps its path below ``external_root``, if the policy names one.
        """
        location, name = table.sd.location or "", table.tableName.lower()
        plain = f"{self.target_location}/{table_directory(self.table(name))}"
        if is_reserved(location):  # of a replica that is a source itself: its names below .repl are not ours
            return plain
        below = self._in_database(location)
        if below and self.table(name) == name:
            return f"{self.target_location}/{below}"
        if location and not below and table.tableType == "EXTERNAL_TABLE" and self.external_root:
            return self._beside(location)
        return plain

    def partition_location(self, partition: Partition, of: Table) -> str:
        """The directory of a new partition that the source has neither below its table's nor below the database's directory.

        It keeps its path below ``external_root``, if the policy names one and the table is external, as Hive keeps it below
        ``hive.repl.replica.external.table.base.dir``; "" for a partition that goes below the replica's directory.

        Args:
            partition: of the source.
            of: its table.
        """
        location = partition.sd.location or ""
        if not location or of.tableType != "EXTERNAL_TABLE" or not self.external_root or is_reserved(location):
            return ""
        inside = _below(f"{location}/", of.sd.location or "") is not None or self._in_database(f"{location}/") is not None
        return "" if inside else self._beside(location.rstrip("/"))

    def _in_database(self, uri: str) -> str | None:
        """The path of ``uri`` below a directory of the source's database, or None if it lies in none."""
        found = (_below(uri, home) for home in (self.source_location, self.source_managed))
        return next((below for below in found if below is not None), None)

    def _beside(self, uri: str) -> str:
        """The place of a path of the source that lies outside of its database's directory."""
        return f"{self._outside}/{_path(uri)}"

    @property
    def _outside(self) -> str:
        """The directory of what lies outside of the source database's directory."""
        return (self.external_root or Layout(self.target_location).external).rstrip("/")

    def new_table(self, table: Table, evid: int) -> Table:
        """The image of a table for the target; its location is set when its data is placed."""
        image, location = copy_of(self.with_view_text(table)), self.table_location(table)
        image.dbName, image.tableName = self.target_database, self.table(table.tableName.lower())
        image.owner = owner_on_target(table.owner, table.ownerType, self.owners)
        image.catName = image.id = image.accessType = None  # the target's metastore gives its own
        image.colStats = None  # set by separate operations
        image.privileges = None  # a metastore would grant what the event has, under names of the source
        image.parameters = self._parameters(image.parameters, table.sd.location, location, evid)
        image.parameters |= {MARK: REPLICA} if is_definition(table) else {}
        self._map_storage(image.sd, location)
        image.txnId = None
        return _without_write_id(image, table)

    def new_partition(self, partition: Partition, of: Table, table: str, evid: int) -> Partition:
        """The image of a partition for the target; its location is that of :meth:`partition_location` until its data is placed.

        Args:
            partition: of the source.
            of: its table.
            table: that table's name on the target.
            evid: event id that the partition stands at.
        """
        image = copy_of(partition)
        image.dbName, image.tableName, image.catName, image.colStats = self.target_database, table, None, None
        image.parameters = self._parameters(partition.parameters, partition.sd.location, "", evid)
        self._map_storage(image.sd, "")
        image.sd.location = self.partition_location(partition, of)
        return _without_write_id(image, of)

    def _parameters(self, values: Mapping[str, str] | None, old: str | None, new: str, evid: int) -> dict[str, str]:
        kept = {key: value for key, value in self._mapped(values, old or "", new).items() if not is_state(key)}
        if self.metadata_only:
            kept = {key: value for key, value in kept.items() if not is_statistic(key)}
        return kept | {SOURCE: self.source, LAST_ID: str(evid)}

    def _map_storage(self, sd: StorageDescriptor, new: str) -> None:
        """Maps all paths in a descriptor except its location, which is set when the data is placed (:func:`point_at`).

        Directories of skewed values below it stay relative to it until then.
        """
        old = sd.location or ""
        if sd.serdeInfo and sd.serdeInfo.parameters:
            sd.serdeInfo.parameters = self._mapped(sd.serdeInfo.parameters, old, new)
        if sd.parameters:
            sd.parameters = self._mapped(sd.parameters, old, new)
        if sd.skewedInfo and sd.skewedInfo.skewedColValueLocationMaps:
            locations = sd.skewedInfo.skewedColValueLocationMaps
            sd.skewedInfo.skewedColValueLocationMaps = {
                key: _below(value, old) or self.value(value) for key, value in locations.items()
            }

    def _mapped(self, values: Mapping[str, str] | None, old: str, new: str) -> dict[str, str]:
        """Parameters of the target for those of an object; see :meth:`value`."""
        return {
            key: self._schema_place(value) if key.lower() == SCHEMA_URL else self.value(value, old, new)
            for key, value in (values or {}).items()
        }

    def schema_files(self, thing: Table | Partition) -> dict[str, str]:
        """The files of the source that an object names for its schema, by their places on the target; none without data."""
        uris = (qualified(uri, self.source_location) for uri in schema_urls(thing).values()) if not self.metadata_only else ()
        return {place: uri for uri in uris if (place := self._schema_place(uri)) != uri}

    def _schema_place(self, uri: str) -> str:
        """Where the file with a schema lies on the target: apart from all data, which may be replaced.

        Its path alone does not tell it from a file of another store, nor from one that another database has from its source.
        """
        uri = qualified(uri, self.source_location)
        if not (uri + "/").startswith(self.source_roots):
            return uri
        scheme, _, rest = uri.partition("://")
        store, _, path = rest.partition("/")
        of = _schemas_of(self.target_database, self.target_location)
        at = f"at={'' if scheme == 'hdfs' else f'{scheme}='}{_NO_NAME.sub('_', store)}"  # others may have stores of that name
        kept = self._kept.fullmatch(uri) if self._kept else None
        if kept is not None:  # a replica has it below that already, under the name of its first store
            at, path = kept["at"] or at, kept["path"]
        return f"{self._outside}/{_SCHEMAS}/{of}/{at}/{path}"

    @cached_property
    def _kept(self) -> re.Pattern[str] | None:
        """The places that loads gave to schemas of the source database, where it is a replica, also those of earlier versions.

        Users of a source may have directories named alike: by such a path they would replace the schema of another table.
        """
        if not self.of_replica:
            return None
        homes = [home for home in (self.source_location, self.source_managed) if home]
        own = "|".join(re.escape(f"{Layout(home).external}/{_SCHEMAS}") for home in homes)
        of = "|".join(re.escape(f"/{_SCHEMAS}/{_schemas_of(self.source_database, home)}") for home in homes)
        return re.compile(rf"((?:{own})(/of=[^/]+)?|.*?(?:{of}))/((?P<at>at=[^/]*)/)?(?P<path>.+)")

    def value(self, value: str, old: str = "", new: str = "") -> str:
        """A parameter's value; one that holds a path under a source root is mapped.

        Args:
            value: of the source.
            old: the object's own directory on the source.
            new: that directory on the target, "" if it is not known yet.
        """
        whole = value if value.startswith("/") else qualified(value, self.source_location)
        if not (whole + "/").startswith(self.source_roots):
            return value
        value = whole
        if old and new and _below(value + "/", old) is not None:
            return new + value[len(old) :]
        below = self._in_database(value + "/")
        if below is not None and not is_reserved(below):
            return f"{self.target_location}/{below}".rstrip("/")
        return self._beside(value)


def _schemas_of(database: str, location: str) -> str:
    """The directory of a target database's schemas; several databases may have one ``external_root``."""
    return f"of={database}-{crc32(location.encode()):08x}"


def _without_write_id(image: T, of: Table) -> T:
    """An image without the source's write id and, of a transactional table, without what its statistics claim.

    Without a write id Hive takes the claim of a new table, of no rows, for true until something alters it, which commits do not.
    """
    if is_transactional(of):
        image.parameters.pop(ACCURATE, None)
    image.writeId = -1
    return image


def object_name(database: str, table: str, partition: str = "") -> str:
    """``db.table`` or ``db.table/ds=1``, for reports."""
    return f"{database}.{table}" + (f"/{partition}" if partition else "")


def point_at(sd: StorageDescriptor, location: str | None) -> None:
    """Points a storage descriptor at a directory, the parameter ``path`` and directories of skewed values below it included."""
    before, sd.location = sd.location or "", location
    if not location:
        return
    if sd.serdeInfo and sd.serdeInfo.parameters and PATH in sd.serdeInfo.parameters:
        sd.serdeInfo.parameters[PATH] = location
    if sd.skewedInfo and (skewed := sd.skewedInfo.skewedColValueLocationMaps):
        below = {key: _below(value, before) if ":/" in value else value for key, value in skewed.items()}
        moved = {key: f"{location.rstrip('/')}/{rest}" for key, rest in below.items() if rest}
        sd.skewedInfo.skewedColValueLocationMaps = {**skewed, **moved}


def _below(uri: str, directory: str) -> str | None:
    """The path of ``uri`` below a directory, or None if it does not lie there."""
    prefix = directory.rstrip("/") + "/"
    return uri[len(prefix) :].strip("/") if uri.startswith(prefix) and directory else None


def _path(uri: str) -> str:
    return uri.split("://", 1)[-1].partition("/")[2]
