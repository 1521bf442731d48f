"""One file: choose the version that was recorded, copy it under a hidden name, prove it, give it its name."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal

from tenacity import stop_after_attempt, wait_random_exponential

from hive_replication.copy.proof import Crc32c, checksum_of_content, is_composite, is_of_one_block, is_reproducible
from hive_replication.copy.tasks import Check, CopyFailure, CopyResult, CopyTask, Proof
from hive_replication.copy.unlisted import why_unlisted
from hive_replication.copy.while_held import go_on
from hive_replication.errors import BadRequest, Refused, ReplicationError, Unreachable
from hive_replication.logs import about, reason, repeats
from hive_replication.retries import with_retries
from hive_replication.storage import AlreadyExists, Denied, FileChecksum, FileStatus, Late, Storage
from hive_replication.storage.access import Access

_LOG = logging.getLogger(__name__)

Origin = Literal["source", "cmroot"]
#: Reads a file in pieces.
Read = Callable[[str], Iterator[bytes]]
# The setting that a NameNode names when it refuses a block size.
_LEAST_BLOCK = "dfs.namenode.fs-limits.min-block-size"
_ROUNDS = 3
_FINAL = (Refused, BadRequest, Denied, Late)  # what another round would meet, too
_SMALL = 1 << 20  # bytes that are held in memory, to be written as fast as the target can
_READ_BACK = 256 << 10  # bytes of a replica whose reading costs less than a request for its checksum


def copy_file(
    task: CopyTask,
    source: Storage,
    target: Storage,
    *,
    executor: str = "threads",
    read: Read | None = None,
    at_once: bool = False,
    check: Check = go_on,
) -> CopyResult | CopyFailure:
    """Brings one file to its place, proven, or says why not; never raises an error of storage.

    The recorded checksum decides which file is copied: the one at the source path or, where that is gone or holds another
    version, the one in cmroot. The replica gets its name only after its proof, and never replaces another file. What the
    proof is: design, section 7. Passing trouble is met by starting the file again, a few times.

    Args:
        task: the file and its place.
        source: where the file and its cmroot are read.
        target: where the replica goes.
        executor: who does it, for the result.
        read: reads a source file in pieces; as fast as the source's storage does where None.
        at_once: write a small file in one request: sooner, but with more work for the servers.
        check: raises a ReplicationError if the file may not get its name any more.
    """
    copying = _Copying(task, source, target, executor, read or source.stream, check, at_once=at_once)
    try:
        return with_retries(
            copying.run,
            _may_pass,
            stop=stop_after_attempt(_ROUNDS),
            wait=wait_random_exponential(0.5, max=10),
            before_sleep=repeats(_LOG, "the copy of %s", task.file.uri, extra=copying.about),
        )
    except (ReplicationError, OSError) as error:
        kind = "unreachable" if isinstance(error, Unreachable) else "failed"
        return copying.failure(f"{task.file.uri} could not be copied to {task.target}: {error}", kind)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, ReplicationError | FileNotFoundError) and not isinstance(error, _FINAL)


class _Gone(Exception):
    """A candidate is absent or not the recorded version; the next one may be.

    Args:
        why: as ``is absent``.
        replaced: whether there is another version in its place.
    """

    def __init__(self, why: str, *, replaced: bool = False) -> None:
        super().__init__(why)
        self.replaced = replaced


class _Copying:
    """The copying of one file. ``uri`` below is a candidate: a place where the recorded version may lie."""

    def __init__(
        self, task: CopyTask, source: Storage, target: Storage, executor: str, read: Read, check: Check, *, at_once: bool
    ) -> None:
        database, _, name = task.object_name.partition("/")[0].rpartition(".")
        self.about = about(database or None, name, task.evid)
        self._task = task
        self._source, self._target = source, target
        self._executor = executor
        self._read, self._check = read, check
        self._at_once = at_once
        self._recorded = task.file.checksum
        self._access: Access | None = None  # that the replica should have
        self._mode: int | None = None  # with which it is made
        self._attempts = 0
        self._dated = True  # whether a candidate's store tells its time

    def run(self) -> CopyResult | CopyFailure:
        """One round over all candidates."""
        if self._task.file.is_unlisted_directory:
            return self.failure(why_unlisted(self._task.file), "gone")
        place = self._task.place
        replica = None if place and place.made else self._target.status(self._task.target)
        if replica is not None:
            return self._present(replica)
        missing: list[str] = []
        for origin, uri in self._candidates():
            try:
                return self._copy(origin, uri)
            except _Gone as gone:
                missing.append(f"{uri} {gone}")
                self._gone(origin, uri, gone)
        return self._missing(missing)

    def failure(self, reason: str, kind: Literal["gone", "conflict", "unreachable", "failed"] = "failed") -> CopyFailure:
        """The answer where there is no proven replica."""
        return CopyFailure(self._task, f"{self._task.object_name}, event {self._task.evid}: {reason}", kind)

    def _gone(self, origin: Origin, uri: str, gone: _Gone) -> None:
        """A file that lies in cmroot by now is nothing new; another version in its place is worth a look."""
        level = logging.WARNING if gone.replaced else logging.DEBUG
        then = "; its copy in cmroot is taken" if origin == "source" and self._task.file.cm_uri else ""
        _LOG.log(level, "%s %s%s", uri, gone, then, extra=self.about)

    def _candidates(self) -> Iterator[tuple[Origin, str]]:
        yield "source", self._task.file.uri
        if self._task.file.cm_uri:
            yield "cmroot", self._task.file.cm_uri

    def _present(self, replica: FileStatus) -> CopyResult | CopyFailure:
        """A file has the target's name already: the same one (a restart, a speculative twin) or a conflict."""
        checksum = self._checksum(replica.uri, replica.size) if self._recorded and not replica.is_dir else None
        if checksum and checksum.value == self._recorded:
            return self._result("present", replica.size, Proof(checksum.algorithm, checksum.value, recorded=True))
        missing: list[str] = []
        for _, uri in self._candidates():
            try:
                proof = self._same_content(uri, replica)
            except _Gone as gone:
                missing.append(f"{uri} {gone}")
            else:
                return self._result("present", replica.size, proof) if proof else self._conflict()
        return self._conflict() if checksum or replica.is_dir else self._missing(missing)

    def _same_content(self, uri: str, replica: FileStatus) -> Proof | None:
        status = self._status(uri)
        if status.size != replica.size or replica.is_dir:
            self._expect_recorded(uri)
            return None
        read = Crc32c()
        self._identified(uri, status, read, lambda: deque(read.passing(self._reading(uri)), maxlen=0))
        same = read.hex == Crc32c.of(self._target.stream(replica.uri)).hex
        return Proof("CRC32C", read.hex, recorded=bool(self._recorded)) if same else None

    def _copy(self, origin: Origin, uri: str) -> CopyResult | CopyFailure:
        """Copies a candidate if it is the recorded version, else raises :class:`_Gone`."""
        status = self._status(uri)
        temporary, place = self._task.temporary(), self._task.place
        self._access = place and place.wanted(self._source, status, from_cmroot=origin == "cmroot")
        try:
            proof, size = self._reproduced(uri, status, temporary) or self._observed(uri, status, temporary)
            if place and self._access and self._mode is not None:
                place.finish(self._source, uri, self._target, temporary, self._access, self._mode)
            self._check()
            self._target.rename(temporary, self._task.target)
        except AlreadyExists:
            # A speculative twin was faster, or somebody else took the name.
            _LOG.debug("%s was made by another copy meanwhile", self._task.target, extra=self.about)
            self._discard(temporary)
            replica = self._target.status(self._task.target)
            if replica is None:
                raise
            return self._present(replica)
        except BaseException:
            self._discard(temporary)
            raise
        return self._result(origin, size, proof)

    def _reproduced(self, uri: str, status: FileStatus, temporary: str) -> tuple[Proof, int] | None:
        """Copies, and expects the replica to have the recorded checksum; None where it cannot or does not.

        It cannot on an HDFS that refuses blocks of the file's size.

        No look at the source is needed: whatever was read, and whatever happened to the source meanwhile, the replica is the
        recorded version if its checksum is the recorded one.
        """
        able = self._target.has_checksums(temporary) and is_reproducible(self._recorded, status)
        if not able and not self._is_read_back(status.size):
            return None
        try:
            size = self._write(status, temporary, self._reading(uri), status.block_size)
        except ReplicationError as error:
            if _LEAST_BLOCK not in str(error):
                raise
            _LOG.debug("the target has no blocks as small as those of %s: %s", uri, error, extra=self.about)
            return None
        checksum = self._checksum(temporary, size)
        if checksum and checksum.value == self._recorded:
            return Proof(checksum.algorithm, checksum.value, recorded=True), size
        _LOG.debug("%s was read, and is not the recorded version by its replica's checksum", uri, extra=self.about)
        self._target.delete(temporary)
        return None

    def _checksum(self, replica: str, size: int) -> FileChecksum | None:
        """Of a replica: made of what is read back where that is cheap, else, or where it is not the recorded one, its store's."""
        read = self._is_read_back(size) and checksum_of_content(b"".join(self._target.stream(replica)), self._recorded)
        return read or self._target.checksum(replica)

    def _is_read_back(self, size: int) -> bool:
        """Whether a replica's content is asked for instead of its checksum: a third of the servers' work, and any store can."""
        return size <= _READ_BACK and is_of_one_block(self._recorded)

    def _observed(self, uri: str, status: FileStatus, temporary: str) -> tuple[Proof, int]:
        """Copies a file that has the recorded checksum before and after, and reads the replica back."""
        read = Crc32c()
        self._identified(uri, status, read, lambda: self._write(status, temporary, read.passing(self._reading(uri))))
        written = Crc32c.of(self._target.stream(temporary))
        if read.hex != written.hex:
            raise ReplicationError(f"the replica reads back with CRC32C {written.hex}, {uri} was read with {read.hex}")
        return Proof("CRC32C", read.hex, recorded=bool(self._recorded)), read.size

    def _identified(self, uri: str, status: FileStatus, crc: Crc32c, read: Callable[[], object]) -> None:
        """Reads a candidate, which has the recorded checksum before and after, or else by what was read."""
        by_content = self._expect_recorded(uri)
        read()
        if not self._recorded:
            self._expect_unchanged(uri, status)
        elif not by_content:
            self._expect_recorded(uri)
        elif crc.hex != self._recorded:
            raise _Gone(f"is another version (CRC32C {crc.hex} instead of {self._recorded})", replaced=True)

    def _expect_recorded(self, uri: str) -> bool:
        """Raises :class:`_Gone` where HDFS tells another checksum; returns whether its content alone can tell.

        A metastore or engine with ``dfs.checksum.combine.mode=COMPOSITE_CRC`` records the CRC32C of the content, and DataNodes
        without it answer MD5-of-MD5-of-CRC.
        """
        if not self._recorded:
            return False
        try:
            checksum = self._source.checksum(uri)
        except FileNotFoundError as error:
            raise _Gone("is absent") from error
        if checksum is None:
            raise BadRequest(
                f"checksums of {uri} cannot be read: if it is on HDFS, set the webhdfs address of its storage root in the policy"
            )
        if is_composite(self._recorded) and not is_composite(checksum.value):
            return True
        if len(checksum.value) != len(self._recorded):
            raise BadRequest(
                f"{uri} has a checksum {checksum.algorithm}, and one of another kind was recorded ({self._recorded}): set "
                "dfs.checksum.combine.mode alike for DataNodes, metastores and HiveServer2 at the source"
            )
        if checksum.value != self._recorded:
            raise _Gone(f"is another version (checksum {checksum.value} instead of {self._recorded})", replaced=True)
        return False

    def _expect_unchanged(self, uri: str, before: FileStatus) -> None:
        """Raises an error where a file was replaced while it was read: its pieces may be of two versions."""
        dated, after = self._dated, self._status(uri)
        if after.size != before.size or (dated and after.modified != before.modified):
            raise ReplicationError(f"{uri} was changed while it was read")

    def _status(self, uri: str) -> FileStatus:
        asked = time.time()
        status = self._source.status(uri)
        if status is None or status.is_dir:
            raise _Gone("is absent" if status is None else "is a directory")
        # A store that tells no time says that it is now, by this clock; others tell the time by their own, which may be ahead.
        self._dated = not asked <= status.modified <= time.time()
        return status

    def _write(self, status: FileStatus, temporary: str, chunks: Iterator[bytes], block_size: int | None = None) -> int:
        """Writes the content of a candidate; how many bytes there were."""
        self._attempts += 1
        mode = self._mode = self._task.place.first_mode(self._access) if self._task.place and self._access else None
        if not (self._at_once and status.size <= _SMALL):
            return self._target.create(temporary, chunks, block_size=block_size, mode=mode, expected=status.size)
        data = b"".join(chunks)
        self._target.write(temporary, data, block_size=block_size, overwrite=False, mode=mode)
        return len(data)

    def _reading(self, uri: str) -> Iterator[bytes]:
        try:
            yield from self._read(uri)
        except FileNotFoundError as error:
            raise _Gone("is absent") from error

    def _discard(self, temporary: str) -> None:
        try:
            self._target.delete(temporary)
        except (ReplicationError, OSError) as error:
            _LOG.warning("%s is left over: %s", temporary, reason(error), extra=self.about)

    def _result(self, origin: Literal["source", "cmroot", "present"], size: int, proof: Proof) -> CopyResult:
        return CopyResult(self._task, origin, size, proof, self._attempts, self._executor)

    def _conflict(self) -> CopyFailure:
        return self.failure(
            f"{self._task.target} has other content than {self._task.file.uri}; nothing was overwritten", "conflict"
        )

    def _missing(self, places: list[str]) -> CopyFailure:
        cmroot = "" if self._task.file.cm_uri else "; no cmroot copy was recorded"
        return self.failure(f"the file is missing: {' and '.join(places)}{cmroot}", "gone")
