"""Fetches the pinned artifacts of jars.toml with jgo into the local Maven repository and proves each by its SHA-256.

They come from Maven Central, or from the repository whose address is in ``HIVE_REPL_MAVEN_URL``.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tarfile
import tempfile
import tomllib
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jgo.maven
import requests
from rich.progress import Progress
from tenacity import stop_after_attempt, wait_incrementing

from hive_replication.errors import BadRequest, Unreachable
from hive_replication.logs import repeats
from hive_replication.retries import with_retries

LOCK = Path(__file__).with_name("jars.toml")
_DOWNLOADS = 8
_ATTEMPTS = 3  # a repository that fetches a jar itself at its first request may answer with an error
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Jar:
    """One artifact of the lock file.

    Args:
        coordinate: ``group:artifact[:packaging:classifier]:version``, as Maven writes it.
        sha256: lowercase hex of the file's SHA-256.
    """

    coordinate: str
    sha256: str

    def artifact(self, context: jgo.maven.MavenContext) -> Any:
        """The artifact in one of jgo's contexts."""
        group, name, *middle, version = self.coordinate.split(":")
        packaging, classifier = middle or ("jar", "")
        return context.project(group, name).at_version(version).artifact(classifier=classifier, packaging=packaging)


@dataclass(frozen=True, slots=True)
class Group:
    """The files of one group of the lock file.

    Args:
        jars: in class path order.
        distribution: the unpacked tarball of the group, if it has one.
    """

    jars: tuple[Path, ...]
    distribution: Path | None = None

    def without(self, *prefixes: str) -> list[Path]:
        """The jars whose names do not start with any of these."""
        return [path for path in self.jars if not path.name.startswith(prefixes)]


def locked(group: str, lock: Path = LOCK) -> list[Jar]:
    """The artifacts of one group of the lock file, in class path order."""
    return [Jar(coordinate, sha256) for coordinate, sha256 in tomllib.loads(lock.read_text(encoding="utf-8"))[group].items()]


def fetch(jars: list[Jar], progress: Progress | None = None) -> list[Path]:
    """Brings artifacts into the local Maven repository (``M2_REPO`` or ``~/.m2/repository``); those present are only checked.

    Args:
        jars: what to fetch.
        progress: shows a bar for all and one for each running download.

    Returns:
        The files, in the order of ``jars``.

    Raises:
        BadRequest: a file's SHA-256 is not the locked one.
        Unreachable: an artifact cannot be downloaded.
    """
    task = progress.add_task("Checking jars", total=len(jars)) if progress else None

    def one(jar: Jar) -> Path:
        path = _fetch(jar, progress)
        if progress and task is not None:
            progress.advance(task)
        return path

    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        paths = list(pool.map(one, jars))
    if progress and task is not None:
        progress.remove_task(task)
    return paths


def fetch_groups(names: Iterable[str], progress: Progress | None = None) -> dict[str, Group]:
    """Fetches groups of the lock file, all at once, and unpacks their distributions into :func:`cache_home`.

    Raises:
        BadRequest: a file's SHA-256 is not the locked one.
        Unreachable: an artifact cannot be downloaded.
    """
    wanted = {name: locked(name) for name in names}
    every = list(dict.fromkeys(jar for group in wanted.values() for jar in group))
    paths = dict(zip(every, fetch(every, progress), strict=True))
    return {name: _group([(jar, paths[jar]) for jar in group]) for name, group in wanted.items()}


def _group(files: list[tuple[Jar, Path]]) -> Group:
    tarballs = [(jar, path) for jar, path in files if ":tar.gz:" in jar.coordinate]
    distribution = _unpacked(*tarballs[0]) if tarballs else None
    return Group(tuple(path for jar, path in files if (jar, path) not in tarballs), distribution)


def _unpacked(jar: Jar, archive: Path) -> Path:
    folder = cache_home() / f"{archive.name.removesuffix('.tar.gz')}-{jar.sha256[:8]}"
    if not folder.is_dir():
        with staging(folder) as scratch, tarfile.open(archive) as tar:
            tar.extractall(scratch, filter="data")
    return next(child for child in folder.iterdir() if child.is_dir())


@contextmanager
def staging(folder: Path) -> Generator[Path]:
    """A scratch folder that becomes ``folder`` when the block ends well, so that nobody ever sees half of it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield scratch
        if not folder.exists():  # another process may have been faster
            scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def cache_home() -> Path:
    """Where what is made once per user is kept: ``$XDG_CACHE_HOME`` or ``~/.cache``, below it ``hive-replication``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hive-replication"


def _fetch(jar: Jar, progress: Progress | None) -> Path:
    path: Path = jar.artifact(jgo.maven.MavenContext()).cached_path
    if not path.is_file():
        with_retries(
            partial(_download, jar, path, progress),
            lambda error: isinstance(error, Unreachable),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_incrementing(1, 2),
            before_sleep=repeats(_LOG, "download of %s", jar.coordinate),
        )
    elif (actual := sha256(path)) != jar.sha256:
        raise BadRequest(f"{jar.coordinate} has SHA-256 {actual} instead of {jar.sha256}; delete {path} and try again")
    return path


def _download(jar: Jar, path: Path, progress: Progress | None) -> None:
    # jgo writes straight to its final name and only warns about wrong checksums: download aside, check, then rename.
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".download-", dir=path.parent) as scratch:
        context = jgo.maven.MavenContext(_resolver(progress), repo_cache=Path(scratch), remote_repos=_mirror(), timeout=60)
        try:
            fresh: Path = jar.artifact(context).resolve()
        except (OSError, RuntimeError, requests.RequestException) as error:
            raise Unreachable(f"cannot download {jar.coordinate}: {error}") from error
        if (actual := sha256(fresh)) != jar.sha256:
            raise BadRequest(f"{jar.coordinate} was downloaded with SHA-256 {actual} instead of {jar.sha256}: not used")
        fresh.replace(path)


def _mirror() -> dict[str, str] | None:
    url = os.environ.get("HIVE_REPL_MAVEN_URL")
    return {"mirror": url.rstrip("/")} if url else None


def _resolver(progress: Progress | None) -> Any:
    if progress is None:
        return jgo.maven.PythonResolver()

    @contextmanager
    def bar(filename: str, size: int) -> Generator[Any]:
        task = progress.add_task(filename, total=size)
        try:
            yield partial(progress.advance, task)
        finally:
            progress.remove_task(task)

    return jgo.maven.PythonResolver(progress_callback=bar)


def sha256(path: Path) -> str:
    """Lowercase hex of a file's SHA-256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
