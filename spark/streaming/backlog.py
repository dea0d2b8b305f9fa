"""The unread part of recordings for a streaming query, and detection of data loss.

Each trigger reads the directory again. The end of a live recording is determined from its segment
files, beginning at the position up to which the query has read, so that the cost depends only on
what was recorded since the last trigger.

Data is lost to a query when it was purged or truncated before the query read it. That a recording
was truncated below the query's position and extended again shows by the message that the query read
last: it is no longer there. By the option `failOnDataLoss` the query then fails or continues.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aerotape.catalog.descriptor import segment_base_position
from aerotape.catalog.directory import find_ends, key_name, split_key
from aerotape.errors import DataLossError, UnknownRecordingError
from aerotape.frame_header import FRAME_ALIGNMENT
from aerotape.replay.offline.boundaries import LastMessage, message_checksum
from aerotape.replay.offline.choosing import matching, without_damaged
from aerotape.replay.offline.reader import RecordingRange, range_of, recording_range
from aerotape.replay.offline.selection import Selection
from aerotape.spark.streaming.offsets import Progress, StreamOffset

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import ArchiveDirectory, Recording
    from aerotape.spark.source.options import ReadOptions


@dataclass(frozen=True, slots=True)
class Backlog:
    """Unread part of one recording.

    Attributes:
        range: from where reading resumes to where the recording ends now.
        progress: how far it has been read; None for a new recording.
        begins: the range does not begin at the position of `progress`.
        stop: its stop position, when the range reaches that.
    """

    range: RecordingRange
    progress: Progress | None
    begins: bool
    stop: int | None

    @property
    def key(self) -> int:
        """Key of the recording (`StoredRecording.key`)."""
        return self.range.key

    def after(self, last: LastMessage | None, *, complete: bool) -> Progress | None:
        """Return the progress once the messages up to `last` have been read.

        Args:
            last: the last message that is read; None for no message.
            complete: the range has no whole message after it.
        """
        begin = self.range.from_position if self.begins else None
        stop = self.stop if complete else None
        if last is not None:
            return Progress(
                position=last.end_position,
                last=last.position,
                crc32c=message_checksum(self.range, last.position, last.end_position),
                begin=begin,
                stop=stop,
            )
        if self.begins and (self.progress is not None or stop is not None):
            return Progress(position=self.range.from_position, begin=begin, stop=stop)
        if self.progress is not None and stop is not None:
            return dataclasses.replace(self.progress, begin=None, stop=stop)
        return self.progress


@dataclass(frozen=True, slots=True)
class FollowedDirectory:
    """An archive directory that a streaming query reads.

    Attributes:
        options: what to read.
        fail_on_data_loss: raise DataLossError when unread data is gone, instead of a warning.
    """

    options: ReadOptions
    fail_on_data_loss: bool

    def ends(self) -> dict[int, int]:
        """Return the ends of the selected recordings, by key. Raises as `scan`."""
        directory = self.options.open_directory()
        chosen = self._choose(directory.recordings_of_scopes(self.options.scope_ids), ())
        return {each.key: each.recorded_position for each in chosen}

    def scan(self, offset: StreamOffset) -> tuple[list[Recording], dict[int, Progress]]:
        """Read the directory.

        Returns:
            The recordings to follow, and how far those of the offset have been read. A purged
            recording is dropped from the offset when its entry has left the catalog; until then it
            can be marked valid again.

        Raises:
            UnknownRecordingError: an id in the options is neither recorded nor in the offset.
            DataLossError: a recording is gone that was not read to its end.
            CatalogError: the catalog cannot be read, or a recording named in the options is
                damaged.
        """
        directory = self.options.open_directory()
        recordings = directory.recordings_of_scopes(self.options.scope_ids)
        there = {recording.key for recording in recordings}
        known = {split_key(key)[1] for key in (*there, *offset.recordings)}
        for id in set(self.options.recording_ids or ()) - known:
            self._unknown(id)
        progress = dict(offset.recordings)
        if gone := [key for key in progress if key not in there and self._is_gone(directory, key)]:
            in_catalog = {entry.recording_id for entry in directory.entries()}
            for key in gone:
                if progress[key].stop is None:
                    self._gone(key, progress[key].position)
                # An id in the options remains: without it the id would be unknown.
                if key not in in_catalog and self.options.recording_ids is None:
                    del progress[key]
        return self._choose(recordings, progress), progress

    def _choose(self, recordings: list[Recording], followed: Collection[int]) -> list[Recording]:
        selected = [each for each in recordings if self._is_selected(each.key)]
        chosen = without_damaged(matching(selected, self.options, followed), self.options)
        find_ends(chosen)
        return chosen

    def _is_selected(self, key: int) -> bool:
        ids = self.options.recording_ids
        return ids is None or split_key(key)[1] in ids

    def _is_gone(self, directory: ArchiveDirectory, key: int) -> bool:
        """Return whether the options select a recording, which is not in the directory."""
        scopes, scope_id = self.options.scope_ids, key >> 64
        if not self._is_selected(key):
            return False
        if scopes is None:
            return scope_id <= 0
        if scope_id > 0:
            return not scopes or scope_id in scopes
        return not scopes or 0 in scopes or directory.own_scope_id() in scopes

    def backlog(
        self, recording: Recording, progress: Progress | None, target: int | None = None
    ) -> Backlog | None:
        """Return the unread part of a recording, None when there is nothing.

        Args:
            recording: the recording.
            progress: how far it has been read; None when it is new.
            target: the position up to which to read; None for its end.
        """
        if progress is None:
            begin = max(recording.start_position, self.options.from_position or 0)
            if self.options.times.from_ns is not None:
                begin = max(begin, recording.time_index.position_from(self.options.times.from_ns))
            if self.options.seek is not None:
                found = recording_range(recording, self._seeking())
                if not found.length and recording.descriptor.is_active:
                    return None  # the record is not recorded yet
                begin = max(begin, found.from_position)
            return self._from(recording, begin, None, begins=True, target=target)
        position, stop = progress.position, recording.descriptor.stop_position
        is_active = recording.descriptor.is_active
        if not is_active and progress.stop == stop:
            return None
        if position < recording.start_position:
            self._purged(recording, position, recording.start_position)
            begin = recording.start_position
        elif not is_active and stop < position:
            self._truncated(recording, stop, position)
            begin = stop
        elif not _is_the_same(recording, progress):
            self._replaced(recording, position)
            begin = min(position, recording.recorded_position)
        else:
            return self._from(recording, position, progress, begins=False, target=target)
        return self._from(recording, begin, progress, begins=True, target=target)

    def _seeking(self) -> Selection:
        options = self.options
        return Selection(from_index=options.from_index, from_asqn=options.from_asqn)

    def _from(
        self,
        recording: Recording,
        begin: int,
        progress: Progress | None,
        *,
        begins: bool,
        target: int | None,
    ) -> Backlog | None:
        descriptor = recording.descriptor
        boundary = not begins and progress is not None and progress.last is not None
        if descriptor.is_active and target is None:
            end = recording.recorded_after(begin if boundary else recording.start_position)
        else:
            end = recording.recorded_position if target is None else target
            if not descriptor.is_active:
                end = min(end, descriptor.stop_position)
        if begin > end:
            return None
        return Backlog(
            range_of(recording, begin, end, end, from_boundary=boundary),
            progress,
            begins,
            descriptor.stop_position if end == descriptor.stop_position else None,
        )

    def ranges(self, start: StreamOffset, end: StreamOffset) -> Iterator[RecordingRange]:
        """Yield the ranges between two offsets: the same messages each time, or DataLossError."""
        there: dict[int, Recording] = {}
        if start.recordings != end.recordings:
            directory = self.options.open_directory()
            recordings = directory.recordings_of_scopes(self.options.scope_ids)
            there = {recording.key: recording for recording in recordings}
        for id, progress in end.recordings.items():
            before = start.recordings.get(id)
            begin = progress.begin
            if begin is None:
                begin = before.position if before is not None else 0
            if progress == before or progress.position <= begin:
                continue
            if id not in there:
                self._gone(id, begin)
                continue
            boundary = progress.begin is None and before is not None and before.last is not None
            whole = self._again(there[id], begin, progress, boundary)
            if whole.length > 0:
                yield whole

    def _again(
        self, recording: Recording, begin: int, progress: Progress, boundary: bool
    ) -> RecordingRange:
        """Return the rest of the range from `begin` to a progress."""
        recording.check()
        end, stop = progress.position, recording.descriptor.stop_position
        if begin < recording.start_position:
            self._purged(recording, begin, min(recording.start_position, end))
            begin, boundary = recording.start_position, False
        limit = end
        if not recording.descriptor.is_active and stop < end:
            self._truncated(recording, stop, end)
            limit = stop
        elif not _is_the_same(recording, progress):
            self._replaced(recording, end)
            limit, boundary = recording.recorded_position, False
        return range_of(
            recording, begin, max(begin, min(end, limit)), limit, from_boundary=boundary
        )

    def _unknown(self, id: int) -> None:
        message = f"no recording with id {id} in archive directory {self.options.archive_dir}"
        if self.fail_on_data_loss:
            raise UnknownRecordingError(message, id)
        warnings.warn(message, RuntimeWarning, stacklevel=3)

    def _gone(self, key: int, position: int) -> None:
        self._lost(
            key,
            position,
            f"recording {key_name(key)} was purged before it was read to its end: messages after "
            f"position {position} are lost",
        )

    def _purged(self, recording: Recording, begin: int, end: int) -> None:
        self._lost(
            recording.key,
            begin,
            f"recording {key_name(recording.key)}: positions {begin} to {end} were purged before "
            f"they were read; it now starts at position {recording.start_position}",
        )

    def _truncated(self, recording: Recording, stop: int, position: int) -> None:
        self._lost(
            recording.key,
            stop,
            f"recording {key_name(recording.key)} was truncated to position {stop}, and the query "
            f"has read up to position {position}",
        )

    def _replaced(self, recording: Recording, position: int) -> None:
        self._lost(
            recording.key,
            position,
            f"recording {key_name(recording.key)} no longer holds what was read before "
            f"position {position}: it was truncated and extended, or is another recording",
        )

    def _lost(self, key: int, position: int, what: str) -> None:
        if self.fail_on_data_loss:
            raise DataLossError(
                f"{what}; to continue with what is left, set the option failOnDataLoss to false",
                split_key(key)[1],
                position,
            )
        warnings.warn(what, RuntimeWarning, stacklevel=3)


def _is_the_same(recording: Recording, progress: Progress) -> bool:
    """Return whether the message that was read last is unchanged, or cannot be compared.

    Raises:
        StorageError: its bytes cannot be read, which is not a loss of data.
    """
    if (
        progress.last is None
        or progress.crc32c is None
        or progress.last < recording.start_position  # purged by now
    ):
        return True
    whole = range_of(recording, progress.last, progress.position, progress.position)
    found = message_checksum(whole, progress.last, progress.position)
    if found is None:
        base = segment_base_position(
            recording.start_position, progress.last, whole.term_length, whole.segment_length
        )
        with suppress(FileNotFoundError):
            recording.read_segment(base, progress.last - base, FRAME_ALIGNMENT)
    return found == progress.crc32c
