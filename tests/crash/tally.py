"""What a campaign has done and found."""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

_LOG = logging.getLogger(__name__)


@dataclass
class Tally:
    """What was done, and what went wrong; safe to use from many threads."""

    kills: int = 0
    survived: int = 0
    lost: int = 0
    doubled: int = 0
    half_visible: int = 0
    problems: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._lock = Lock()

    def add(
        self, where: str, *, kills: int, lost: Sequence[str] = (), doubled: Sequence[str] = (), half: Sequence[str] = ()
    ) -> None:
        """Adds the strikes of one job and what was found after them."""
        with self._lock:
            self.kills += kills
            self.survived += 0 if lost or doubled or half else kills
            self.lost += bool(lost)
            self.doubled += len(doubled)
            self.half_visible += len(half)
            for kind, found in (("lost", lost), ("doubled", doubled), ("half-visible", half)):
                for one in found:
                    self.problems.append(f"{where}: {kind}: {one}")
                    _LOG.error("%s", self.problems[-1])

    @contextmanager
    def going_on(self, what: str) -> Generator[None]:
        """Whatever fails is reported with the other problems at the end; the campaign goes on with what comes next."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (one of many examinations)
            _LOG.exception("%s", what)
            self.add(what, kills=0, lost=[f"it could not be examined: {error!r}"])

    def __str__(self) -> str:
        return (
            f"kills {self.kills} survived {self.survived} lost {self.lost} "
            f"doubled {self.doubled} half-visible {self.half_visible}"
        )
