"""The unread part of recordings for a streaming query, and its errors when data was lost.

Each trigger reads the directory again. The end of a live recording is determined from its segment
files, beginning at the position up to which the query has read, so that the cost depends only on
what was recorded since the last trigger.

Data is lost to a query when it was purged or truncated before the query read it, or replaced
(`ReadProgress.compare`). By the option `failOnDataLoss` the query then fails or continues.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aerotape.catalog.directory import find_ends, key_name, split_key
from aerotape.errors import DataLossError, UnknownRecordingError
from aerotape.replay.offline.choosing import matching, without_damaged
from aerotape.replay.offline.read_progress import (
    Change,
    Comparison,
    LastRead,
    ReadProgress,
    identity_of,
)
from aerotape.replay.offline.reader import RecordingRange, range_of, recording_range
from aerotape.replay.offline.selection import Selection
from aerotape.spark.streaming.offsets import StreamOffset

if TYPE_CHECKING:
    from aerotape.replay.offline.boundaries import LastMessage
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
        identity: `identity_of` the recording.
    """

    range: RecordingRange
    progress: ReadProgress | None
    begins: bool
    stop: int | None
    identity: int

    @property
    def key(self) -> int:
        """Key of the recording (`StoredRecording.key`)."""
        return self.range.key

    def after(self, last: LastMessage | None, *, complete: bool) -> ReadProgress | None:
        """Return the progress once the messages up to `last` have been read.

        Args:
            last: the last message that is read; None for no message.
            complete: the range has no whole message after it.
        """
        begin = self.range.from_position if self.begins else None
        stop = self.stop if complete else None
        if last is not None:
            read = LastRead.at(self.range, last.position, last.end_position)
            return self.progress_at(last.end_position, read, begin=begin, stop=stop)
        if self.begins and (self.progress is not None or stop is not None):
            return self.progress_at(self.range.from_position, begin=begin, stop=stop)
        if self.progress is not None and stop is not None:
            return dataclasses.replace(self.progress, begin=None, stop=stop)
        return self.progress

    def progress_at(
        self,
        position: int,
        last: LastRead | None = None,
        *,
        begin: int | None = None,
        stop: int | None = None,
    ) -> ReadProgress:
        """Return the progress at a position.

        An empty recording has no identity, because a replication may replace its descriptor.
        """
        identity = self.identity if position > self.range.start_position else None
        return ReadProgress(position=position, begin=begin, last=last, identity=identity, stop=stop)


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

    def scan(self, offset: StreamOffset) -> tuple[list[Recording], dict[int, ReadProgress]]:
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
        self, recording: Recording, progress: ReadProgress | None, target: int | None = None
    ) -> Backlog | None:
        """Return the unread part of a recording, None when there is nothing.

        Args:
            recording: the recording.
            progress: how far it has been read; None when it is new.
            target: the position up to which to read; None for its end.
        """
        if progress is None:
            return self._new(recording, None, target)
        found = progress.compare(recording)
        if found.change is Change.SAME and progress.stop == found.end:
            return None
        if found.is_a_loss:
            self._changed(recording, progress, found)
        if found.is_another:
            return self._new(recording, progress, target)
        begin, end = found.resume, found.end
        return self._from(recording, begin, end, progress, begins=found.is_a_loss, target=target)

    def _new(
        self, recording: Recording, progress: ReadProgress | None, target: int | None
    ) -> Backlog | None:
        """Return what the options select of a recording of which nothing was read.

        `progress` is that of the recording which it has replaced, if any.
        """
        begin = max(recording.start_position, self.options.from_position or 0)
        if self.options.times.from_ns is not None:
            begin = max(begin, recording.time_index.position_from(self.options.times.from_ns))
        if self.options.seek is not None:
            found = recording_range(recording, self._seeking())
            if not found.length and recording.descriptor.is_active:
                return None  # the record is not recorded yet
            begin = max(begin, found.from_position)
        end = recording.recorded_after(recording.start_position) if target is None else target
        return self._from(recording, begin, end, progress, begins=True, target=target)

    def _seeking(self) -> Selection:
        options = self.options
        return Selection(from_index=options.from_index, from_asqn=options.from_asqn)

    def _from(
        self,
        recording: Recording,
        begin: int,
        end: int,
        progress: ReadProgress | None,
        *,
        begins: bool,
        target: int | None,
    ) -> Backlog | None:
        descriptor = recording.descriptor
        boundary = not begins and progress is not None and progress.last is not None
        if target is not None:
            end = target if descriptor.is_active else min(target, descriptor.stop_position)
        if begin > end:
            return None
        return Backlog(
            range_of(recording, begin, end, end, from_boundary=boundary),
            progress,
            begins,
            descriptor.stop_position if end == descriptor.stop_position else None,
            identity_of(descriptor),
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
        self, recording: Recording, begin: int, progress: ReadProgress, boundary: bool
    ) -> RecordingRange:
        """Return the rest of the range from `begin` to a progress."""
        recording.check()
        end = progress.position
        begun = ReadProgress(position=begin, identity=progress.identity).compare(recording, end)
        if begun.change is Change.PURGED:
            self._purged(recording, begin, min(begun.resume, end))
            begin, boundary = begun.resume, False
        found = progress.compare(recording, end)
        limit = end
        if found.change in (Change.TRUNCATED, Change.REPLACED):
            self._changed(recording, progress, found)
            limit = begin if found.is_another else recording.recorded_position
            boundary = False
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

    def _changed(self, recording: Recording, progress: ReadProgress, found: Comparison) -> None:
        """Report that a recording does not continue what was read of it."""
        name, position = key_name(recording.key), progress.position
        if found.change is Change.PURGED:
            self._purged(recording, position, found.resume)
        elif found.change is Change.TRUNCATED:
            self._lost(
                recording.key,
                found.end,
                f"recording {name} was truncated: it ends at position {found.end}, and the query "
                f"has read up to position {position}",
            )
        else:
            another = "is another recording"
            if not found.is_another:
                another = f"was truncated and extended, or {another}"
            self._lost(
                recording.key,
                position,
                f"recording {name} no longer holds what was read before position {position}: it "
                f"{another}",
            )

    def _purged(self, recording: Recording, begin: int, end: int) -> None:
        self._lost(
            recording.key,
            begin,
            f"recording {key_name(recording.key)}: positions {begin} to {end} were purged before "
            f"they were read; it now starts at position {recording.start_position}",
        )

    def _lost(self, key: int, position: int, what: str) -> None:
        if self.fail_on_data_loss:
            raise DataLossError(
                f"{what}; to continue with what is left, set the option failOnDataLoss to false",
                split_key(key)[1],
                position,
            )
        warnings.warn(what, RuntimeWarning, stacklevel=3)
