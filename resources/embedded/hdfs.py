"""A real HDFS on loopback: one NameNode and one DataNode, which ask for permissions."""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from resources.embedded import certificates, java, processes
from resources.embedded.kerberos import Kdc
from resources.embedded.processes import Server

PORTS = ("namenode", "namenode_http", "datanode", "datanode_ipc", "datanode_http")
_HADOOP = "org.apache.hadoop.hdfs.server"


@dataclass(frozen=True, slots=True)
class Hdfs:
    """Where an HDFS is and what it runs with.

    Args:
        name: e.g. ``source``.
        folder: data folder of the cluster; the servers get folders below it.
        ports: by the names of :data:`PORTS`.
        jars: class path of the servers.
        kdc: of the side, where it runs with Kerberos.
        properties: further ones of ``core-site.xml``.
    """

    name: str
    folder: Path
    ports: dict[str, int]
    jars: tuple[Path, ...]
    kdc: Kdc | None = None
    properties: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def uri(self) -> str:
        """``hdfs://127.0.0.1:port``, without a slash at the end."""
        return f"hdfs://127.0.0.1:{self.ports['namenode']}"

    @property
    def web(self) -> str:
        """The NameNode's HTTP address."""
        return self._web("namenode")

    @property
    def options(self) -> dict[str, str]:
        """What clients have to know besides the URI, by Hadoop's names."""
        return {}

    @property
    def conf(self) -> Path:
        """Folder of ``core-site.xml`` and ``hdfs-site.xml`` for servers and clients."""
        return self.folder / f"{self.name}.hdfs-conf"

    @property
    def servers(self) -> tuple[Server, ...]:
        """NameNode and DataNode; the DataNode is ready once the NameNode counts it and has left safe mode."""
        namenode = self._server("namenode", f"{_HADOOP}.namenode.NameNode", ("namenode", "namenode_http"))
        datanode = self._server("datanode", f"{_HADOOP}.datanode.DataNode", ("datanode_http", "datanode", "datanode_ipc"))
        return namenode, replace(datanode, ready=self._serves_blocks)

    def prepare(self) -> None:
        """Writes the configuration and formats the file system if it is new."""
        namenode, *_ = self.servers
        for server in self.servers:
            server.folder.mkdir(parents=True, exist_ok=True)
        self._configure()
        if not (namenode.folder / "data" / "current" / "VERSION").is_file():
            processes.run_once([*namenode.command, "-format", "-force"], namenode.folder, {}, "format.log")

    def _server(self, role: str, main: str, ports: tuple[str, ...], settings: Mapping[str, str] | None = None) -> Server:
        folder = self.folder / f"{self.name}.{role}"
        given = (f"-D{name}={value}" for name, value in (settings or {}).items())
        return Server(folder.name, folder, (*self._java(), main, *given), tuple(self.ports[port] for port in ports))

    def _java(self) -> tuple[str, ...]:
        path = ":".join(map(str, (self.conf, *self.jars)))
        return (str(java.java()), *java.ADD_OPENS, *java.QUICK, *self.java_options, "-Xmx512m", "-cp", path)

    @property
    def java_options(self) -> tuple[str, ...]:
        """What a JVM needs besides the configuration to be a client."""
        return self.kdc.java_options if self.kdc else ()

    def _configure(self) -> None:
        self.conf.mkdir(parents=True, exist_ok=True)
        write_xml(
            self.conf / "core-site.xml",
            {
                "fs.defaultFS": self.uri,
                "hadoop.proxyuser.root.hosts": "*",
                "hadoop.proxyuser.root.groups": "*",
                **(self.kdc.core_settings(tls=certificates.of(self.folder) is not None) if self.kdc else {}),
                **self.properties,
            },
        )
        tls = certificates.of(self.folder)
        write_xml(
            self.conf / "hdfs-site.xml",
            {
                **self._layout(),
                "dfs.permissions.enabled": "true",
                "dfs.namenode.safemode.extension": "0",
                # On one machine a small file's close meets this delay every time (Hadoop's default: 400 ms).
                "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
                **(tls.hdfs({name: self._address(name) for name in self.ports}) if tls else {}),
                **(self.kdc.hdfs_settings() if self.kdc else {}),
            },
        )
        if tls:
            write_xml(self.conf / "ssl-server.xml", tls.ssl_server())
            write_xml(self.conf / "ssl-client.xml", tls.ssl_client())

    def _layout(self) -> dict[str, str]:
        """Which servers there are and where."""
        return {
            "dfs.replication": "1",
            "dfs.namenode.name.dir": str(self.folder / f"{self.name}.namenode" / "data"),
            "dfs.datanode.data.dir": str(self.folder / f"{self.name}.datanode" / "data"),
            "dfs.namenode.http-address": self._address("namenode_http"),
            "dfs.datanode.address": self._address("datanode"),
            "dfs.datanode.ipc.address": self._address("datanode_ipc"),
            "dfs.datanode.http.address": self._address("datanode_http"),
        }

    def _web(self, role: str) -> str:
        return f"{'https' if certificates.of(self.folder) else 'http'}://{self._address(f'{role}_http')}"

    def _address(self, port: str) -> str:
        return f"127.0.0.1:{self.ports[port]}"

    def _serves_blocks(self) -> bool:
        if self.kdc:  # the NameNode tells only who has a ticket
            return self._left_safe_mode("namenode") and self._registered("datanode_http")
        beans = self._beans("namenode_http", "Hadoop:service=NameNode,name=FSNamesystemState")
        return any(bean["NumLiveDataNodes"] > 0 and bean["FSState"] == "Operational" for bean in beans)

    def _left_safe_mode(self, namenode: str) -> bool:
        return "Leaving safe mode" in self._log(namenode)

    def _log(self, role: str) -> str:
        return (self.folder / f"{self.name}.{role}" / "server.log").read_text(encoding="utf-8", errors="replace")

    def _registered(self, datanode: str) -> bool:
        """Whether a DataNode serves a NameNode, by the name of its HTTP port."""
        beans = self._beans(datanode, "Hadoop:service=DataNode,name=DataNodeInfo")
        return any(
            actor["ActorState"] == "RUNNING" for bean in beans for actor in json.loads(bean.get("BPServiceActorInfo", "[]"))
        )

    def _beans(self, port: str, query: str) -> list[dict[str, Any]]:
        """Metrics of a server; none while it starts."""
        tls = certificates.of(self.folder)
        trusted = ssl.create_default_context(cafile=tls.ca) if tls else None
        url = f"{'https' if tls else 'http'}://127.0.0.1:{self.ports[port]}/jmx?qry={query}"
        try:
            with urllib.request.urlopen(url, timeout=5, context=trusted) as answer:  # noqa: S310 (of this machine)
                return json.load(answer)["beans"]
        except OSError:
            return []


def write_xml(path: Path, properties: dict[str, str]) -> None:
    """Writes a Hadoop configuration file."""
    lines = (f"<property><name>{escape(k)}</name><value>{escape(v)}</value></property>" for k, v in properties.items())
    path.write_text("\n".join(("<configuration>", *lines, "</configuration>", "")), encoding="utf-8")
