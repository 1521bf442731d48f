"""A real Spark standalone cluster: a master and two workers of one core each, every one its own process."""

from __future__ import annotations

import json
import socket
import sys
import tarfile
import venv
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from resources.embedded import processes
from resources.embedded.java import QUICK, java

_EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class SparkCluster:
    """A running cluster.

    Args:
        folder: where its processes live.
        master: ``spark://host:port``.
    """

    folder: Path
    master: str

    @classmethod
    def start(cls, folder: Path) -> SparkCluster:
        """Starts a master and two workers, which do not know this project: it is in no path of theirs."""
        with ExitStack() as stack:
            port, page = (stack.enter_context(socket.socket()) for _ in range(2))
            ports = []
            for one in (port, page):
                one.bind(("127.0.0.1", 0))
                ports.append(one.getsockname()[1])
        cluster = cls(folder, f"spark://127.0.0.1:{ports[0]}")
        master = cluster._server("master", "master.Master", ("--port", str(ports[0]), "--webui-port", str(ports[1])), 1, ports[0])
        processes.start(master)
        processes.wait(master)
        for number in (2, 3):  # a host of its own each, or Spark would start no speculative twin
            processes.start(cluster._server(f"worker{number}", "worker.Worker", _WORKER, number, None))
        return cluster

    def stop(self) -> None:
        """Ends all its processes; executors end with their worker."""
        processes.stop(sorted(self.folder.iterdir()))

    def executors(self) -> list[psutil.Process]:
        """The JVMs of the executors."""
        workers = filter(None, (processes.running(folder) for folder in self.folder.glob("worker*")))
        return [child for worker in workers for child in worker.children() if _EXECUTOR in " ".join(child.cmdline())]

    def _server(self, name: str, main: str, options: tuple[str, ...], host: int, port: int | None) -> processes.Server:
        import pyspark

        home = Path(pyspark.__file__).parent
        folder = self.folder / name
        folder.mkdir(parents=True)
        address = f"127.0.0.{host}"
        names = {"SPARK_HOME": home, "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": address}
        set_up = ("env", "-u", "PYTHONPATH", "-u", "PYSPARK_PYTHON", *(f"{name}={value}" for name, value in names.items()))
        run = (str(java()), *QUICK, "-Xmx256m", "-cp", f"{home}/jars/*", f"org.apache.spark.deploy.{main}", "--host", address)
        end = (self.master, "--work-dir", str(folder)) if port is None else ()
        return processes.Server(name, folder, (*set_up, *run, *options, *end), () if port is None else (port,))


_WORKER = ("--cores", "1", "--memory", "512m", "--webui-port", "0")


def packed_environment(folder: Path) -> Path:
    """An archive of an environment with this one's packages but without this project, as ``spark.archives`` ships it.

    It points at this environment's packages instead of holding them: that spares packing 500 MB.
    """
    made = folder / "environment"
    venv.create(made, symlinks=True)
    (site,) = made.glob("lib/python*/site-packages")
    # Unlike in site-packages itself, files *.pth in these folders (an editable installation of this project) do not count.
    (site / "packages.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    archive = folder / "environment.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(made, ".")
    return archive


def events(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    """What Spark's event log tells of one kind, e.g. ``SparkListenerTaskStart``; up to its last whole line."""
    for log in folder.iterdir():
        for line in log.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n") and (event := json.loads(line))["Event"] == kind:
                yield event
