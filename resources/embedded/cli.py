"""``hive-repl embedded``: starts, stops and shows the embedded servers."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from hive_replication.errors import ReplicationError
from resources.embedded import java
from resources.embedded.cluster import DEFAULT_SIDES, Cluster
from resources.embedded.policy import write_policy

app = typer.Typer(
    help="Real HDFS and Hive metastores on this machine, for the demo and for tests.",
    pretty_exceptions_enable=False,
)

Directory = Annotated[Path, typer.Option("--dir", help="Data folder of the servers.")]
_HOME = Path(".embedded")


@app.command()
def up(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Sides: source, target, source4 (Hive 4.2; 2, 40, 41: others), or new ones; parts: source.metastore, "
            "source.hdfs, source.database."
        ),
    ] = None,
    directory: Directory = _HOME,
    tls: Annotated[
        bool, typer.Option("--tls", help="HDFS with HTTPS_ONLY and metastores with SSL, by a certificate authority of their own.")
    ] = False,
    kerberos: Annotated[
        bool, typer.Option("--kerberos", help="New sides get a realm and a KDC each; the realms trust each other.")
    ] = False,
    ha: Annotated[
        bool, typer.Option("--ha", help="New sides get an HDFS with two NameNodes, which fail over, and two DataNodes.")
    ] = False,
) -> None:
    """Starts the servers that do not run yet; the first time it downloads their jars."""
    with _errors_shown():
        cluster = Cluster(directory, tls=tls, kerberos=kerberos, ha=ha)
        java.java()  # before the progress bar, so that an error is all that is printed
        with _progress() as progress:
            cluster.up(names or cluster.sides() or DEFAULT_SIDES, progress)
        path = cluster.directory / "policy.yaml"
        if not path.exists() and set(DEFAULT_SIDES) <= set(cluster.sides()):
            write_policy(cluster, path)
        _show(cluster)
        if path.exists():
            typer.echo(f"export HIVE_REPL_CONFIG={path}")
        if kdc := next((found for name in cluster.sides() if (found := cluster.side(name).kdc)), None):
            typer.echo(f"export KRB5_CONFIG={kdc.config}")


@app.command()
def down(
    names: Annotated[
        list[str] | None, typer.Argument(help="Sides, or parts: source.hdfs, source.database, source.metastore.")
    ] = None,
    directory: Directory = _HOME,
) -> None:
    """Stops servers; their data stays for the next start."""
    with _errors_shown():
        Cluster(directory).down(names or None)
        _show(Cluster(directory))


@app.command()
def status(directory: Directory = _HOME) -> None:
    """Shows what runs where."""
    _show(Cluster(directory))


def _show(cluster: Cluster) -> None:
    table = Table("server", "address", "pid", "state")
    colours = {"running": "green", "died": "red"}
    for server in cluster.status():
        colour = colours.get(server.state, "dim")
        table.add_row(server.name, server.address, str(server.pid or ""), f"[{colour}]{server.state}[/]")
    Console().print(table if table.row_count else f"no servers in {cluster.directory}")


def _progress() -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True))


@contextmanager
def _errors_shown() -> Generator[None]:
    try:
        yield
    except ReplicationError as error:
        typer.echo(f"hive-repl: {error}", err=True)
        raise typer.Exit(error.exit_code) from error


if __name__ == "__main__":
    app()
