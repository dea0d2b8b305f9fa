"""An archive as its files show it, while it runs or after: ours or the Java archive.

The mark file, the media driver's counters file, the catalog and both error logs are read; nothing
is asked of the archive.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.file.entries import entry_damage
from aerotape.catalog.layout import CATALOG_FILE_NAME, RecordingState
from aerotape.catalog.mark.mark_file import MarkFile, MarkFileInfo
from aerotape.clock import epoch_ms
from aerotape.cnc import CncFile, CounterRecord
from aerotape.counter_keys import CounterType, key_fields, replayed_recording
from aerotape.distinct_error_log import ErrorObservation
from aerotape.errors import AerotapeError, StorageError, StorageErrors
from aerotape.protocol import NULL_VALUE
from aerotape.replay.offline.directory import ArchiveDirectory, open_directory
from aerotape.tools._web.error_text import error_text
from aerotape.tools._web.latest import Latest
from aerotape.tools._web.sessions import PUBLISHER_POSITION, STREAM, Session, SessionLog
from aerotape.tools._web.suspects import Notes, Suspects
from aerotape.tools._web.verification import Verification, read_verification

_T = TypeVar("_T")
_SYSTEM_COUNTER: Final = 0
_FRESH_S: Final = 0.5
"""For so long a snapshot is shown again, so that many readers cost what one does."""
_USABLE_S: Final = 15.0
"""For so long it is shown while reading the files takes too long."""
_WAIT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Driver:
    """The media driver of an archive.

    Attributes:
        aeron_dir: its directory.
        pid: its process id.
        start_timestamp_ms: when it started, epoch milliseconds.
        is_active: whether it gave a sign of life within 10 s.
        errors: its error log.
    """

    aeron_dir: str
    pid: int
    start_timestamp_ms: int
    is_active: bool
    errors: list[ErrorObservation]


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay in progress of an archive of ours.

    Attributes:
        recording_id: what is replayed.
        session_id: of its stream.
        stream_id: likewise.
        channel: of its publication.
        position: up to where it has been sent, bytes of the recording.
    """

    recording_id: int
    session_id: int
    stream_id: int
    channel: str
    position: int


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The content of the files of an archive at one time.

    Attributes:
        taken_ms: the time, epoch milliseconds.
        mark: the mark file, None if there is none that can be read.
        driver: the media driver, None if its counters file cannot be read.
        own_counters: the media driver's system counters, those of type 0.
        counters: this archive's counters.
        replays: those in progress; none of the Java archive, whose files do not show them.
        sessions: the control sessions, the oldest first.
        recordings: the descriptors of all valid recordings, by ascending id.
        suspect: the ids of recordings that are marked as suspect, without those of which the
            damage was accepted.
        verification: what the last one found; None without one that can be read.
        free_bytes: space of the archive directory's file system for users without privileges.
        total_bytes: its size.
        problems: why something could not be read, a sentence each.
    """

    taken_ms: int
    mark: MarkFileInfo | None
    driver: Driver | None
    own_counters: list[CounterRecord]
    counters: list[CounterRecord]
    replays: list[Replay]
    sessions: list[Session]
    recordings: list[RecordingDescriptor]
    suspect: frozenset[int]
    verification: Verification | None
    free_bytes: int
    total_bytes: int
    problems: list[str]

    @property
    def is_active(self) -> bool:
        """Whether the archive gave a sign of life within its liveness timeout, 10 s."""
        return self.mark is not None and self.mark.is_active(self.taken_ms)

    def value(self, counter_type: CounterType) -> int | None:
        """Return the value of the archive's counter of a type, None if it has none."""
        found = (each.value for each in self.counters if each.type_id == counter_type)
        return next(found, None)

    def ends(self) -> dict[int, int]:
        """Return up to where recordings are recorded, by recording id; -1 is unknown. Bytes."""
        stopped = {each.recording_id: each.stop_position for each in self.recordings}
        return stopped | self.positions()

    def positions(self) -> dict[int, int]:
        """Return the positions of recordings in progress, by recording id."""
        return {
            key_fields(each.type_id, each.key)["recording_id"]: each.value
            for each in self.counters
            if each.type_id == CounterType.RECORDING_POSITION
        }

    def error_logs(self) -> Iterator[tuple[str, list[ErrorObservation]]]:
        """Iterate over the error logs of the archive and its media driver."""
        yield "archive", self.mark.errors if self.mark else []
        yield "driver", self.driver.errors if self.driver else []


class ObservedArchive:
    """The archive of a directory. Its methods may be called from any thread.

    Attributes:
        directory: the archive directory.
    """

    def __init__(
        self, directory: Path, aeron_dir: str | None = None, verification: Path | None = None
    ) -> None:
        """Create it; nothing is read.

        Args:
            directory: the archive directory.
            aeron_dir: the media driver's directory; None: the one that the mark file names.
            verification: the output of `aerotape tool DIR verify --json`; None: there is none.
        """
        self.directory = directory
        self._aeron_dir = aeron_dir
        self._verification = verification
        self._latest = Latest(self._read, _FRESH_S, _USABLE_S, "archive-files")
        self._catalog = b""
        self._descriptors: list[RecordingDescriptor] = []
        # Notes may be left of a recording that another program has removed.
        self._known: frozenset[int] = frozenset()
        self._suspects = Suspects(directory)
        self._driver_directory = aeron_dir or ""
        self._session_log = SessionLog()

    def snapshot(self, wait_s: float | None = _WAIT_S) -> Snapshot:
        """The content of the files, at most half a second old.

        Args:
            wait_s: how long reading them may take; None: as long as it takes. If it takes longer,
                what they said within the last 15 s is returned.

        Raises:
            StorageError: it takes longer, and they were not read within the last 15 s.
        """
        try:
            return self._latest.get(wait_s)
        except TimeoutError:
            raise StorageError(
                f"reading the archive's files takes longer than {wait_s} s: the storage does not "
                "respond",
                self.directory,
            ) from None

    def error_text(self, error: BaseException) -> str:
        """Return the text of an error, in which files and directories have just their names."""
        return error_text(error, self.directory, [self._driver_directory])

    def renew(self) -> None:
        """Read the files again before the next snapshot: the caller has changed the archive."""
        self._latest.renew()

    def notes(self, recording_id: int) -> Notes:
        """Return why a recording is, or was, marked as suspect (StorageError)."""
        with StorageErrors(f"cannot read the notes on recording {recording_id}", self.directory):
            return self._suspects.notes(recording_id)

    def _read(self) -> Snapshot:
        problems: list[str] = []

        def tried(read: Callable[[], _T]) -> _T | None:
            try:
                return read()
            except AerotapeError as error:
                problems.append(self.error_text(error))
            except OSError as error:
                problems.append(f"{self.directory.name}: {error.strerror}")
            return None

        path = self._verification
        mark = tried(lambda: MarkFile.read(self.directory))
        files = tried(lambda: open_directory(self.directory))
        aeron_dir = self._aeron_dir or (mark.header.aeron_directory if mark else "")
        self._driver_directory = aeron_dir or self._driver_directory
        file = tried(lambda: CncFile(aeron_dir)) if aeron_dir else None
        counters = (tried(lambda: list(file.counters())) if file else None) or []
        archive_id = mark.header.archive_id if mark else NULL_VALUE
        recordings = tried(lambda: self._recordings(files)) if files else None
        suspect = tried(self._suspects.ids) if files else None
        status = tried(lambda: os.statvfs(self.directory))
        taken_ms = epoch_ms()
        own = [each for each in counters if _is_of(archive_id, each)]
        replays = list(_replays(archive_id, counters))
        replayed = {(each.session_id, each.stream_id): each.recording_id for each in replays}
        return Snapshot(
            taken_ms=taken_ms,
            mark=mark,
            driver=tried(lambda: _driver(aeron_dir, file)) if file else None,
            own_counters=[each for each in counters if each.type_id == _SYSTEM_COUNTER],
            counters=own,
            replays=replays,
            sessions=self._session_log.sessions(own, counters, replayed, taken_ms),
            recordings=recordings or [],
            suspect=frozenset((suspect or set()) & self._known),
            verification=tried(lambda: read_verification(path)) if path else None,
            free_bytes=status.f_bavail * status.f_frsize if status else 0,
            total_bytes=status.f_blocks * status.f_frsize if status else 0,
            problems=problems,
        )

    def _recordings(self, files: ArchiveDirectory) -> list[RecordingDescriptor]:
        """Return the descriptors; decoded only if the catalog's bytes have changed."""
        content = (self.directory / CATALOG_FILE_NAME).read_bytes()
        if content != self._catalog:
            entries = list(files.entries())
            self._descriptors = [
                entry.descriptor
                for entry in entries
                if entry.state == RecordingState.VALID and not entry_damage(entry)
            ]
            self._known = frozenset(entry.recording_id for entry in entries)
            self._catalog = content
        return self._descriptors


def lag(ends: Mapping[int, int], recording_id: int, position: int) -> int:
    """The distance of a position from the end of a recording, bytes; 0 if that is not known."""
    return max(ends.get(recording_id, 0) - position, 0)


def _driver(aeron_dir: str, file: CncFile) -> Driver:
    return Driver(aeron_dir, file.pid, file.start_timestamp_ms, file.is_active(), file.errors())


def _replays(archive_id: int, counters: list[CounterRecord]) -> Iterator[Replay]:
    for each in counters:
        if each.type_id == PUBLISHER_POSITION:
            recording_id = replayed_recording(each.label, archive_id)
            if recording_id is not None:
                session_id, stream_id = STREAM.unpack_from(each.key)
                channel = each.label.partition("aeron:")[2]
                yield Replay(recording_id, session_id, stream_id, f"aeron:{channel}", each.value)


def _is_of(archive_id: int, counter: CounterRecord) -> bool:
    """Whether a counter is the archive's; an archive before 1.47 has no id in its mark file."""
    found = key_fields(counter.type_id, counter.key).get("archive_id")
    return found is not None and archive_id in (found, NULL_VALUE)
