"""HDFS with high availability on loopback: two NameNodes that share their edits through a JournalNode, and two DataNodes.

One JournalNode is a quorum of one: Hadoop takes it, and NameNodes speak to it as to three. There is no ZooKeeper, so nothing
fails over by itself: :meth:`Nameservice.take_over` does what a failover controller does.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace

from resources.embedded import processes
from resources.embedded.hdfs import PORTS, Hdfs
from resources.embedded.processes import Server

_SECOND = {name: name.replace("node", "node2", 1) for name in PORTS}
#: What it listens on besides the ports of an HDFS without high availability.
MORE_PORTS = (*_SECOND.values(), "journalnode", "journalnode_http")
#: Roles of its servers in the order in which they start.
ROLES = ("journalnode", "namenode", "namenode2", "datanode", "datanode2")
_NAMENODES = ("namenode", "namenode2")
_SCHEMES = ("http", "https")  # of which HDFS serves one (dfs.http.policy)
_HDFS = "org.apache.hadoop.hdfs"


@dataclass(frozen=True, slots=True)
class Nameservice(Hdfs):
    """An HDFS whose NameNodes are named by a nameservice, which is called as the side."""

    @property
    def uri(self) -> str:
        """``hdfs://nameservice``, without a slash at the end."""
        return f"hdfs://{self.name}"

    @property
    def web(self) -> str:
        """The HTTP addresses of both NameNodes, comma-separated."""
        return ",".join(self._web(role) for role in _NAMENODES)

    @property
    def options(self) -> dict[str, str]:
        """What clients have to know of the nameservice, by Hadoop's names."""
        provider = f"{_HDFS}.server.namenode.ha.ConfiguredFailoverProxyProvider"
        return {
            "dfs.nameservices": self.name,
            f"dfs.ha.namenodes.{self.name}": ",".join(_NAMENODES),
            **{f"dfs.namenode.rpc-address.{self.name}.{role}": self._address(role) for role in _NAMENODES},
            f"dfs.client.failover.proxy.provider.{self.name}": provider,
        }

    @property
    def servers(self) -> tuple[Server, ...]:
        """JournalNode, NameNodes and DataNodes; the second NameNode is ready once one of them is active."""
        journalnode, first, second, *datanodes = (self._role(role) for role in ROLES)
        return journalnode, first, replace(second, ready=self._has_active), *datanodes

    def prepare(self) -> None:
        """Writes the configuration; formats the file system, with the same metadata for both NameNodes, if it is new."""
        for server in self.servers:
            server.folder.mkdir(parents=True, exist_ok=True)
        self._configure()
        first, second = (self.folder / f"{self.name}.{role}" / "data" for role in _NAMENODES)
        if (second / "current" / "VERSION").is_file():
            return
        journalnode = self._role("journalnode")  # it is formatted too
        processes.start(journalnode)
        processes.wait(journalnode)
        processes.run_once([*self._role("namenode").command, "-format", "-force"], first.parent, {}, "format.log")
        shutil.copytree(first, second)

    def active(self) -> str | None:
        """Role of the active NameNode, ``namenode`` or ``namenode2``; None while there is none."""
        return next((role for role in _NAMENODES if self._state(role) == "active"), None)

    def take_over(self, role: str) -> None:
        """Makes a NameNode active while the other one is down or on standby.

        Raises:
            ReplicationError: it does not become active; the message names a log.
        """
        command = [*self._java(), f"{_HDFS}.tools.DFSHAAdmin", "-transitionToActive", "--forceactive", role]
        environment = self.kdc.hadoop_environment() if self.kdc else {}
        processes.run_once(command, self.folder / f"{self.name}.{role}", environment, "haadmin.log")

    def _has_active(self) -> bool:
        if self.active() is None and all(self._state(role) for role in _NAMENODES):
            self.take_over(_NAMENODES[0])
        return self.active() is not None

    def _state(self, role: str) -> str | None:
        if self.kdc:
            return self._logged_state(role)
        beans = self._beans(f"{role}_http", "Hadoop:service=NameNode,name=NameNodeStatus")
        return next((str(bean["State"]) for bean in beans if "State" in bean), None)

    def _logged_state(self, role: str) -> str | None:
        """By the log of a NameNode that runs: with Kerberos it answers only who has a ticket."""
        folder = self.folder / f"{self.name}.{role}"
        if not processes.running(folder):
            return None
        log = self._log(role)
        begun = {state: log.rfind(f"Starting services required for {state} state") for state in ("active", "standby")}
        state = max(begun, key=begun.__getitem__)
        return state if begun[state] >= 0 else None

    def _role(self, role: str) -> Server:
        """A server of a role; it gets what no other one has on its command line."""
        kind, data = role.rstrip("2"), str(self.folder / f"{self.name}.{role}" / "data")
        if kind == "journalnode":
            return self._server(role, f"{_HDFS}.qjournal.server.JournalNode", ("journalnode", "journalnode_http"))
        if kind == "namenode":
            own = {"dfs.ha.namenode.id": role, "dfs.namenode.name.dir": data}
            return self._server(role, f"{_HDFS}.server.namenode.NameNode", (role, f"{role}_http"), own)
        own = {
            "dfs.datanode.data.dir": data,
            "dfs.datanode.address": self._address(role),
            "dfs.datanode.ipc.address": self._address(f"{role}_ipc"),
            **dict.fromkeys(("dfs.datanode.http.address", "dfs.datanode.https.address"), self._address(f"{role}_http")),
        }
        server = self._server(role, f"{_HDFS}.server.datanode.DataNode", (f"{role}_http", role, f"{role}_ipc"), own)
        return replace(server, ready=self._serves_blocks)

    def _layout(self) -> dict[str, str]:
        return self.options | {
            "dfs.replication": "2",
            # By this name NameNodes ask for a ticket to read edits.
            "dfs.namenode.shared.edits.dir": f"qjournal://localhost:{self.ports['journalnode']}/{self.name}",
            "dfs.journalnode.edits.dir": str(self.folder / f"{self.name}.journalnode" / "data"),
            "dfs.journalnode.rpc-address": self._address("journalnode"),
            **{f"dfs.journalnode.{scheme}-address": self._address("journalnode_http") for scheme in _SCHEMES},
            "dfs.ha.fencing.methods": "shell(/bin/true)",
            **{
                f"dfs.namenode.{scheme}-address.{self.name}.{role}": self._address(f"{role}_http")
                for scheme in _SCHEMES
                for role in _NAMENODES
            },
        }

    def _serves_blocks(self) -> bool:
        active = self.active()
        if active is None:
            return False
        if self.kdc:
            return self._left_safe_mode(active) and all(map(self._registered, ("datanode_http", "datanode2_http")))
        beans = self._beans(f"{active}_http", "Hadoop:service=NameNode,name=FSNamesystemState")
        return any(bean["NumLiveDataNodes"] == 2 and bean["FSState"] == "Operational" for bean in beans)
