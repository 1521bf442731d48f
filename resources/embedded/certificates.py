"""TLS for the embedded servers: a certificate authority of their own, and the key store that HDFS and metastores serve with."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

_NAMES = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Certificates:
    """What a data folder's servers are secured with.

    Args:
        folder: with ``ca.pem`` and ``trust.p12`` (for clients), ``server.p12`` and ``password``.
    """

    folder: Path

    @property
    def ca(self) -> Path:
        """The certificate authority, in PEM."""
        return self.folder / "ca.pem"

    def hdfs(self, address: dict[str, str]) -> dict[str, str]:
        """Settings of HDFS in place of those of plain HTTP; the ports are the same.

        Args:
            address: by the names of ports.
        """
        return {
            "dfs.http.policy": "HTTPS_ONLY",
            "dfs.namenode.https-address": address["namenode_http"],
            "dfs.datanode.https.address": address["datanode_http"],
        }

    def ssl_server(self) -> dict[str, str]:
        """Content of Hadoop's ``ssl-server.xml``."""
        store = "ssl.server.keystore"
        names = (f"{store}.password", f"{store}.keypassword")
        return {f"{store}.location": str(self._store), f"{store}.type": "pkcs12"} | dict.fromkeys(names, self._password)

    def ssl_client(self) -> dict[str, str]:
        """Content of Hadoop's ``ssl-client.xml``: a NameNode on standby reads the edits of a JournalNode by HTTPS."""
        store = "ssl.client.truststore"
        return {
            f"{store}.location": str(self.folder / "trust.p12"),
            f"{store}.type": "pkcs12",
            f"{store}.password": self._password,
        }

    def metastore(self) -> dict[str, str]:
        """Settings of a metastore."""
        return {
            "hive.metastore.use.SSL": "true",
            "hive.metastore.keystore.path": str(self._store),
            "hive.metastore.keystore.password": self._password,
            "metastore.keystore.type": "pkcs12",
            "metastore.keymanagerfactory.algorithm": "SunX509",  # Hive 4 over HTTPS has no default that works
        }

    @property
    def _store(self) -> Path:
        return self.folder / "server.p12"

    @property
    def _password(self) -> str:
        return (self.folder / "password").read_text(encoding="utf-8")


def of(folder: Path) -> Certificates | None:
    """The certificates of a data folder; None where its servers speak without TLS."""
    found = Certificates(folder / "tls")
    return found if found.ca.is_file() else None


def make(folder: Path) -> None:
    """Makes a certificate authority and a key store in a data folder, unless it has them."""
    if of(folder):
        return
    # Imported here: only those who start servers with TLS need them.
    import trustme
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
    from cryptography.x509 import load_pem_x509_certificate

    place = folder / "tls"
    place.mkdir(0o700, parents=True, exist_ok=True)
    authority, password = trustme.CA(), secrets.token_hex(16)
    made = authority.issue_cert(*_NAMES)
    key = load_pem_private_key(made.private_key_pem.bytes(), None)
    certificate = load_pem_x509_certificate(made.cert_chain_pems[0].bytes())
    encryption = BestAvailableEncryption(password.encode())
    store = pkcs12.serialize_key_and_certificates(b"server", key, certificate, None, encryption)  # type: ignore[arg-type]
    trusted = pkcs12.PKCS12Certificate(load_pem_x509_certificate(authority.cert_pem.bytes()), b"ca")
    (place / "password").write_text(password, encoding="utf-8")
    (place / "server.p12").write_bytes(store)
    (place / "trust.p12").write_bytes(pkcs12.serialize_java_truststore([trusted], encryption))
    authority.cert_pem.write_to_path(place / "ca.pem")  # last: where it is, all is
