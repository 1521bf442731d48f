"""Calls that are made again where they meet trouble that passes, by Tenacity."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryCallState, Retrying, after_nothing, retry_if_exception
from tenacity.stop import stop_base
from tenacity.wait import wait_base

T = TypeVar("T")


def with_retries(
    call: Callable[[], T],
    passes: Callable[[BaseException], bool],
    *,
    stop: stop_base | Callable[[RetryCallState], bool],
    wait: wait_base,
    before_sleep: Callable[[RetryCallState], None],
    after: Callable[[RetryCallState], None] = after_nothing,
) -> T:
    """Makes a call, and again where it meets trouble that passes; raises the last error.

    Of a file there are ten calls and more, and nearly all succeed at once: these go without what Tenacity notes of each, which
    took a third of a load's CPU.

    Args:
        call: one attempt.
        passes: tells trouble that passes from other errors.
        stop: as Tenacity takes it.
        wait: likewise.
        before_sleep: likewise.
        after: likewise.
    """
    first: list[Exception] = []
    try:
        return call()
    except Exception as error:
        if not passes(error):
            raise
        first.append(error)

    def again() -> T:
        if first:
            raise first.pop()
        return call()

    retrying = Retrying(
        retry=retry_if_exception(passes), stop=stop, wait=wait, before_sleep=before_sleep, after=after, reraise=True
    )
    return retrying(again)
