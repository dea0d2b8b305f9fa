"""Decide whether an archive directory is free: mark-file liveness and the advisory lock.

Nothing here writes: a start that is refused must not change anything.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from aerotape.catalog.layout import LONG, MAJOR_VERSION, version_string
from aerotape.catalog.mark.layout import (
    ACTIVITY_TIMESTAMP,
    BLOCK_BEGIN,
    CLAIMED_TIMESTAMP_MS,
    FILE_NAME,
    HEADER_LENGTH,
    LINK_FILE_NAME,
    LOCK_FILE_NAME,
    MarkFileHeader,
    is_unfinished,
)
from aerotape.catalog.no_follow import open_no_follow
from aerotape.clock import epoch_ms
from aerotape.errors import ArchiveInUseError, MarkFileError

# Not to wait for a writer when the name is that of a pipe.
READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_MAX_LENGTH = 1 << 28
_MAX_PATH_LENGTH = 4096


def resolve(archive_dir: Path) -> Path:
    """Return the path of an archive directory's mark file, by its link file if there is one."""
    link = archive_dir / LINK_FILE_NAME
    target = b""
    with contextlib.suppress(OSError):
        if link.is_file():
            with link.open("rb") as file:
                target = file.read(_MAX_PATH_LENGTH)
    target = target.strip()
    # Ignore a link file whose content is not an absolute path.
    if not target.startswith(b"/") or b"\0" in target:
        return archive_dir / FILE_NAME
    return Path(os.fsdecode(target)) / FILE_NAME


def claim(
    archive_dir: Path, mark_file_dir: Path | None, liveness_timeout_ms: int
) -> Callable[[], None]:
    """Take an archive directory before anything else is written; return what frees it.

    The mark file alone cannot decide: it may lie in the media driver's directory, which a driver
    deletes when it starts.

    Raises:
        ArchiveInUseError: another archive is using the directory.
        MarkFileError: that cannot be determined, or the lock file cannot be opened.
    """
    lock_file = archive_dir / LOCK_FILE_NAME
    mark_files = _mark_files(archive_dir)
    if mark_file_dir is not None:
        mark_files.append(mark_file_dir / FILE_NAME)
    if not os.path.exists(lock_file):  # noqa: PTH110 - Path.exists may raise
        for path in mark_files:
            _check_unused(path, liveness_timeout_ms, locks=False)
    try:
        descriptor = open_locked(lock_file)
    except MarkFileError as error:
        if isinstance(error.__cause__, PermissionError):
            # Where no file may be created the mark file alone decides.
            return lambda: None
        raise

    def free() -> None:
        # While it is locked: `open_locked` notices that its file has no name any more.
        with contextlib.suppress(OSError):
            lock_file.unlink()
        # A forked child may still hold the descriptor; the lock must go all the same.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)

    try:
        for path in mark_files:
            _check_unused(path, liveness_timeout_ms)
        # For errors that name the process: on a full disk they do not.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d" % os.getpid(), 0)
    except BaseException:
        free()
        raise
    return free


def open_locked(path: Path) -> int:
    """Open the mark file or lock file at `path`, created if it is not there, and lock it.

    Raises:
        ArchiveInUseError: another archive has it locked.
        MarkFileError: it cannot be opened.
    """
    while True:
        descriptor = -1
        try:
            descriptor = open_no_follow(path, os.O_RDWR | os.O_CREAT)
            lock(path, descriptor)
            # A start that fails takes its new file away: what was locked may have no name by now.
            if _is_at(path, descriptor):
                return descriptor
        except BaseException as error:
            if descriptor >= 0:
                os.close(descriptor)
            if isinstance(error, OSError):
                kind = "lock" if path.name == LOCK_FILE_NAME else "mark"
                raise MarkFileError(
                    f"cannot open {kind} file {path}: {error.strerror}", path
                ) from error
            raise
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def lock(path: Path, descriptor: int) -> None:
    """Lock a mark file or lock file, or raise ArchiveInUseError."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        data = os.pread(descriptor, HEADER_LENGTH, 0)
        if path.name == LOCK_FILE_NAME:
            pid = int(data) if data.isdigit() and len(data) < 20 else 0
        else:
            header = MarkFileHeader.decode(data)
            pid = 0 if header is None else header.pid
        raise in_use(path, pid, "stop it first") from None


def read_content(path: Path, descriptor: int) -> bytes:
    """Read a mark file; MarkFileError when it is not a regular file."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise MarkFileError(f"mark file {path} is not a regular file", path)
    # Some other file of that name may be of any length.
    return os.pread(descriptor, min(status.st_size, _MAX_LENGTH), 0)


def check_other_place(archive_dir: Path, path: Path, liveness_timeout_ms: int) -> None:
    """Check that no archive uses the directory with a mark file at another path than `path`."""
    for other in _mark_files(archive_dir):
        if os.path.realpath(other) != os.path.realpath(path):
            _check_unused(other, liveness_timeout_ms)


@contextlib.contextmanager
def unused(archive_dir: Path, liveness_timeout_ms: int) -> Iterator[None]:
    """Exclude other archives of this package from a directory that no archive is using.

    Mark file and lock file are locked and not written, so that a Java archive can start in spite
    of the locks.

    Raises:
        ArchiveInUseError: an archive is using it.
        MarkFileError: that cannot be determined.
    """
    with contextlib.ExitStack() as locks:
        for path in _places(archive_dir):
            descriptor = _lock_unused(path, liveness_timeout_ms)
            if descriptor >= 0:
                locks.callback(os.close, descriptor)
        yield


def check_unused(archive_dir: Path, liveness_timeout_ms: int) -> None:
    """Raise the errors of `unused` without locking: an archive may start right afterwards."""
    for path in _places(archive_dir):
        _check_unused(path, liveness_timeout_ms, locks=False)


def _mark_files(archive_dir: Path) -> list[Path]:
    """Return the possible paths of the mark file of an archive that uses the directory."""
    return list(dict.fromkeys((resolve(archive_dir), archive_dir / FILE_NAME)))


def _places(archive_dir: Path) -> list[Path]:
    """Return the files that an archive that uses the directory may have locked."""
    # In the order in which an archive locks them.
    return [archive_dir / LOCK_FILE_NAME, *_mark_files(archive_dir)]


def _check_unused(path: Path, liveness_timeout_ms: int, *, locks: bool = True) -> None:
    descriptor = _lock_unused(path, liveness_timeout_ms, locks=locks)
    if descriptor >= 0:
        os.close(descriptor)


def _lock_unused(path: Path, liveness_timeout_ms: int, *, locks: bool = True) -> int:
    """Lock a mark file or lock file that no archive is using; -1 when there is no such file.

    On a file system without locks, or if `locks` is false, only the contents of the file decide
    whether an archive is using it.
    """
    try:
        descriptor = os.open(path, READ_FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return -1
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return -1
        raise MarkFileError(
            f"cannot open the mark file {path}: {error.strerror}; whether an archive is using the"
            " directory is not known",
            path,
        ) from error
    try:
        with contextlib.suppress(OSError):
            if locks:
                lock(path, descriptor)
        if path.name == LOCK_FILE_NAME:
            return descriptor
        try:
            check_stale(path, descriptor, liveness_timeout_ms)
        except ArchiveInUseError:
            raise
        except MarkFileError:
            if not _is_stale_in_other_version(path, descriptor, liveness_timeout_ms):
                os.close(descriptor)
                return -1
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_stale_in_other_version(path: Path, descriptor: int, liveness_timeout_ms: int) -> bool:
    """Whether a file is the mark file of an archive of an older version, which has ended.

    Raises:
        ArchiveInUseError: an archive of another version is using it.
        MarkFileError: it is of a version of which nothing is known.
    """
    try:
        data = read_content(path, descriptor)
    except MarkFileError:
        return False
    header = MarkFileHeader.decode(data)
    if header is not None:
        version, timestamp_ms, pid = header.version, header.activity_timestamp_ms, header.pid
    elif len(data) >= BLOCK_BEGIN.size:
        version, timestamp_ms, _, pid = BLOCK_BEGIN.unpack_from(data)
    else:
        return False
    is_older = 0 < version < MAJOR_VERSION << 16
    if header is None and not is_older:
        return False
    _check_age(path, pid, timestamp_ms, liveness_timeout_ms)
    if not is_older:
        raise MarkFileError(
            f"mark file {path} is of version {version_string(version)}, which is not known here, "
            "and so is not whether an archive is using the directory; if none is, move the file "
            "away",
            path,
        )
    return True


def check_stale(path: Path, descriptor: int, liveness_timeout_ms: int) -> bytes:
    """Return the whole file as the previous archive left it, or raise."""
    data = read_content(path, descriptor)
    if not any(data[:HEADER_LENGTH]):
        return b""
    header = MarkFileHeader.decode(data)
    if header is None and is_unfinished(data):
        # Its archive was killed, or the power failed, before the header was whole.
        (timestamp_ms,) = LONG.unpack_from(data, ACTIVITY_TIMESTAMP)
        _check_age(path, 0, timestamp_ms, liveness_timeout_ms)
        return b""
    if header is None:
        raise MarkFileError(
            f"{path} is not the mark file of an archive: move it away if the directory is one",
            path,
        )
    if header.version != 0 and header.version >> 16 != MAJOR_VERSION:
        raise MarkFileError(
            f"mark file {path} is of version {version_string(header.version)}; this archive uses "
            f"{MAJOR_VERSION}.x: see `aerotape tool DIR migrate`",
            path,
        )
    _check_age(path, header.pid, header.activity_timestamp_ms, liveness_timeout_ms)
    return data


def _check_age(path: Path, pid: int, timestamp_ms: int, liveness_timeout_ms: int) -> None:
    if timestamp_ms == CLAIMED_TIMESTAMP_MS:
        # Stands until that archive is ready, as in the reference: its process id may be one of
        # another container, or still that of the archive before.
        raise in_use(
            path,
            pid,
            f"a Java archive is starting there (activity timestamp {timestamp_ms}); if none is,"
            f" one was killed as it started: move {path} away",
        )
    age_ms = epoch_ms() - timestamp_ms
    if age_ms < liveness_timeout_ms:
        raise in_use(
            path,
            pid,
            f"stop it first; if it was killed, wait until its last sign of life, {age_ms} ms ago, "
            f"is {liveness_timeout_ms} ms old",
        )


def in_use(path: Path, pid: int, reason: str) -> ArchiveInUseError:
    """Create the error that names the process using a directory, and the evidence."""
    process = f"process {pid}" if pid > 0 else "a process that its mark file does not name"
    return ArchiveInUseError(
        f"archive directory {path.parent} is in use by another archive, {process}: {reason}",
        path,
        pid,
    )
