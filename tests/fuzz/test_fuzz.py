"""A short run of the fuzzer; ``make fuzz`` runs a long one, and ``make test`` one of a minute."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from hive_replication.dump.source_boundary import SourceBoundary
from hive_replication.errors import ReplicationError
from hive_replication.load import untrusted_dump
from hive_replication.load.replica import name_mapping
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.load.session import Session
from tests.fuzz.__main__ import fuzz
from tests.fuzz.dumps import attacked, dumps, plan, resealed, wrong
from tests.fuzz.worker import SHARES

_INPUTS = 2_000
_ATTACKS = 600


@pytest.mark.timeout(300)
def test_no_input_ends_badly(seed: int) -> None:
    batch = fuzz(seed, range(_INPUTS), tuple(SHARES), 2)
    assert batch.inputs.total() == _INPUTS
    assert (batch.tracebacks[:3], batch.over, batch.changed) == ([], [], [])


def test_no_input_is_read_after_the_time() -> None:
    assert fuzz(1, range(_INPUTS), tuple(SHARES), 1, seconds=0).inputs.total() == 0


@pytest.mark.parametrize("number", range(len(dumps())))
def test_what_is_not_changed_is_accepted(number: int) -> None:
    """Else the fuzzer would only see refusals: each recorded dump is planned, with digests and without, and does the same."""
    dump = dumps()[number]
    found, changes = plan(dump, dump.files)
    assert any(lane.operations or lane.stop for lane in found.lanes)
    assert changes == []
    assert plan(dump, dump.sealed)[0] == found
    assert plan(dump, resealed(dump.directory, dump.sealed))[0] == found


def _found(seed: str) -> Iterator[str]:
    """What the rules tell of dumps that somebody has changed, each of which is planned."""
    for number in range(_ATTACKS):
        chance = random.Random(f"{seed} {number}")
        dump = chance.choice(dumps())
        files = attacked(chance, dump)
        try:
            made, _ = plan(dump, files)
        except ReplicationError:
            continue
        yield from wrong(dump, files, made, None)


def _nothing(*_: object) -> str:
    return ""


_NO_LOCATIONS, _NO_FILES = (SourceBoundary, "why_outside", _nothing), (SourceBoundary, "why_files_outside", _nothing)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("checks", "told"),
    [
        pytest.param([_NO_LOCATIONS], " reads ", id="locations at the source"),
        pytest.param([_NO_FILES], " reads ", id="files at the source"),
        pytest.param([(Session, "includes", lambda *_: True)], "outside the scope", id="tables of the policy"),
        pytest.param(
            [_NO_LOCATIONS, (name_mapping, "is_reserved", lambda _: False), (TargetBoundary, "require_free", _nothing)],
            " writes ",
            id="places at the target",
        ),
        pytest.param([(untrusted_dump, "RESERVED", "")], " writes ", id="directories below a table's"),
    ],
)
def test_the_rules_tell_of_what_checks_keep_out(
    checks: Sequence[tuple[Any, str, object]], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some are switched off: the fuzzer would be green with rules that never tell of anything."""
    for owner, name, instead in checks:
        monkeypatch.setattr(owner, name, instead)
    assert any(told in one for one in _found("seams"))


@pytest.mark.parametrize(
    ("work", "told"),
    [
        ("time.sleep(60)", "waits for more than 0.5 s"),
        ("threading.Lock().acquire(); lock = threading.Lock(); lock.acquire(); lock.acquire()", "waits for more than 0.5 s"),
        ("while True: pass", "more than 2 s"),
        ("'x' * (400 << 20)", "more than 300 MB"),
        ("time.sleep(0.1)", ""),
    ],
)
def test_limits(work: str, told: str) -> None:
    """In a process of its own: pytest's own limits are kept by the same signals."""
    code = f"""
import threading, time
from tests.fuzz import limits
limits.MOST_WAITING = {0.5 if "waits" in told else 30.0}
found = []
with limits.limited(found):
    {work}
print(";".join(found), end="")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == told
