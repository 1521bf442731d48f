"""Hadoop's key management server (KMS), which keeps the keys of encryption zones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import urllib3

from hive_replication import process
from resources.embedded import jars, java, processes
from resources.embedded.hdfs import write_xml
from resources.embedded.ports import reserve
from resources.embedded.processes import Server

_LOG4J = """log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.SimpleLayout
"""


@dataclass(frozen=True)
class Kms:
    """A server on loopback that believes who its clients say they are.

    Args:
        folder: of its configuration and keys.
        port: that it listens on.
    """

    folder: Path
    port: int

    @property
    def properties(self) -> dict[str, str]:
        """What an HDFS says of it in ``core-site.xml``."""
        return {"hadoop.security.key.provider.path": f"kms://http@127.0.0.1:{self.port}/kms"}

    def make_key(self, name: str) -> None:
        url = f"http://127.0.0.1:{self.port}/kms/v1/keys?user.name={process.account()}"
        answer = urllib3.request("POST", url, json={"name": name})
        assert answer.status == 201, answer.data

    def server(self) -> Server:
        path = ":".join(map(str, (self.folder, *jars.fetch_groups(["kms"])["kms"].jars)))
        about = (f"-Dkms.config.dir={self.folder}", "-Dlog4j.configuration=kms-log4j.properties")
        main = "org.apache.hadoop.crypto.key.kms.server.KMSWebServer"
        command = (str(java.java()), *java.ADD_OPENS, *java.QUICK, *about, "-Xmx256m", "-cp", path, main)
        return Server("kms", self.folder, command, (self.port,))

    def configure(self) -> None:
        account = process.account()
        settings = {
            "hadoop.kms.key.provider.uri": f"jceks://file@{self.folder}/keys",
            "hadoop.kms.http.host": "127.0.0.1",
            "hadoop.kms.http.port": str(self.port),
            # DataNodes ask for the keys of who reads and writes by WebHDFS.
            **{f"hadoop.kms.proxyuser.{account}.{which}": "*" for which in ("users", "hosts")},
        }
        allowed = (f"default.key.acl.{operation}" for operation in ("MANAGEMENT", "GENERATE_EEK", "DECRYPT_EEK", "READ"))
        write_xml(self.folder / "core-site.xml", {})
        write_xml(self.folder / "kms-site.xml", settings)
        write_xml(self.folder / "kms-acls.xml", dict.fromkeys(allowed, "*"))
        (self.folder / "kms-log4j.properties").write_text(_LOG4J, encoding="utf-8")


@contextmanager
def kms(folder: Path) -> Iterator[Kms]:
    """Starts a server, and ends it."""
    with reserve() as reserved:
        made = Kms(folder, reserved.getsockname()[1])
        made.configure()
        server = made.server()
        processes.start(server)
    try:
        processes.wait(server)
        yield made
    finally:
        processes.stop([server.folder])
