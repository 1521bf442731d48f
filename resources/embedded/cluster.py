"""A set of embedded servers in one data folder: started in parallel, stopped, started again with the same ports and data."""

from __future__ import annotations

import fcntl
import json
import random
import re
import socket
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import Progress

from hive_replication.errors import BadRequest
from resources.embedded import hdfs, jars, java, metastore, processes
from resources.embedded.hdfs import Hdfs
from resources.embedded.jars import Group
from resources.embedded.metastore import Metastore

DEFAULT_SIDES = ("source", "target")
# Below the range from which systems take ports for outgoing connections: those may be taken while a server is down.
_PORTS = range(20000, 32000)
_SIDE = re.compile(r"(?P<hdfs>[a-z]+)(?:-[a-z]+)?(?P<four>4?)")


@dataclass(frozen=True, slots=True)
class Side:
    """Where the servers of one side are.

    Args:
        name: e.g. ``source``; ``source4`` is a metastore 4.2.0 ``source-short`` another 3.1.3, both on ``source``'s HDFS.
        metastore: ``thrift://127.0.0.1:port``.
        hdfs: ``hdfs://127.0.0.1:port/``.
        webhdfs: ``http://127.0.0.1:port``.
        warehouse: URI of the warehouse directory.
        cm_root: URI of ``hive.repl.cmrootdir``.
        conf: folder with ``core-site.xml`` and ``hdfs-site.xml`` for Hadoop clients.
    """

    name: str
    metastore: str
    hdfs: str
    webhdfs: str
    warehouse: str
    cm_root: str
    conf: Path

    @property
    def hive(self) -> int:
        """Major version of the metastore, 3 or 4."""
        return 4 if self.name.endswith("4") else 3


@dataclass(frozen=True, slots=True)
class Status:
    """One server: ``state`` is ``running``, ``stopped``, or ``died`` where nobody stopped it."""

    name: str
    address: str
    pid: int | None
    state: str


@dataclass
class Cluster:
    """The servers in one data folder.

    Args:
        directory: data folder; made by the first :meth:`up`.
        properties: metastore properties by side, e.g. ``{"source-short": {"metastore.event.db.listener.timetolive": "5s"}}``;
            they hold from the next start of that metastore.
    """

    directory: Path
    properties: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    def __post_init__(self) -> None:
        self.directory = self.directory.absolute()

    def up(self, names: Sequence[str] = DEFAULT_SIDES, progress: Progress | None = None) -> None:
        """Starts what does not run yet of these sides and waits until all of it serves.

        Args:
            names: sides; those of one HDFS (``source``, ``source4``) share it. Or parts, as :meth:`down` takes them:
                ``source.metastore``, with the HDFS that it writes to, or ``source.hdfs`` alone.
            progress: shows downloads and the start of each server.

        Raises:
            BadRequest: Java is missing or too old, a name is no side's, a jar is not the locked one, a port is taken.
            ReplicationError: a server does not start.
        """
        sides, metastores = _parts(names)
        java.java()
        self.directory.mkdir(parents=True, exist_ok=True)
        with self._locked():
            ports = self._assign_ports(sides)
            if not all(processes.running(self.directory / server) for server in self._servers_of(sides, metastores)):
                self._start(sides, metastores, ports, progress)

    def down(self, names: Sequence[str] | None = None) -> None:
        """Stops servers, metastores before the HDFS that they write to; data and ports stay.

        Args:
            names: sides, or ``source.hdfs`` or ``source.metastore`` for a part of one; all where None. Stopping a side that
                shares another's HDFS (``source4``) leaves the HDFS alone; stopping the HDFS's own side stops all on it.

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
        store = Hdfs(_parse(name), self.directory, ports[_parse(name)], ())
        return Side(
            name=name,
            metastore=f"thrift://127.0.0.1:{ports[name]['metastore']}",
            hdfs=f"{store.uri}/",
            webhdfs=f"http://127.0.0.1:{store.ports['namenode_http']}",
            warehouse=metastore.warehouse(store, name),
            cm_root=metastore.cm_root(store, name),
            conf=store.conf,
        )

    def sides(self) -> list[str]:
        """Names of the sides ever started here."""
        return [name for name, ports in self._ports().items() if "metastore" in ports]

    def _start(
        self, names: Sequence[str], with_metastore: Sequence[str], ports: dict[str, dict[str, int]], progress: Progress | None
    ) -> None:
        own = {name: {3: "hms3", 4: "hive4"}[_hive(name)] for name in with_metastore}
        groups = jars.fetch_groups(["hadoop", *sorted(set(own.values()))], progress)
        hadoop = groups["hadoop"]
        stores = {owner: Hdfs(owner, self.directory, ports[owner], hadoop.jars) for owner in dict.fromkeys(map(_parse, names))}
        metastores = [self._metastore(name, ports, stores, hadoop, groups[group]) for name, group in own.items()]
        servers = 2 * len(stores) + len(metastores)
        task = progress.add_task(f"Starting {servers} servers", total=servers) if progress else None

        def advance(count: int) -> None:
            if progress and task is not None:
                progress.advance(task, count)

        with ThreadPoolExecutor(len(stores) + len(metastores)) as pool:
            ready = {owner: pool.submit(_start_hdfs, store, advance) for owner, store in stores.items()}
            started = [pool.submit(_start_metastore, store, ready[store.hdfs.name], advance) for store in metastores]
            for future in (*ready.values(), *started):
                future.result()

    def _metastore(
        self, name: str, ports: dict[str, dict[str, int]], stores: dict[str, Hdfs], hadoop: Group, own: Group
    ) -> Metastore:
        software = metastore.software(_hive(name), hadoop, own)
        extra = dict(self.properties.get(name, {}))
        return Metastore(name, self.directory, ports[name]["metastore"], stores[_parse(name)], software, extra)

    def _assign_ports(self, names: Sequence[str]) -> dict[str, dict[str, int]]:
        ports = self._ports()
        wanted = [(_parse(name), hdfs.PORTS) for name in names] + [(name, ("metastore",)) for name in names]
        for owner, roles in wanted:
            for role in roles:
                if role not in ports.setdefault(owner, {}):
                    ports[owner][role] = _free_port({port for known in ports.values() for port in known.values()})
        self._state.write_text(json.dumps(ports, indent=2) + "\n", encoding="utf-8")
        return ports

    def _ports(self) -> dict[str, dict[str, int]]:
        return json.loads(self._state.read_text(encoding="utf-8")) if self._state.is_file() else {}

    def _servers(self) -> dict[str, int]:
        roles = ("namenode", "datanode", "metastore")
        return {f"{owner}.{role}": ports[role] for owner, ports in self._ports().items() for role in roles if role in ports}

    def _servers_of(self, names: Sequence[str], metastores: Sequence[str]) -> list[str]:
        wanted = {f"{name}.metastore" for name in metastores}
        wanted |= {f"{_parse(name)}.{role}" for name in names for role in ("namenode", "datanode")}
        return [server for server in self._servers() if server in wanted]

    def _select(self, name: str) -> list[str]:
        side, _, part = name.partition(".")
        roles = {"": ("namenode", "datanode", "metastore"), "hdfs": ("namenode", "datanode")}.get(part, (part,))
        on_it = [side, *(other for other in self._ports() if not part and _parse(other) == side)]
        chosen = [server for server in self._servers() if server in {f"{owner}.{role}" for owner in on_it for role in roles}]
        if not chosen:
            raise BadRequest(f"no server {name!r} in {self.directory}; known: {', '.join(self._servers()) or 'none'}")
        return chosen

    def _status(self, name: str, port: int) -> Status:
        process = processes.running(self.directory / name)
        state = "running" if process else "died" if processes.was_started(self.directory / name) else "stopped"
        scheme = {"namenode": "hdfs://", "metastore": "thrift://"}.get(name.partition(".")[2], "")
        return Status(name, f"{scheme}127.0.0.1:{port}", process.pid if process else None, state)

    @property
    def _state(self) -> Path:
        return self.directory / "ports.json"

    @contextmanager
    def _locked(self) -> Generator[None]:
        with (self.directory / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _start_hdfs(store: Hdfs, advance: Callable[[int], None]) -> None:
    servers = store.servers
    if not all(processes.running(server.folder) for server in servers):
        store.prepare()
    for server in servers:
        processes.start(server)
    for server in servers:
        processes.wait(server)
        advance(1)


def _start_metastore(store: Metastore, hdfs_serves: Future[None], advance: Callable[[int], None]) -> None:
    server = store.server
    if not processes.running(server.folder):
        store.prepare()
        hdfs_serves.result()  # it makes its directories at start, which takes an HDFS that serves
        processes.start(server)
    processes.wait(server)
    advance(1)


def _parts(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The sides of names such as ``source`` or ``source.hdfs``, and those of them whose metastores are meant, too."""
    parts = [name.partition(".")[::2] for name in names]
    for side, part in parts:
        _parse(side)
        if part not in ("", "hdfs", "metastore"):
            raise BadRequest(f"{side}.{part} is no part of a side: name {side}, {side}.hdfs or {side}.metastore")
    return list(dict.fromkeys(side for side, _ in parts)), list(dict.fromkeys(side for side, part in parts if part != "hdfs"))


def _parse(name: str) -> str:
    """Name of the HDFS of a side."""
    found = _SIDE.fullmatch(name)
    if not found:
        raise BadRequest(f"{name!r} is not the name of a side such as source, target, source4 or target4")
    return found["hdfs"]


def _hive(name: str) -> int:
    return 4 if name.endswith("4") else 3


def _free_port(taken: set[int]) -> int:
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port not in taken:
                return port
    raise BadRequest("no free loopback port")
