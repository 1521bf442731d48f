"""Where the two sides of a policy are: metastores, storage roots, and the directories that objects may lie in."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

from hive_replication.policy.addresses import require_store, valid_metastore, valid_place, valid_webhdfs, without_empty_segments
from hive_replication.policy.scope import by_lower_name
from hive_replication.policy.secrets import KEY, only_references, without_password
from hive_replication.policy.wrong_setting import KEPT, unless_kept


def _storage_root(root: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/]*/.*", root + "/"):
        raise ValueError(f"{root!r} is not a storage root such as hdfs://namenode:8020/")
    scheme, _, rest = root.partition("://")
    if (scheme == "file") != (rest.partition("/")[0] == ""):
        how = "no host, as in file:///path" if scheme == "file" else f"its store, as in {scheme}://name/: else any would do"
        raise ValueError(f"the storage root {root!r} has to name {how}")
    return valid_place(root).rstrip("/") + "/" if rest.strip("/") else "file:///"


def valid_directory(directory: str) -> str:
    """A full URI of a directory, without a slash at its end.

    Raises:
        ValueError: it is none, or holds a password.
    """
    without_password(directory)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*(/.*)?", directory) or directory.lower().startswith("file://") != (
        directory.lower().startswith("file:///")
    ):
        raise ValueError(f"{directory!r} is not a directory such as hdfs://namenode:8020/lake or file:///lake")
    require_store(directory)
    if any(segment in (".", "..") for segment in directory.split("/")):
        raise ValueError(f"{directory!r} has a segment '.' or '..'")
    return directory.rstrip("/") if directory.rstrip("/").count("/") > 1 else directory


#: A directory of the target's storage. Those that objects of the source name may have other forms.
Place = Annotated[str, unless_kept(valid_directory), unless_kept(valid_place)]
#: One of a database, which the metastore keeps as Hadoop spells it.
Location = Annotated[str, unless_kept(valid_directory), unless_kept(without_empty_segments), unless_kept(valid_place)]


def valid_locations(locations: dict[str, str]) -> dict[str, str]:
    """Directories of databases, by their names in lower case.

    Raises:
        ValueError: two of them lie in one another.
    """
    places: dict[str, str] = {}
    for name, directory in locations.items():
        if other := next((one for one in places.values() if _in_one_another(one, directory)), None):
            raise ValueError(f"{directory} and {other} lie in one another: each database needs a directory of its own")
        places[name] = directory
    return by_lower_name(places)


def _in_one_another(first: str, second: str) -> bool:
    return f"{first}/".startswith(f"{second}/") or f"{second}/".startswith(f"{first}/")


class Settings(BaseModel):
    """Settings that no one changes, and in which nothing unknown may stand."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Tls(Settings):
    """How the servers of one side are trusted, and who this process is to them. Certificates are always verified."""

    ca: str | None = Field(
        default=None, description="PEM file with the certificate authorities to trust; those of the system where it is not set"
    )
    certificate: str | None = Field(default=None, description="PEM file with a client certificate, for servers that ask for one")
    key: str | None = Field(default=None, description="PEM file with its key, where the certificate's file does not hold it")
    key_password: Annotated[str, Field(pattern=KEY)] | None = Field(
        default=None, description="Password of the key, as ${env:NAME} or ${file:/path}"
    )

    @model_validator(mode="after")
    def _key_has_a_certificate(self) -> Tls:
        if (self.key or self.key_password) and not self.certificate:
            raise ValueError("tls.key and tls.key_password belong to a client certificate: set tls.certificate too")
        return self


class Account(Settings):
    """The account by which servers that ask for Kerberos are used."""

    principal: str | None = Field(
        default=None, pattern=r"^[^@\s]+@[^@\s]+$", description="e.g. repl@EXAMPLE.COM; without: that of the ticket cache"
    )
    keytab: str | None = Field(
        default=None, pattern=r"^/", description="Path of the principal's keytab; without: the ticket cache of kinit is used"
    )

    @model_validator(mode="after")
    def _keytab_of_a_principal(self) -> Self:
        if self.keytab and not self.principal:
            raise ValueError("keytab needs principal: name the account that the keytab is of")
        return self


class Kerberos(Account):
    """The account by which one side is read or written, and the principal of its metastore."""

    metastore_principal: str = Field(
        pattern=r"^[^/@\s]+/[^/@\s]+@[^@\s]+$",
        description="As hive.metastore.kerberos.principal of the metastore, e.g. hive/_HOST@EXAMPLE.COM",
    )


class Root(Settings):
    """A storage root: every path under it may be read (source) or written (target); paths outside are refused."""

    uri: Annotated[str, unless_kept(without_password), unless_kept(_storage_root)] = Field(
        description="e.g. hdfs://namenode:8020/"
    )
    webhdfs: Annotated[str, unless_kept(without_password), unless_kept(valid_webhdfs)] | None = Field(
        default=None,
        description="WebHDFS address for checksums of an hdfs:// root, e.g. http://namenode:9870, or https://namenode:9871",
    )
    webhdfs_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts (host or host:port) to which WebHDFS may redirect besides the DataNodes that the NameNode lists",
    )
    tls: Tls | None = Field(default=None, description="TLS of its WebHDFS, where it differs from that of the side")
    kerberos: Account | None = Field(default=None, description="Its account, where it differs from that of the side")
    failover_seconds: float = Field(
        default=120,
        ge=0,
        description="Where an hdfs:// root names a nameservice: how long a call waits until one of its NameNodes is active",
    )
    options: Annotated[dict[str, str], unless_kept(only_references)] = Field(
        default_factory=dict[str, str],
        description="Options of the file system (Hadoop's names, or fsspec's with values in JSON where they are no texts); "
        "secrets as ${env:NAME} or ${file:/path}",
    )

    @property
    def patience(self) -> float:
        """Seconds that a call waits for a NameNode that can become active; 0 where no other one could."""
        return self.failover_seconds if self.nameservice else 0

    @property
    def hdfs(self) -> str:
        """The NameNode or nameservice of HDFS, or ""."""
        scheme, _, rest = self.uri.partition("://")
        return rest.partition("/")[0] if scheme == "hdfs" else ""

    @property
    def nameservice(self) -> str:
        """Of HDFS, or ""."""
        # Hadoop's clients too take an address with a port for a NameNode, and one without for a nameservice.
        return "" if ":" in self.hdfs else self.hdfs


def pair_hash(pair: tuple[str, str]) -> str:
    """Names the metastores of source and target where policies with one dump root keep what is theirs below it."""
    return hashlib.sha256("\0".join(pair).encode()).hexdigest()[:8]


class Warehouse(Settings):
    """One side: a metastore and the storage that its tables live on."""

    metastore: Annotated[str, unless_kept(without_password), unless_kept(valid_metastore)] = Field(
        description="e.g. thrift://host:9083; Hive 4 over HTTP: https://host:9083/metastore"
    )
    metastore_ssl: bool = Field(default=False, description="Whether thrift:// is spoken over TLS (hive.metastore.use.SSL)")
    tls: Tls | None = Field(default=None, description="Certificates of this side, for its metastore and WebHDFS")
    kerberos: Kerberos | None = Field(default=None, description="The account, where metastore and HDFS ask for Kerberos")
    roots: tuple[Root, ...] = Field(min_length=1, description="Storage roots; nothing outside of them is read or written")
    paths: tuple[Annotated[str, unless_kept(valid_directory)], ...] = Field(
        default=(),
        description="Directories that objects may lie in besides those of their databases, e.g. hdfs://namenode:8020/lake; "
        "at the source also other places of resources and schemas, e.g. http://repository/udfs",
    )

    @model_validator(mode="after")
    def _one_account_at_each_hdfs(self, info: ValidationInfo) -> Self:
        known: dict[str, Root] = {}
        for root in self.storage_roots if info.context != KEPT else ():
            other = known.setdefault(root.hdfs, root)
            if root.hdfs and other.kerberos != root.kerberos:
                raise ValueError(
                    f"{other.uri} and {root.uri} are on one HDFS, which a process uses by one account: name the same kerberos "
                    "for both"
                )
        return self

    @property
    def storage_roots(self) -> tuple[Root, ...]:
        """The roots as they are connected to: with TLS and account of the side where they have none of their own.

        WebHDFS, options and account are of a whole HDFS: a root that names none has those of another one there.
        """
        return tuple(map(self._connected, self.roots))

    def _connected(self, root: Root) -> Root:
        here = [root, *(other for other in self.roots if root.hdfs and other.hdfs == root.hdfs)]
        web = next((one for one in here if one.webhdfs), root)
        about_web = {"webhdfs": web.webhdfs, "webhdfs_hosts": web.webhdfs_hosts, "tls": web.tls or self.tls}
        options = next((one.options for one in here if one.options), root.options)
        kerberos = next((one.kerberos for one in here if one.kerberos), self._account)
        return root.model_copy(update={**about_web, "options": options, "kerberos": kerberos})

    @property
    def _account(self) -> Account | None:
        side = self.kerberos
        return Account(principal=side.principal, keytab=side.keytab) if side else None


def with_tokens_of_their_own(source: Warehouse, target: Warehouse) -> None:
    """Both sides may name their HDFS alike, but not with Kerberos: ``hdfs-native`` finds tokens by the name of the nameservice.

    Raises:
        ValueError: one name means two clusters.
    """
    known = {root.nameservice: root.options for root in source.storage_roots if root.kerberos and root.nameservice}
    for root in target.storage_roots:
        if root.kerberos and known.get(root.nameservice, root.options) != root.options:
            raise ValueError(
                f"the nameservice {root.nameservice} is another one on either side: their tokens (Kerberos) cannot be told apart"
            )
