"""A set of embedded servers in one data folder: started in parallel, stopped, started again with the same ports and data."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import Progress

from hive_replication.errors import BadRequest
from resources.embedded import certificates, hdfs, jars, java, kerberos, metastore, nameservice, processes, versions
from resources.embedded.hdfs import Hdfs
from resources.embedded.metastore import Metastore
from resources.embedded.nameservice import Nameservice
from resources.embedded.ports import reserve
from resources.embedded.postgresql import Postgresql
from resources.embedded.processes import Server
from resources.embedded.side import Side, Status
from resources.embedded.versions import Software

DEFAULT_SIDES = ("source", "target")
_ROLES = (*nameservice.ROLES, "database", "metastore", "kdc")


@dataclass
class Cluster:
    """The servers in one data folder.

    Args:
        directory: data folder; made by the first :meth:`up`.
        properties: metastore properties by side, e.g. ``{"source-short": {"metastore.event.db.listener.timetolive": "5s"}}``,
            and those of an HDFS, e.g. ``{"source.hdfs": {"fs.trash.interval": "60"}}``; they hold from the next start.
        tls: HDFS with ``HTTPS_ONLY`` and metastores with SSL, for good: the folder keeps their certificates.
        kerberos: whether sides that start for the first time get Kerberos; those that have it keep it.
        ticket_seconds: longest life of a Kerberos ticket, from the next start of a KDC.
        ha: whether sides that start for the first time get two NameNodes and two DataNodes; those that have them keep them.
    """

    directory: Path
    properties: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    tls: bool = False
    kerberos: bool = False
    ticket_seconds: int = 86400
    ha: bool = False

    def __post_init__(self) -> None:
        self.directory = self.directory.absolute()

    def up(self, names: Sequence[str] = DEFAULT_SIDES, progress: Progress | None = None) -> None:
        """Starts what does not run yet of these sides and waits until all of it serves.

        Args:
            names: sides; those of one HDFS (``source``, ``source4``) share it and a database server. Or parts:
                ``source.metastore``, with the HDFS and the database server that it needs, ``source.hdfs`` or ``source.database``
                alone.
            progress: shows downloads and the start of each server.

        Raises:
            BadRequest: Java is missing or too old, a name is no side's, a jar is not the locked one, a port is taken, the folder
                cannot be made, or is of a version that had no PostgreSQL.
            ReplicationError: a server does not start.
        """
        parts = _Parts.of(names)
        java.java()
        for name in parts.databases:
            metastore.require_postgresql(self.directory, name)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadRequest(f"cannot make {self.directory}: {error.strerror}; name another folder (--dir)") from error
        with self._locked(), ExitStack() as reserved:
            if self.tls and not certificates.of(self.directory) and self._ports():
                raise BadRequest(f"the servers in {self.directory} were made without TLS: name another folder")
            if self.tls:
                certificates.make(self.directory)
            ports = self._assign_ports(parts.sides, reserved)
            if not all(processes.running(self.directory / server) for server in self._servers_of(parts)):
                self._start(parts, ports, progress)

    def down(self, names: Sequence[str] | None = None) -> None:
        """Stops servers, metastores before the HDFS and the database server that they use; data and ports stay.

        Args:
            names: sides, or ``source.hdfs``, ``source.database`` or ``source.metastore`` for a part of one; all where None.
                Stopping a side that shares another's HDFS (``source4``) leaves HDFS and database server alone; stopping the
                HDFS's own side stops all on it.

        Raises:
            BadRequest: a name is not known in this data folder.
        """
        chosen = {server for name in names for server in self._select(name)} if names is not None else set(self._servers())
        if not chosen:
            return
        with self._locked():
            for metastores in (True, False):
                processes.stop([self.directory / name for name in sorted(chosen) if name.endswith(".metastore") == metastores])

    def status(self) -> list[Status]:
        """All servers known in this data folder."""
        return [self._status(name, port) for name, port in self._servers().items()]

    def side(self, name: str) -> Side:
        """Where the servers of a side are, running or not.

        Raises:
            BadRequest: the side was never started here.
        """
        ports = self._ports()
        if name not in ports:
            raise BadRequest(f"no side {name!r} in {self.directory}; start it with: hive-repl embedded up {name}")
        store = self._store(_parse(name), ports, ())
        return Side(
            name=name,
            metastore=f"thrift://127.0.0.1:{ports[name]['metastore']}",
            hdfs=f"{store.uri}/",
            webhdfs=store.web,
            warehouse=metastore.warehouse(store, name),
            cm_root=metastore.cm_root(store, name),
            conf=store.conf,
            options=store.options,
            ca=tls.ca if (tls := certificates.of(self.directory)) else None,
            kdc=store.kdc,
        )

    def database(self, name: str) -> Postgresql:
        """The database server of a side's metastore, running or not.

        Raises:
            BadRequest: the side was never started here.
        """
        self.side(name)
        owner = _parse(name)
        return Postgresql(owner, self.directory, self._ports()[owner]["database"])

    def nameservice(self, name: str) -> Nameservice:
        """The HDFS of a side with high availability, running or not.

        Raises:
            BadRequest: the side was never started here, or has one NameNode.
        """
        self.side(name)
        store = self._store(_parse(name), self._ports(), jars.fetch_groups(["hadoop"])["hadoop"].jars)
        if not isinstance(store, Nameservice):
            raise BadRequest(f"{name} in {self.directory} has one NameNode: start it in another folder, with --ha")
        return store

    def sides(self) -> list[str]:
        """Names of the sides ever started here."""
        return [name for name, ports in self._ports().items() if "metastore" in ports]

    def _start(self, parts: _Parts, ports: dict[str, dict[str, int]], progress: Progress | None) -> None:
        own = {name: versions.parsed(name)[1] for name in parts.metastores}
        groups = jars.fetch_groups(["hadoop", *sorted({group for version in own.values() for group in version.groups})], progress)
        hadoop = groups["hadoop"]
        stores = {owner: self._store(owner, ports, hadoop.jars) for owner in dict.fromkeys(map(_parse, parts.hdfs))}
        owners = dict.fromkeys(map(_parse, parts.databases))
        databases = {owner: Postgresql(owner, self.directory, ports[owner]["database"]) for owner in owners}
        metastores = [
            self._metastore(name, ports, stores[_parse(name)], databases[_parse(name)], versions.software(version, groups))
            for name, version in own.items()
        ]
        servers = sum(len(store.servers) for store in stores.values()) + len(databases) + len(metastores)
        task = progress.add_task(f"Starting {servers} servers", total=servers) if progress else None

        def advance(count: int) -> None:
            if progress and task is not None:
                progress.advance(task, count)

        for kdc in filter(None, (store.kdc for store in stores.values())):
            kdc.start()
        with ThreadPoolExecutor(servers) as pool:
            stored = {owner: pool.submit(_start, store.servers, store.prepare, advance) for owner, store in stores.items()}
            kept = {owner: pool.submit(_start, (one.server,), one.prepare, advance) for owner, one in databases.items()}
            started: dict[str, Future[None]] = {}
            for store in sorted(metastores, key=lambda store: len(store.name)):  # the second on a database after the first
                before = started.get(metastore.shared(store.name), kept[store.database.name])
                started[store.name] = pool.submit(_start_metastore, store, before, stored[store.hdfs.name], advance)
            for future in (*stored.values(), *kept.values(), *started.values()):
                future.result()

    def _metastore(
        self, name: str, ports: dict[str, dict[str, int]], store: Hdfs, database: Postgresql, software: Software
    ) -> Metastore:
        extra = dict(self.properties.get(name, {}))
        return Metastore(name, self.directory, ports[name]["metastore"], store, database, software, extra)

    def _store(self, owner: str, ports: dict[str, dict[str, int]], jars: tuple[Path, ...]) -> Hdfs:
        kdc = kerberos.of(owner, self.directory, ports, self.ticket_seconds)
        kind = Nameservice if "journalnode" in ports[owner] else Hdfs
        return kind(owner, self.directory, ports[owner], jars, kdc, self.properties.get(f"{owner}.hdfs", {}))

    def _assign_ports(self, names: Sequence[str], reserved: ExitStack) -> dict[str, dict[str, int]]:
        ports = self._ports()
        owners = dict.fromkeys(map(_parse, names))
        asked = (self.kerberos, "kdc", "Kerberos"), (self.ha, "journalnode", "high availability")
        for role, what in ((role, what) for wanted, role, what in asked if wanted):
            if plain := [owner for owner in owners if role not in ports.get(owner, {role: 0})]:
                raise BadRequest(f"{', '.join(plain)} in {self.directory} has no {what}: start it in another folder (--dir)")
        more = (*(("kdc",) if self.kerberos else ()), *(nameservice.MORE_PORTS if self.ha else ()))
        wanted = [(owner, (*hdfs.PORTS, "database", *more)) for owner in owners] + [(name, ("metastore",)) for name in names]
        for owner, roles in wanted:
            for role in roles:
                if role not in ports.setdefault(owner, {}):
                    held = reserved.enter_context(reserve([port for known in ports.values() for port in known.values()]))
                    ports[owner][role] = held.getsockname()[1]
        self._state.write_text(json.dumps(ports, indent=2) + "\n", encoding="utf-8")
        return ports

    def _ports(self) -> dict[str, dict[str, int]]:
        try:
            return json.loads(self._state.read_text(encoding="utf-8")) if self._state.is_file() else {}
        except ValueError as error:  # a kill while it was written
            raise BadRequest(f"{self._state} is damaged: name another folder (--dir), or remove this one") from error

    def _servers(self) -> dict[str, int]:
        return {f"{owner}.{role}": ports[role] for owner, ports in self._ports().items() for role in _ROLES if role in ports}

    def _servers_of(self, parts: _Parts) -> list[str]:
        wanted = {f"{name}.metastore" for name in parts.metastores} | {f"{_parse(name)}.database" for name in parts.databases}
        wanted |= {f"{_parse(name)}.{role}" for name in parts.hdfs for role in (*nameservice.ROLES, "kdc")}
        return [server for server in self._servers() if server in wanted]

    def _select(self, name: str) -> list[str]:
        side, _, part = name.partition(".")
        roles = {"": _ROLES, "hdfs": nameservice.ROLES}.get(part, (part,))
        on_it = [side, *(other for other in self._ports() if not part and _parse(other) == side)]
        chosen = [server for server in self._servers() if server in {f"{owner}.{role}" for owner in on_it for role in roles}]
        if not chosen:
            raise BadRequest(f"no server {name!r} in {self.directory}; known: {', '.join(self._servers()) or 'none'}")
        return chosen

    def _status(self, name: str, port: int) -> Status:
        process = processes.running(self.directory / name)
        state = "running" if process else "died" if processes.was_started(self.directory / name) else "stopped"
        scheme = {"namenode": "hdfs://", "namenode2": "hdfs://", "database": "postgresql://", "metastore": "thrift://"}.get(
            name.partition(".")[2], ""
        )
        return Status(name, f"{scheme}127.0.0.1:{port}", process.pid if process else None, state)

    @property
    def _state(self) -> Path:
        return self.directory / "ports.json"

    @contextmanager
    def _locked(self) -> Generator[None]:
        with (self.directory / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _start(servers: Sequence[Server], prepare: Callable[[], None], advance: Callable[[int], None]) -> None:
    if not all(processes.running(server.folder) for server in servers):
        prepare()
    for server in servers:
        processes.start(server)
    for server in servers:
        processes.wait(server, servers)
        advance(1)


def _start_metastore(store: Metastore, before: Future[None], hdfs: Future[None], advance: Callable[[int], None]) -> None:
    def prepare() -> None:
        before.result()
        store.prepare()
        hdfs.result()  # it makes its directories at start, which takes an HDFS that serves

    _start((store.server,), prepare, advance)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The sides of names such as ``source`` or ``source.hdfs``, and those of them of which each kind of server is meant."""

    sides: tuple[str, ...]
    hdfs: tuple[str, ...]
    databases: tuple[str, ...]
    metastores: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str]) -> _Parts:
        parts = [name.partition(".")[::2] for name in names]
        for side, part in parts:
            _parse(side)
            if part not in ("", "hdfs", "database", "metastore"):
                known = ", ".join((side, f"{side}.hdfs", f"{side}.database"))
                raise BadRequest(f"{side}.{part} is no part of a side: name {known} or {side}.metastore")

        def meant(*wanted: str) -> tuple[str, ...]:
            return tuple(dict.fromkeys(side for side, part in parts if part in ("", "metastore", *wanted)))

        return cls(meant("hdfs", "database"), meant("hdfs"), meant("database"), meant())


def _parse(name: str) -> str:
    """Name of the HDFS of a side."""
    return versions.parsed(name)[0]
