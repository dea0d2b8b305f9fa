"""Check what this machine has for an archive: a finding a line, each with what to do.

Checks versions, limits, /dev/shm, socket buffers, the disk of an archive directory and the media
driver, and records and replays messages with an archive of its own in a temporary directory. The
exit code is 1 if a check failed; warnings do not change it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.errors import AerotapeError
from aerotape.formatting import bytes_text, printable
from aerotape.tools._cli.connection import add_driver_option, driver_directory
from aerotape.tools._cli.exit_codes import EXIT_FAILURE, EXIT_OK
from aerotape.tools._cli.output import emit
from aerotape.tools._cli.styles import GREEN, RED, YELLOW, styled

if TYPE_CHECKING:
    from aerotape.archive.client.client import ArchiveClient

_SHM: Final = Path("/dev/shm")
_COLOURS: Final = {"ok": GREEN, "warning": YELLOW, "failed": RED}
_MIN_SHM: Final = 1 << 30
_MIN_FILES: Final = 4096
_MIN_SOCKET_BUFFER: Final = 2 << 20
_MIN_DISK: Final = 1 << 30
_NETWORK_FILE_SYSTEMS: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"})
_MESSAGES: Final = 1000
_RECORDED_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found.

    Attributes:
        check: its name.
        state: "ok", "warning" or "failed".
        detail: what there is.
        fix: what to do; "" if there is nothing to do.
    """

    check: str
    state: str
    detail: str
    fix: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_driver_option(parser)
    parser.add_argument(
        "--dir", metavar="DIR", type=Path, default=Path(), help="the archive directory (default: .)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the findings."""
    found = []
    for finding in _findings(args):
        found.append(finding)
        if not args.json:
            state = styled(f"{finding.state:7}", _COLOURS[finding.state], sys.stdout)
            print(f"{state}  {finding.check}: {printable(finding.detail)}")
            if finding.fix:
                print(f"         {finding.fix}")
    if args.json:
        emit(found, args)
    return EXIT_FAILURE if any(each.state == "failed" for each in found) else EXIT_OK


def _findings(args: argparse.Namespace) -> Iterator[Finding]:
    yield from _versions()
    yield _open_files()
    yield _shared_memory()
    yield _socket_buffers()
    yield _disk(args.dir)
    yield _driver(driver_directory(args))
    yield _round_trip()


def _judged(check: str, detail: str, fix: str, is_good: bool) -> Finding:
    return Finding(check, "ok", detail) if is_good else Finding(check, "warning", detail, fix)


def _versions() -> Iterator[Finding]:
    import platform
    from importlib import metadata

    from aerotape import __version__

    python = f"aerotape {__version__}, Python {platform.python_version()}, {platform.platform()}"
    yield Finding("versions", "ok", python)
    found = []
    for name in ("pyarrow", "pyspark", "deltalake", "polars", "duckdb"):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    yield Finding("libraries", "ok", ", ".join(found) or "no library for tables")


def _open_files() -> Finding:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _judged(
        "open files",
        f"at most {soft} a process",
        f"an archive with many streams needs more: `ulimit -n {_MIN_FILES}` in the shell, or "
        f"LimitNOFILE={_MIN_FILES} in its systemd unit",
        soft >= _MIN_FILES,
    )


def _shared_memory() -> Finding:
    if not _SHM.is_dir():
        return Finding(
            "/dev/shm",
            "failed",
            "there is none, and media drivers have their directory there",
            "mount a tmpfs there, or name another directory: --aeron-dir, -Daeron.dir",
        )
    free = _free(_SHM)
    return _judged(
        "/dev/shm",
        f"{bytes_text(free)} free",
        "a publication takes three times its term length (default: 3 x 64 MiB, IPC): "
        "`mount -o remount,size=4g /dev/shm`, or `docker run --shm-size=4g`",
        free >= _MIN_SHM,
    )


def _socket_buffers() -> Finding:
    limits = {}
    for name in ("rmem_max", "wmem_max"):
        try:
            limits[name] = int(Path(f"/proc/sys/net/core/{name}").read_text())
        except (OSError, ValueError):  # a container without its own network
            return Finding("socket buffers", "ok", f"net.core.{name} cannot be read here")
    return _judged(
        "socket buffers",
        ", ".join(f"net.core.{name} {limit}" for name, limit in limits.items()),
        f"UDP may lose bursts: `sysctl -w net.core.rmem_max={_MIN_SOCKET_BUFFER} "
        f"net.core.wmem_max={_MIN_SOCKET_BUFFER}`",
        min(limits.values()) >= _MIN_SOCKET_BUFFER,
    )


def _disk(directory: Path) -> Finding:
    place = directory.absolute()
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK | os.X_OK):
        return Finding(
            "disk",
            "failed",
            f"{place} cannot be written",
            "run as its owner, or give another --dir",
        )
    kind = _file_system(place)
    if kind in _NETWORK_FILE_SYSTEMS:
        return Finding(
            "disk",
            "warning",
            f"{place} is on {kind}",
            "use a local disk: a network file system may lose what it reported as written",
        )
    free = _free(place)
    return _judged(
        "disk",
        f"{place}: {bytes_text(free)} free on {kind}",
        "an archive stops recording when space is low (aeron.archive.low.storage.space.threshold)",
        free >= _MIN_DISK,
    )


def _free(directory: Path) -> int:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


def _file_system(place: Path) -> str:
    """Return the type of a folder's file system, that of the longest mount point above it."""
    best, kind = "", "an unknown file system"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mounted_on, name, *_ = line.split()
        if place.is_relative_to(mounted_on) and len(mounted_on) >= len(best):
            best, kind = mounted_on, name
    return kind


def _driver(aeron_dir: str) -> Finding:
    from aerotape.cnc import CncFile

    try:
        is_active = CncFile(aeron_dir).is_active()
    except (AerotapeError, OSError):
        is_active = False
    if is_active:
        return Finding("media driver", "ok", f"one is running in {aeron_dir}")
    return Finding(
        "media driver",
        "ok",
        f"none is running in {aeron_dir}; `aerotape archive` starts its own",
    )


def _round_trip() -> Finding:
    """Record and replay messages with an archive and a driver of its own."""
    import tempfile

    import aerotape

    base = _SHM if _SHM.is_dir() and os.access(_SHM, os.W_OK) else None
    began = time.perf_counter()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="aerotape-doctor-", dir=base) as folder,
            aerotape.Archive.launch(
                dir=f"{folder}/archive",
                aeron_dir=f"{folder}/aeron",
                properties={
                    "aeron.archive.control.channel.enabled": "false",
                    "aeron.archive.low.storage.space.threshold": "1m",
                    "aeron.archive.segment.file.length": "1m",
                    "aeron.term.buffer.sparse.file": "true",
                    "aeron.threading.mode": "SHARED",
                },
            ),
            aerotape.connect(aeron_dir=f"{folder}/aeron") as client,
        ):
            replayed = _replayed(client)
    except (AerotapeError, OSError) as error:
        return Finding("round trip", "failed", str(error), "see docs/troubleshooting.md")
    took = time.perf_counter() - began
    detail = (
        f"{replayed} of {_MESSAGES} messages recorded and replayed, {took:.1f} s in all"
    )
    if replayed != _MESSAGES:
        return Finding("round trip", "failed", detail, "see docs/troubleshooting.md")
    return Finding("round trip", "ok", detail)


def _replayed(client: ArchiveClient) -> int:
    """Record messages, and return how many a replay has."""
    import aerotape

    with client.add_recorded_publication("aeron:ipc?term-length=1m", 1001) as publication:
        for number in range(_MESSAGES):
            publication.send(str(number).encode())
        end = publication.position
        recording_id = client.await_signal(aerotape.RecordingSignal.START).recording_id
        deadline = time.monotonic() + _RECORDED_S
        while client.recording_position(recording_id) < end and time.monotonic() < deadline:
            time.sleep(0.001)
        with client.replay(recording_id, 0, end, follow=False) as messages:
            return sum(each.payload == str(n).encode() for n, each in enumerate(messages))
