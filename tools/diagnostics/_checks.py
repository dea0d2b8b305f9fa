"""The checks of `aerotape doctor`: of this machine and of what runs on it.

A check returns findings; it raises only for invalid options.
"""

from __future__ import annotations

import os
import platform
import resource
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Final

from aerotape import __version__
from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.formatting import bytes_text
from aerotape.tools._cli.option_names import message_of

if TYPE_CHECKING:
    from aerotape.clients import ArchiveClient

OK: Final = "ok"
WARNING: Final = "warning"
FAILED: Final = "failed"

_MEMORY: Final = Path("/dev/shm")
_LOG_BUFFERS: Final = 256 << 20  # of a few streams, with the media driver's files
_SEGMENT_FILE: Final = 128 << 20  # the default length
_ARCHIVE_SPACE: Final = 1 << 30
_OPEN_FILES: Final = 4096
_ROUND_TRIP_BYTES: Final = 1 << 20
_ALIVE_NS: Final = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of a check.

    Attributes:
        check: its name.
        state: `OK`, `WARNING` (may limit what works) or `FAILED`.
        found: what was found.
        fix: how to correct it; None if the state is `OK`.
    """

    check: str
    state: str
    found: str
    fix: str | None = None


def versions() -> Finding:
    """Report the versions of aerotape, Python and the kernel."""
    found = f"aerotape {__version__}, Python {platform.python_version()}, {platform.platform()}"
    return Finding("versions", OK, found)


def limits() -> Iterator[Finding]:
    """Check the limits of this process, which an archive started here would have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    text = "unlimited" if hard == unlimited else f"at most {hard}"
    if hard != unlimited and hard < _OPEN_FILES:
        fix = f"raise it to {_OPEN_FILES} or more: `ulimit -Hn` as root, LimitNOFILE of a service"
        yield Finding("open files", WARNING, text, fix)
    else:
        yield Finding("open files", OK, text)
    size, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if size != unlimited and size < _SEGMENT_FILE:
        found = f"at most {bytes_text(size)}, a segment file has {bytes_text(_SEGMENT_FILE)}"
        yield Finding("file size", FAILED, found, "remove the limit: `ulimit -f unlimited`")
    else:
        yield Finding("file size", OK, "unlimited" if size == unlimited else bytes_text(size))


def driver_space(aeron_dir: str) -> Finding:
    """Check the file system in which the media driver creates log buffers."""
    grow = f"`mount -o remount,size=2g {_MEMORY}`, or `--shm-size` of a container"
    return _space("log buffers", Path(aeron_dir), _LOG_BUFFERS, grow)


def archive_space(archive_dir: str) -> Finding:
    """Check the file system of the archive directory."""
    return _space("archive disk", Path(archive_dir), _ARCHIVE_SPACE, "`aerotape retain`")


def _space(check: str, directory: Path, least: int, how: str) -> Finding:
    place = directory.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        found = f"cannot write in {place}"
        return Finding(check, FAILED, found, "give this user write access, or another directory")
    usage = shutil.disk_usage(place)
    found = f"{bytes_text(usage.free)} of {bytes_text(usage.total)} free in {place}"
    if usage.free >= least:
        return Finding(check, OK, found)
    return Finding(check, WARNING, found, f"provide {bytes_text(least)} or more: {how}")


def driver(aeron_dir: str) -> Finding:
    """Check that a media driver runs in a directory."""
    from aerotape.media_driver import await_driver

    try:
        await_driver(aeron_dir, 0, _ALIVE_NS)
        return Finding("media driver", OK, f"{_driver_version(aeron_dir)} in {aeron_dir}")
    except (AerotapeError, OSError) as error:
        fix = "run `aerotape archive` or `aerotape driver`, or give --aeron-dir of one that runs"
        return Finding("media driver", WARNING, message_of(error), fix)


def archive(connect: Callable[[], ArchiveClient]) -> Finding:
    """Check that an archive responds."""
    try:
        with connect() as client:
            took_us = client.ping() / 1000
            found = f"id {client.archive_id}, responds in {took_us:.0f} us"
            return Finding("archive", OK, found)
    except ConfigurationError:
        raise
    except (AerotapeError, OSError) as error:
        fix = "run `aerotape archive`, or give --control-channel and --control-stream-id of one"
        return Finding("archive", WARNING, message_of(error), fix)


def round_trip() -> Finding:
    """Record and replay messages with a temporary archive and media driver."""
    from aerotape.tools._live_archive import LiveArchive

    check = "round trip"
    folder = Path(gettempdir())
    # On a full tmpfs, a write to a log buffer ends the process.
    places = (place for place in (_MEMORY, folder) if _has_room(place))
    memory = next(places, None)
    if memory is None or not _has_room(folder):
        found = f"{bytes_text(_LOG_BUFFERS)} are not free in {_MEMORY} and {folder}"
        return Finding(check, FAILED, found, "free space there, or set $TMPDIR to another place")
    prefix = "aerotape-doctor-"
    try:
        with (
            TemporaryDirectory(prefix=prefix, dir=folder) as files,
            TemporaryDirectory(prefix=prefix, dir=memory) as buffers,
        ):
            aeron_dir = Path(buffers) / "aeron"
            archive_dir = Path(files) / "archive"
            with LiveArchive(archive_dir, aeron_dir, _ROUND_TRIP_BYTES, 1024) as live:
                live.record()
                live.replay()
                version = _driver_version(str(aeron_dir))
                found = f"{live.messages} messages recorded and replayed, {version}"
        return Finding(check, OK, found)
    except (AerotapeError, OSError) as error:
        fix = "correct what the other checks report; `aerotape archive` shows more of the cause"
        return Finding(check, FAILED, message_of(error), fix)


def _has_room(place: Path) -> bool:
    if not os.access(place, os.W_OK | os.X_OK):
        return False
    return shutil.disk_usage(place).free >= _LOG_BUFFERS


def _driver_version(aeron_dir: str) -> str:
    """Return the version of a running media driver, from the label of its counter."""
    from aerotape.cnc import CncFile

    for counter in CncFile(aeron_dir).counters():
        _, found, version = counter.label.partition("Aeron software: version=")
        if found:
            return f"Aeron {version.split()[0]}"
    return "Aeron of an unknown version"
