"""``metrics``: lags for Prometheus."""

from __future__ import annotations

from typing import Annotated

import typer

from hive_replication.cli.arguments import LONGEST
from hive_replication.cli.settings import Config, Json, settings
from hive_replication.errors import BadRequest

Port = Annotated[int, typer.Option("--port", min=0, max=65_535, help="Port to listen at; 0 chooses a free one.")]
Address = Annotated[str, typer.Option("--address", help="Address to listen at; 0.0.0.0 for all.")]
Every = Annotated[
    float,
    typer.Option("--every", metavar="SECONDS", min=1, max=LONGEST, help="Least time between two calls of the servers."),
]


def metrics(
    context: typer.Context,
    port: Port = 9468,
    address: Address = "127.0.0.1",
    every: Every = 15.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Serves how far the replicas are behind as Prometheus metrics, at /metrics, until interrupted.

    Both sides are called when the metrics are scraped; if one does not answer, the page says so within seconds. It has no access
    control: let only Prometheus reach it.
    """
    from prometheus_client import CollectorRegistry, start_http_server

    from hive_replication.lag.metrics import LagCollector

    chosen = settings(context, config, json)
    registry = CollectorRegistry()
    registry.register(LagCollector(chosen.policy(), every))
    try:
        server, thread = start_http_server(port, address, registry)
    except (OSError, UnicodeError) as error:  # the second of a name with an empty or too long part
        reason = getattr(error, "strerror", None) or error
        raise BadRequest(f"cannot listen at {address}:{port}: {reason}; choose others by --address and --port") from error
    chosen.output.remark(f"http://{address}:{server.server_port}/metrics")
    thread.join()
