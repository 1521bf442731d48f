"""Whether the stores of a side answer: each root is asked once, all at the same time, and none for long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import TypeVar

from hive_replication.doctor.finding import Finding, error, ok
from hive_replication.errors import Refused, ReplicationError, Unreachable
from hive_replication.policy import Root
from hive_replication.storage import Storage, paths
from hive_replication.storage.boundary import comparable

T = TypeVar("T")

_CHECK = "storage "
_PATIENCE = 15.0  # seconds; a store that refuses connections is known to after some six


def roots(storage: Storage, side: str) -> list[Finding]:
    """One finding for each root of a side."""
    asked = [(root, begun(lambda root=root: storage.status(root.uri))) for root in storage.roots]
    return [_finding(side, root, answer) for root, answer in asked]


def down(findings: Iterable[Finding]) -> Callable[[str], bool]:
    """Tells of a URI whether it lies under a root that does not answer: what it holds is not asked for, as that takes long.

    Args:
        findings: those of :func:`roots`.
    """
    silent = [comparable(one.check.removeprefix(_CHECK)) for one in findings if one.verdict == "error"]

    def is_down(uri: str) -> bool:
        try:
            plain = comparable(uri)
        except Refused:  # it is not asked for anyway, and what examines it says why
            return False
        return any(paths.is_under(plain, root) for root in silent)

    return is_down


def begun(call: Callable[[], T]) -> Callable[[], T]:
    """Begins a call in a thread of its own, which ends with the process; what it returns waits for the answer, but not for long.

    Raises:
        Unreachable: when asked for: there was no answer in time.
    """
    answers: SimpleQueue[tuple[T | None, Exception | None]] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put((call(), None))
        except Exception as problem:  # noqa: BLE001 - it is raised where the answer is waited for
            answers.put((None, problem))

    threading.Thread(target=ask, daemon=True).start()

    def answer() -> T:
        try:
            found, problem = answers.get(timeout=_PATIENCE)
        except Empty:
            raise Unreachable(f"no answer within {_PATIENCE:.0f} s") from None
        if problem is not None:
            raise problem
        return found  # type: ignore[return-value]

    return answer


def _finding(side: str, root: Root, answer: Callable[[], object]) -> Finding:
    check = f"{_CHECK}{root.uri}"
    try:
        answer()
    except (ReplicationError, OSError) as problem:
        return error(side, check, str(problem), f"start it, or correct this root of the {side} and its options in the policy")
    return ok(side, check, "answers")
