"""When Azure has copied a blob: it may answer before, and a copy whose source is deleted meanwhile ends as an empty blob."""

from __future__ import annotations

import time
from typing import Any, cast

from fsspec.asyn import sync  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

_PATIENCE, _POLL = 3600.0, 0.5  # seconds


def settled_copy(files: Any, key: str) -> str:
    """The status of the copy that made a blob, once it is no longer pending: ``success``, ``failed`` or ``aborted``.

    Args:
        files: adlfs, which does not wait for it.
        key: the blob, with its container.
    """
    container, blob, _ = files.split_path(key)
    client = files.service_client.get_blob_client(container=container, blob=blob)
    until = time.monotonic() + _PATIENCE
    while True:
        told = cast("Any", sync)(files.loop, client.get_blob_properties)
        status = str(told.copy.status or "success")
        if status != "pending" or time.monotonic() > until:
            return status
        time.sleep(_POLL)
