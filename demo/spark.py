"""Spark for the demo: writes the source's files, and hashes the rows of both sides through their own metastores."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo.tables import Design
from resources.embedded import java
from resources.embedded.cluster import Side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one table.

    Args:
        count: how many.
        hash: sum of the hashes of all rows, so that their order does not matter and doubles do.
    """

    count: int
    hash: str


@dataclass
class Spark:
    """A Spark session with one side's metastore as its catalog; it starts with its first use.

    Args:
        side: whose metastore.
        log: gets what Spark prints.
    """

    side: Side
    log: Path
    _session: SparkSession | None = field(default=None, init=False)

    @property
    def session(self) -> SparkSession:
        """The session."""
        if self._session is None:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            interrupt = signal.getsignal(signal.SIGINT)
            with _stderr_to(self.log):  # the JVM inherits it for its life
                self._session = _session(self.side)
            signal.signal(signal.SIGINT, interrupt)  # PySpark's own handler needs a session that lives
        return self._session

    def stop(self) -> None:
        """Ends the session; the JVM stays for the session of the other side."""
        if self._session is not None:
            self._session.stop()
            self._session = None

    def write(self, design: Design, rows: str, folder: str) -> None:
        """Writes the rows of a query as files of a table's format, a folder for each partition."""
        frame = self.session.sql(rows)
        keys = [name for name, _ in design.keys]
        if design.format == "text":
            fields = ", ".join(f"CAST({name} AS string)" for name, _ in design.columns)
            # The separator of Hive's LazySimpleSerDe.
            frame = frame.selectExpr(f"concat_ws('\\u0001', {fields}) AS value", *keys)
        frame.write.partitionBy(*keys).format(design.format).save(folder)

    def rows(self, database: str, tables: Iterable[str]) -> dict[str, Rows]:
        """Counts and hashes the rows of tables and views, all columns and partition keys, in one job."""
        names = sorted(tables)
        for name in names:
            self.session.catalog.refreshTable(f"{database}.`{name}`")
        found = self.session.sql(" UNION ALL ".join(_hashed(database, name) for name in names)).collect()
        return {row["name"]: Rows(row["rows"], f"{int(row['hash']):x}") for row in found}


def end_java() -> None:
    """Ends the JVM of this process, if one was started."""
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext

    context: Any = SparkContext  # PySpark ends its JVM only with the interpreter
    if context._active_spark_context is not None:  # noqa: SLF001
        context._active_spark_context.stop()  # noqa: SLF001
    if context._gateway is not None:  # noqa: SLF001
        context._gateway.shutdown()  # noqa: SLF001
        context._gateway.proc.stdin.close()  # noqa: SLF001
        context._gateway.proc.wait(timeout=30)  # noqa: SLF001
        context._gateway = context._jvm = None  # noqa: SLF001


def _hashed(database: str, name: str) -> str:
    # 60 bits of each row's SHA-256; NULL and absent fields count.
    digest = "conv(substr(sha2(to_json(struct(*), map('ignoreNullFields', 'false')), 256), 1, 15), 16, 10)"
    return (
        f"SELECT '{name}' AS name, count(*) AS rows, coalesce(sum(CAST({digest} AS decimal(38, 0))), 0) AS hash "  # noqa: S608 (names of the demo)
        f"FROM {database}.`{name}`"
    )


def _session(side: Side) -> SparkSession:
    from pyspark.sql import SparkSession

    settings = {
        "spark.master": "local[2]",
        "spark.app.name": "hive-replication demo",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # Many small jobs, each of them new: compiling, and planning again while they run, costs more than it gives.
        "spark.driver.extraJavaOptions": " ".join(java.QUICK),
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": side.warehouse,
        "spark.hadoop.hive.metastore.uris": side.metastore,
        "spark.hadoop.fs.defaultFS": side.hdfs,
        "spark.hadoop.dfs.replication": "1",
        "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


@contextmanager
def _stderr_to(path: Path) -> Generator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
