"""Changes in finished dumps: with the digest that was written, which sees them, or with one made anew, which cannot."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hive_replication.dump.format.ack import ACK, ack_text
from hive_replication.dump.format.digests import digest_of
from hive_replication.signing import SigningKey
from hive_replication.storage import Storage

_NUMBERS = ("tables", "partitions", "events", "functions")


def reseal(storage: Storage, directory: str, key: SigningKey | None = None, **changed: Any) -> None:
    """Makes the ack file of a dump again, for the files that are there now.

    Args:
        storage: where it lies.
        directory: its directory.
        key: signs it.
        changed: fields that it is to have instead.
    """
    ack = json.loads(storage.read(f"{directory}/{ACK}")) | changed
    below = len(directory) + 1
    uris = [status.uri for status in storage.files(directory, hidden=True)]
    names = {uri[below:]: uri for uri in uris if not uri[below:].startswith((ACK, "_attempt", "_checkpoint"))}
    digests = {path: digest_of(storage.read(uri)) for path, uri in names.items()}
    more = {"parts": ack["parts"]} if "parts" in ack else {}
    text = ack_text({name: ack.get(name, 0) for name in _NUMBERS}, digests, more, directory, key)
    storage.write(f"{directory}/{ACK}", text)


def without_digests(storage: Storage, directory: str, **changed: Any) -> None:
    """Makes a dump one of a version without digests."""
    header = json.loads(storage.read(f"{directory}/_dumpmetadata"))
    storage.write(f"{directory}/_dumpmetadata", json.dumps({k: v for k, v in header.items() if k != "digests"}).encode())
    ack = json.loads(storage.read(f"{directory}/{ACK}")) | changed
    storage.write(f"{directory}/{ACK}", json.dumps({k: v for k, v in ack.items() if k not in ("files", "digest")}).encode())


def edit(storage: Storage, uri: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Changes a JSON file."""
    storage.write(uri, json.dumps(change(json.loads(storage.read(uri))), ensure_ascii=False).encode())
