"""An object store in memory: of a directory, which is but the beginning of names, it does not know when it was changed.

An object whose name ends with a slash is listed as a file, and is not found where it is to be copied, as with ``s3fs``.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import pytest
from fsspec.spec import AbstractFileSystem

from hive_replication.policy import Root
from hive_replication.storage import Storage
from hive_replication.storage import storage as storage_module
from hive_replication.storage.backend_by_scheme import connect_backend
from hive_replication.storage.object_store_backend import FsspecBackend


class _Upload(BytesIO):
    """A file that becomes an object when it is closed."""

    def __init__(self, objects: dict[str, tuple[bytes, float]], name: str) -> None:
        super().__init__()
        self._objects, self._name = objects, name

    def close(self) -> None:
        if not self.closed:
            self._objects[self._name] = self.getvalue(), time.time()
        super().close()


class _Bucket(AbstractFileSystem):
    """Content and time of objects by their names."""

    cachable = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.objects: dict[str, tuple[bytes, float]] = {}

    def _below(self, path: str) -> list[str]:
        return sorted(name for name in self.objects if name.startswith(f"{path}/"))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        if path in self.objects:
            data, written = self.objects[path]
            told = datetime.fromtimestamp(written, UTC)
            return {"name": path, "size": len(data), "type": "file", "LastModified": told}
        if not self._below(path):
            raise FileNotFoundError(path)
        return {"name": path, "size": 0, "type": "directory"}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        if path in self.objects:
            return [self.info(path)]
        self.info(path)
        names = {name[len(path) + 1 :].partition("/")[0] for name in self._below(path)}
        return [self.info(f"{path}/{name}") for name in sorted(names)]

    def find(self, path: str, **_: Any) -> dict[str, dict[str, Any]]:  # type: ignore[override]
        return {name: self.info(name) for name in self._below(path)}

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        if mode == "rb" and path not in self.objects:
            raise FileNotFoundError(path)
        if mode == "rb":
            return BytesIO(self.objects[path][0])
        if mode == "xb" and path in self.objects:
            raise FileExistsError(path)
        return _Upload(self.objects, path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        pass

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        path1 = path1.rstrip("/")
        if path1 not in self.objects:
            raise FileNotFoundError(path1)
        self.objects[path2] = self.objects[path1][0], time.time()

    def rm_file(self, path: str) -> None:
        if self.objects.pop(path, None) is None:
            raise FileNotFoundError(path)


def bucket_storage(monkeypatch: pytest.MonkeyPatch, url: str = "memory://bucket") -> Storage:
    """A storage whose only root is a new bucket, which may pass for another store."""
    return storage_with_bucket(monkeypatch, url=url)


def storage_with_bucket(monkeypatch: pytest.MonkeyPatch, *others: str, url: str = "memory://bucket") -> Storage:
    """A storage whose roots are a new bucket and others, of stores that are there."""
    backend = FsspecBackend("memory", "bucket", {})
    backend._files, backend._url, backend.is_bucket = _Bucket(), url, True  # type: ignore[assignment]
    bucket = url.partition(":")[0]
    monkeypatch.setattr(
        storage_module, "connect_backend", lambda scheme, *rest: backend if scheme == bucket else connect_backend(scheme, *rest)
    )
    return Storage((Root(uri=f"{url}/"), *(Root(uri=other) for other in others)))
