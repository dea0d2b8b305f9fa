"""May an archive take a directory? What its mark file says, and the lock on it.

Nothing here writes: a start that is refused must leave no trace.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from aerotape.catalog.layout import LONG, MAJOR_VERSION, version_string
from aerotape.catalog.mark_layout import (
    ACTIVITY_TIMESTAMP,
    BLOCK_BEGIN,
    CLAIMED_TIMESTAMP_MS,
    FILE_NAME,
    HEADER_LENGTH,
    LINK_FILE_NAME,
    MarkFileHeader,
    is_unfinished,
)
from aerotape.catalog.no_follow import open_no_follow
from aerotape.errors import ArchiveInUseError, MarkFileError

# Not to wait for a writer when the name is that of a pipe.
READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_MAX_LENGTH = 1 << 28
# PATH_MAX: a longer path cannot be opened.
_MAX_PATH_LENGTH = 4096


def now_epoch_ms() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def resolve(archive_dir: Path) -> Path:
    """Return where the mark file of an archive directory is, by its link file if it has one.

    Raises:
        MarkFileError: the link file is longer than a path can be.
    """
    link = archive_dir / LINK_FILE_NAME
    target = b""
    with contextlib.suppress(OSError):
        if link.is_file():
            with link.open("rb") as file:
                target = file.read(_MAX_PATH_LENGTH + 1)
    if len(target) > _MAX_PATH_LENGTH:
        raise MarkFileError(
            f"{link} is longer than the {_MAX_PATH_LENGTH} bytes that a path can have: put the "
            "path of the mark file's directory into it, or remove it if the mark file is in "
            f"{archive_dir}",
            link,
        )
    target = target.strip()
    # Something else than a path, which is absolute, is no link.
    if not target.startswith(b"/") or b"\0" in target:
        return archive_dir / FILE_NAME
    return Path(os.fsdecode(target)) / FILE_NAME


def open_locked(path: Path) -> int:
    """Open the mark file at `path`, made if it is not there, and lock it.

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
                raise MarkFileError(
                    f"cannot open mark file {path}: {error.strerror}", path
                ) from error
            raise
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def lock(path: Path, descriptor: int) -> None:
    """Lock a mark file, or raise ArchiveInUseError."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        header = MarkFileHeader.decode(os.pread(descriptor, HEADER_LENGTH, 0))
        raise in_use(path, 0 if header is None else header.pid, "it holds the lock") from None


def read_content(path: Path, descriptor: int) -> bytes:
    """Read a mark file; MarkFileError when it is no file."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise MarkFileError(f"mark file {path} is not a regular file", path)
    # Some other file of that name may be of any length.
    return os.pread(descriptor, min(status.st_size, _MAX_LENGTH), 0)


def check_other_place(archive_dir: Path, path: Path, liveness_timeout_ms: int) -> None:
    """See that no archive uses the directory with a mark file somewhere else than at `path`."""
    for other in _places(archive_dir):
        if os.path.realpath(other) == os.path.realpath(path):
            continue
        descriptor = _lock_unused(other, liveness_timeout_ms)
        if descriptor >= 0:
            os.close(descriptor)


@contextlib.contextmanager
def unused(archive_dir: Path, liveness_timeout_ms: int) -> Iterator[None]:
    """Keep other archives of this package out of a directory that no archive is using.

    The mark file is locked and not written, so that a Java archive could be started meanwhile.

    Raises:
        ArchiveInUseError: an archive is using it.
        MarkFileError: whether one is cannot be told.
    """
    with contextlib.ExitStack() as locks:
        for path in _places(archive_dir):
            descriptor = _lock_unused(path, liveness_timeout_ms)
            if descriptor >= 0:
                locks.callback(os.close, descriptor)
        yield


def check_unused(archive_dir: Path, liveness_timeout_ms: int) -> None:
    """Raise what `unused` would, and lock nothing: an archive may start just now."""
    for path in _places(archive_dir):
        descriptor = _lock_unused(path, liveness_timeout_ms, locks=False)
        if descriptor >= 0:
            os.close(descriptor)


def is_held(archive_dir: Path) -> bool:
    """Whether an archive of this package is using a directory."""
    for path in _places(archive_dir):
        try:
            descriptor = os.open(path, READ_FLAGS)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
    return False


def _places(archive_dir: Path) -> set[Path]:
    """Return where the mark file of an archive that uses the directory may be."""
    return {resolve(archive_dir), archive_dir / FILE_NAME}


def _lock_unused(path: Path, liveness_timeout_ms: int, *, locks: bool = True) -> int:
    """Lock a mark file that no archive is using; -1 when there is nothing that one could use.

    Where a file system has no locks, and without `locks`, what the file says of its archive decides
    alone.
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
    """Return the whole file as the archive before left it, or raise."""
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
    if header.activity_timestamp_ms == CLAIMED_TIMESTAMP_MS:
        # A Java archive claims a stale file like so until it is ready. If it died meanwhile, the
        # claim would stand for ever.
        if header.pid > 0 and not _is_alive(header.pid):
            return data
        raise in_use(path, header.pid, "it is starting")
    _check_age(path, header.pid, header.activity_timestamp_ms, liveness_timeout_ms)
    return data


def _check_age(path: Path, pid: int, timestamp_ms: int, liveness_timeout_ms: int) -> None:
    age_ms = now_epoch_ms() - timestamp_ms
    if age_ms < liveness_timeout_ms:
        raise in_use(
            path,
            pid,
            f"it gave a sign of life {age_ms} ms ago; after a crash, wait until that is "
            f"{liveness_timeout_ms} ms old",
        )


def in_use(path: Path, pid: int, reason: str) -> ArchiveInUseError:
    """Make the error that says by whom a directory is used, and how that is known."""
    process = f"process {pid}" if pid > 0 else "a process that its mark file does not name"
    return ArchiveInUseError(
        f"archive directory {path.parent} is in use by another archive, {process}: {reason}",
        path,
        pid,
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
