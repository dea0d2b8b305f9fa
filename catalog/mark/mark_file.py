"""`archive-mark.dat`: the file by which one archive excludes others from its directory.

The first 8 KiB hold one MarkFileHeader (schema 100, template 200) after its SBE message header;
the error log follows (`distinct_error_log`). A running archive stores the time there about once a
second. The directory is in use while that timestamp is younger than the liveness timeout, which is
all that the Java archive checks; so after a crash the timeout must pass, and a clean stop stores -1
to free the directory at once.

Two starts at the same instant could both find the file stale. Between archives of this package an
flock(2) on the file itself decides: it vanishes with its process, works between two archives of
one process too, and does not affect Java, which takes no lock on the file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from aerotape.catalog import layout
from aerotape.catalog.durability import reserve, write_at, write_durably
from aerotape.catalog.layout import SEMANTIC_VERSION
from aerotape.catalog.location import why_no_file
from aerotape.catalog.mark.layout import (
    ACTIVITY_TIMESTAMP,
    FILE_NAME,
    HEADER_LENGTH,
    LINK_FILE_NAME,
    NULL_TIMESTAMP_MS,
    VERSION,
    MarkFileHeader,
)
from aerotape.catalog.mark.ownership import (
    READ_FLAGS,
    check_other_place,
    check_stale,
    open_locked,
    read_content,
    resolve,
)
from aerotape.catalog.no_follow import open_no_follow
from aerotape.clock import epoch_ms
from aerotape.context import Closing
from aerotape.distinct_error_log import DistinctErrorLog, ErrorObservation, read_errors
from aerotape.errors import ClosedError, MarkFileError, StorageErrors
from aerotape.times import datetime_of_ms

DEFAULT_LIVENESS_TIMEOUT_MS = 10_000
KEEP_ALIVE_INTERVAL_S = 1.0
_PAGE_LENGTH = 4096


@dataclass(frozen=True, slots=True)
class MarkFileInfo:
    """The content of a mark file when it was read.

    Attributes:
        path: the file.
        header: its header.
        errors: its error log.
    """

    path: Path
    header: MarkFileHeader
    errors: list[ErrorObservation]

    def is_active(
        self, now_ms: int | None = None, timeout_ms: int = DEFAULT_LIVENESS_TIMEOUT_MS
    ) -> bool:
        """Whether an archive gave a sign of life within the timeout (epoch milliseconds)."""
        now = epoch_ms() if now_ms is None else now_ms
        return now - self.header.activity_timestamp_ms < timeout_ms


class MarkFile(Closing):
    """The mark file of the archive that this process runs.

    `acquire` takes the directory, `ready` says that the archive answers, `close` frees it: from any
    state, so that a start which registers `close` before `acquire` leaves no directory taken,
    wherever it is interrupted.

    It is changed by writes and not mapped: a store into a mapped file would wait for a disk that
    stands still with the interpreter held.
    """

    def __init__(
        self,
        archive_dir: str | os.PathLike[str],
        settings: MarkFileHeader,
        *,
        liveness_timeout_ms: int = DEFAULT_LIVENESS_TIMEOUT_MS,
        mark_file_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        """Create it; nothing is opened.

        Args:
            archive_dir: the directory; must exist.
            settings: what the archive is configured with.
            liveness_timeout_ms: age at which an activity timestamp is stale.
            mark_file_dir: where the mark file lies when not in the archive directory, which
                then gets a link file naming it.
        """
        self._archive_dir = Path(archive_dir)
        self._directory = self._archive_dir if mark_file_dir is None else Path(mark_file_dir)
        self._path = self._directory / FILE_NAME
        self._settings = settings
        self._liveness_timeout_ms = liveness_timeout_ms
        self._fd = -1
        # The file may have a timestamp of this archive; and its whole header.
        self._is_taken = self._is_whole = False
        self._closed = False
        self._errors = DistinctErrorLog(self._store, HEADER_LENGTH, settings.error_buffer_length)
        # A late timestamp of activity must not make a released directory look used.
        self._lock = threading.Lock()

    def acquire(self) -> None:
        """Take the archive directory for this process, or leave it untouched.

        Raises:
            ArchiveInUseError: another archive is using the directory.
            MarkFileError: the file cannot be used or is of another major version.
        """
        path, timeout_ms = self._path, self._liveness_timeout_ms
        now_ms = epoch_ms()
        header = replace(
            self._settings, activity_timestamp_ms=now_ms, start_timestamp_ms=now_ms, pid=os.getpid()
        )
        encoded = header.encode()
        length = layout.align(HEADER_LENGTH + header.error_buffer_length, _PAGE_LENGTH)
        check_other_place(self._archive_dir, path, timeout_ms)
        try:
            self._fd = open_locked(path)
            existing = check_stale(path, self._fd, timeout_ms)
            reserve(path, self._fd, length, "mark file", MarkFileError)
            self._is_taken = True
            # The timestamp first, so that no start finds the file stale while the rest is written.
            self._store(ACTIVITY_TIMESTAMP, layout.LONG.pack(now_ms))
            _save_errors(self._directory, existing)
            after = ACTIVITY_TIMESTAMP + 8
            self._store(after, encoded[after:].ljust(HEADER_LENGTH - after, b"\0"))
            self._store(0, encoded[:ACTIVITY_TIMESTAMP])
            self._is_whole = True
            self._errors.clear()
            _link(self._archive_dir, self._directory)
        except BaseException as error:
            with contextlib.suppress(MarkFileError):
                self.close()
            if isinstance(error, OSError):
                raise MarkFileError(f"cannot use mark file {path}: {error}", path) from error
            raise

    @staticmethod
    def read(archive_dir: str | os.PathLike[str]) -> MarkFileInfo:
        """Read the mark file of an archive directory; the archive may run, or be another's.

        Raises:
            MarkFileError: there is none, or it is no archive's mark file.
        """
        path = resolve(Path(archive_dir))
        try:
            descriptor = os.open(path, READ_FLAGS)
            try:
                data = read_content(path, descriptor)
            finally:
                os.close(descriptor)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise MarkFileError(why_no_file(Path(archive_dir), path, "mark file"), path) from error
        except OSError as error:
            raise MarkFileError(f"cannot read mark file {path}: {error.strerror}", path) from error
        header = MarkFileHeader.decode(data)
        if header is None:
            raise MarkFileError(f"{path} is not the mark file of an archive", path)
        begin = header.header_length
        return MarkFileInfo(
            path, header, read_errors(data[begin : begin + header.error_buffer_length])
        )

    @property
    def path(self) -> Path:
        """The mark file."""
        return self._path

    def ready(self) -> None:
        """Mark the archive as started, and force the file to storage."""
        with self._lock:
            self._check_open()
            self._signal(epoch_ms())

    def update_activity(self, now_ms: int) -> None:
        """Store the activity timestamp `now_ms`, epoch milliseconds (MarkFileError)."""
        with self._lock:
            self._check_open()
            self._store(ACTIVITY_TIMESTAMP, layout.LONG.pack(now_ms))

    @contextlib.contextmanager
    def kept_alive(self) -> Iterator[None]:
        """Update the activity timestamp from a thread during work that may take long.

        A Java archive would take the directory over when none came for ten seconds. Closing the
        mark file within is fine.
        """
        done = threading.Event()

        def keep_alive() -> None:
            with contextlib.suppress(ClosedError):
                while not done.wait(KEEP_ALIVE_INTERVAL_S):
                    # The next one may be written.
                    with contextlib.suppress(MarkFileError):
                        self.update_activity(epoch_ms())

        keeper = threading.Thread(target=keep_alive, name="archive-mark-file", daemon=True)
        keeper.start()
        try:
            yield
        finally:
            done.set()
            keeper.join()

    def record_error(self, text: str, now_ms: int) -> bool:
        """Count an error in the error log; False when it is full (MarkFileError)."""
        with self._lock:
            self._check_open()
            return self._errors.record(text, now_ms)

    def close(self) -> None:
        """Free the directory at once for the next archive. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._fd < 0:
                return
            try:
                if self._is_taken:
                    self._signal(NULL_TIMESTAMP_MS)
            finally:
                # A forked child may still hold the descriptor; the lock must go all the same.
                fcntl.flock(self._fd, fcntl.LOCK_UN)
                os.close(self._fd)

    def _signal(self, timestamp_ms: int) -> None:
        self._store(ACTIVITY_TIMESTAMP, layout.LONG.pack(timestamp_ms))
        if self._is_whole:
            self._store(VERSION, layout.INT.pack(SEMANTIC_VERSION))
        with StorageErrors(f"cannot write mark file {self._path}", self._path, MarkFileError):
            os.fsync(self._fd)

    def _store(self, offset: int, data: bytes) -> None:
        with StorageErrors(f"cannot write mark file {self._path}", self._path, MarkFileError):
            write_at(self._fd, data, offset)

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"mark file {self._path} is closed")


def _save_errors(directory: Path, data: bytes) -> None:
    """Save the previous error log before it is cleared, as the Java archive does."""
    header = MarkFileHeader.decode(data)
    if header is None:
        return
    begin = header.header_length
    errors = read_errors(data[begin : begin + header.error_buffer_length]) if begin else []
    if not errors:
        return
    stamp = datetime.now().astimezone().strftime("%Y-%m-%d-%H-%M-%S-%f")[:-3]
    path = directory / f"archive-{stamp}-error.log"
    lines = [
        f"{error.count} observations from {_iso(error.first_timestamp_ms)} to "
        f"{_iso(error.last_timestamp_ms)} for:\n {error.text}\n"
        for error in errors
    ]
    try:
        with open(path, "w", encoding="utf-8", opener=open_no_follow) as file:
            file.write("\n".join(lines))
    except OSError:
        # Losing old error texts must not keep the archive from starting.
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _iso(timestamp_ms: int) -> str:
    time = datetime_of_ms(timestamp_ms)
    return str(timestamp_ms) if time is None else time.isoformat(timespec="milliseconds")


def _link(archive_dir: Path, mark_file_dir: Path) -> None:
    """Let the archive directory name the directory of its mark file (MarkFileError)."""
    link = archive_dir / LINK_FILE_NAME
    try:
        if archive_dir.resolve() == mark_file_dir.resolve():
            # A directory of that name is not a link (`resolve`).
            with contextlib.suppress(IsADirectoryError):
                link.unlink(missing_ok=True)
            return
        target = os.fsencode(mark_file_dir.resolve())
        if link.is_file() and link.read_bytes() == target:
            return
        write_durably(link, target)
    except OSError as error:
        raise MarkFileError(
            f"cannot write {LINK_FILE_NAME} in {archive_dir}: {error.strerror}",
            mark_file_dir / FILE_NAME,
        ) from error
