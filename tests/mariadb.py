"""A MariaDB server (Debian's package mariadb-server) for the database of one metastore."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from resources.embedded import jars
from resources.embedded.ports import reserve
from resources.embedded.postgresql import _as_ordinary_user

_PATIENCE = 120  # seconds until it serves


@dataclass(frozen=True)
class Mariadb:
    """A server on loopback, for which nothing has to survive a crash.

    Args:
        folder: of its data; open to the account that it runs as.
        port: that it listens on.
        password: of the account hive.
    """

    folder: Path
    port: int
    password: str

    def properties(self, database: str) -> dict[str, str]:
        """What a metastore's configuration says of a database here. The driver has to say MySQL: Hive knows no other name."""
        return {
            "javax.jdo.option.ConnectionURL": f"jdbc:mariadb://127.0.0.1:{self.port}/{database}?useMysqlMetadata=true",
            "javax.jdo.option.ConnectionDriverName": "org.mariadb.jdbc.Driver",
            "javax.jdo.option.ConnectionUserName": "hive",
            "javax.jdo.option.ConnectionPassword": self.password,
        }

    def run(self, sql: str, *more: str) -> str:
        """Runs SQL as root, through the server's socket."""
        command = ["mariadb", "--no-defaults", "-uroot", f"--socket={self.folder}/socket", "-N", *more]
        return subprocess.run(command, input=sql, capture_output=True, text=True, check=True).stdout

    def create(self, database: str) -> None:
        """Makes the database of a metastore 3.1.3, by the script of its schema tool."""
        distribution = jars.fetch_groups(["hms3"])["hms3"].distribution
        assert distribution is not None
        script = distribution / "scripts" / "metastore" / "upgrade" / "mysql" / "hive-schema-3.1.0.mysql.sql"
        self.run(f"CREATE DATABASE {database} CHARACTER SET latin1; GRANT ALL ON {database}.* TO 'hive'@'127.0.0.1';")
        self.run(script.read_text(encoding="utf-8"), database)


def installed() -> bool:
    return shutil.which("mariadbd") is not None


@contextmanager
def mariadb(folder: Path) -> Iterator[Mariadb]:
    """Starts a server, and ends it."""
    with reserve() as reserved:
        server = Mariadb(folder, reserved.getsockname()[1], secrets.token_hex(8))
    folder.chmod(0o777)
    account = "nobody" if _as_ordinary_user() else None
    user = [f"--user={account}"] if account else []
    data = ["--no-defaults", f"--datadir={folder}/data", *user]
    where = (*data, "--skip-test-db", "--auth-root-authentication-method=normal")
    subprocess.run(["mariadb-install-db", *where], check=True, capture_output=True)
    options = (f"--port={server.port}", "--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(["mariadbd", *data, f"--socket={folder}/socket", *options], stdout=log, stderr=log)
    try:
        _wait(server, process)
        server.run(f"CREATE USER 'hive'@'127.0.0.1' IDENTIFIED BY '{server.password}'")
        yield server
    finally:
        process.terminate()
        process.wait(60)


def _wait(server: Mariadb, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            server.run("SELECT 1")
        except subprocess.CalledProcessError:
            log = (server.folder / "log").read_text(encoding="utf-8", errors="replace")
            assert process.poll() is None, log
            assert time.monotonic() < end, log
            time.sleep(0.2)
        else:
            return
