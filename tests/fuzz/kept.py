"""What is kept between runs besides journals: below ``.repl`` of a target database and below the dump root."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from hive_replication.bounded_json import MIB
from hive_replication.connect.former_databases import read as read_known
from hive_replication.drift.baselines import Baseline, Memory
from hive_replication.dump.format.resume import interrupted
from hive_replication.load.copy_rate import rates_of
from hive_replication.load.layout.directories import Layout
from hive_replication.load.privileges.pace import all_due
from hive_replication.load.records import Record, RecordStore
from hive_replication.load.records.record import record_text
from hive_replication.load.records.report_rows import ReportRow, write_rows
from hive_replication.load.undo.old_data import OldDataLocator
from hive_replication.plans.approval import Approvals, PlannedWindow
from hive_replication.policy.warehouse import pair_hash
from hive_replication.units import iso, when
from tests.fuzz.dumps import changed_rows
from tests.fuzz.memory import Blanks, MemoryStorage
from tests.fuzz.mutations import mutated
from tests.fuzz.subjects import Outcome, Subject, tried

_ROOT = "hdfs://t/"
_DATABASE, _DUMPS = f"{_ROOT}w/sales.db", f"{_ROOT}dumps"
_PAIR = ("s", "t")
_TOKEN = "1700000000000" + "0" * 8
_PLACE = f"{_DATABASE}/orders"
_RETIRED = Layout(_DATABASE).retired(_TOKEN, _PLACE)
_REPORT = f"{_DUMPS}/report.parquet"
_RECORD = Record(_TOKEN, "window", "sales", "ann@gate", 1.7e9, window="1-9", to_evid=9, report=_REPORT)
_REQUEST = json.dumps(["uuid", "REPL DUMP sales", None, {"name": "nightly"}])
_CHECKPOINT = {
    "evid": 9,
    "hash": "h",
    "reads": {"t": [3, 4]},
    "begun": {"u": [5, "p=1"]},
    "tables": {"t": 1},
    "partitions": [["t", "p=1", 2]],
    "runs": {"t": [["part-00000.parquet", "p=1", "p=2", 2, 4, ["p=2"]]]},
    "events": {"8": 1},
    "files": {"part-00000.parquet": [7, "00ff"]},
}


@dataclass(frozen=True)
class Kept:
    """A file that one process writes, and another one reads.

    Args:
        uri: of the file.
        data: as it is written.
        read: what is done with it.
        beside: other files that are there.
    """

    uri: str
    data: bytes
    read: Callable[[MemoryStorage], object]
    beside: Mapping[str, bytes]


def _baselines(storage: MemoryStorage) -> None:
    for one in Memory(storage, _DATABASE).read("orders").values():
        repr(one == Baseline("00ff", 7, "mark", 9))


def _marks(storage: MemoryStorage) -> None:
    OldDataLocator(storage, _DATABASE, ()).is_whole(_PLACE, _RETIRED)


def _report(storage: MemoryStorage) -> None:
    for row in RecordStore(storage, _DUMPS, "sales", _PAIR).rows(_RECORD):
        repr(row)


def _records(storage: MemoryStorage) -> None:
    for one in RecordStore(storage, _DUMPS, "sales", _PAIR).newest():
        repr((when(one.time), iso(one.time), one.figures))


def _plans(storage: MemoryStorage) -> None:
    approvals = Approvals(storage, _DUMPS, pair=_PAIR)
    if found := approvals.waiting("sales"):
        repr((when(found.planned), found.approved))
    list(approvals.dumps())


def _written(write: Callable[[MemoryStorage], object]) -> tuple[str, bytes]:
    """The last file that something writes."""
    storage = MemoryStorage(_ROOT)
    write(storage)
    return list(storage.content.items())[-1]


@cache
def _files() -> tuple[Kept, ...]:
    layout, rows = Layout(_DATABASE), BytesIO()
    write_rows(
        rows, (ReportRow("file", "t", f"p={n}", n, "in use", "s", "t", "source", n, "CRC32C", "ab") for n in range(20)), b"{}"
    )
    planned = PlannedWindow("1-9", f"{_DUMPS}/sales/1", "incremental", 7, 1.7e9, "1 operation", ("sales.t: event 8",))
    waits = _written(lambda storage: Approvals(storage, _DUMPS, pair=_PAIR).wait("sales", planned))
    known = {"": Baseline("00ff", 7), "p=1": Baseline("11ee", 8, "mark", 9)}
    baselines = _written(lambda storage: Memory(storage, _DATABASE).write("orders", known))
    rates = {"files": 9, "bytes": 9, "copy_seconds": 9.5, "operations": 9, "apply_seconds": 1, "measured": 1.7e9}
    dump, mark = f"{_DUMPS}/sales/20260101T000000-0a1b2c3d", layout.half_retired(_TOKEN, _PLACE)
    claim = {"request": _REQUEST, "machine": "", "pid": 0}
    notes = {f"{dump}/_attempt_1": json.dumps(claim).encode(), f"{dump}/_checkpoint_1": json.dumps(_CHECKPOINT).encode()}
    names = f"{_DUMPS}/.databases/1.json"
    day = f"{_DUMPS}/.reports/.by-day/sales-{pair_hash(_PAIR)}/2023-11-14"
    return (
        Kept(*baselines, _baselines, {}),
        Kept(layout.rates, json.dumps(rates).encode(), lambda storage: rates_of(storage, _DATABASE), {}),
        Kept(layout.privileges, b'{"ended":1700000000,"seconds":3}', lambda storage: all_due(storage, _DATABASE, 1.8e9), {}),
        Kept(mark, _PLACE.encode(), _marks, {}),
        Kept(_REPORT, rows.getvalue(), _report, {}),
        Kept(f"{day}/{_TOKEN}-1-9.json", record_text(_RECORD), _records, {}),
        Kept(*waits, _plans, {}),
        Kept(names, b'{"s*": ["sales", "stock"]}', lambda storage: read_known(storage, names), {}),
        *(Kept(uri, data, _resume, notes) for uri, data in notes.items()),
    )


def _resume(storage: MemoryStorage) -> None:
    interrupted(storage, f"{_DUMPS}/sales", _REQUEST, "_finished_dump")


@cache
def _bomb() -> bytes:
    """A report of some KB that becomes 300 MB: one text in every row."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 300, pa.int32()), ["x" * MIB])
    out = BytesIO()
    with pq.ParquetWriter(out, pa.schema([("source", text.type)]), compression="zstd", store_schema=False) as writer:
        writer.write_table(pa.table({"source": text}))
    return out.getvalue()


def kept(chance: random.Random) -> Callable[[], Outcome]:
    """One of the files, changed; rarely one without an end, or that becomes large."""
    one, what = chance.choice(_files()), chance.random()
    data = mutated(chance, one.data)
    if one.uri == _REPORT and what < 0.6:
        data = _bomb() if what < 0.01 else changed_rows(chance, one.data)
    storage = MemoryStorage(_ROOT, {**one.beside, one.uri: Blanks() if what > 0.999 else data})
    return partial(tried, lambda: one.read(storage))


KEPT: dict[str, Subject] = {"kept": kept}
