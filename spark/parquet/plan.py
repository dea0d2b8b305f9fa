"""Plan of the Parquet job: what to convert of each recording, by its manifest and the archive.

Of a recording in the table only positions outside its converted ranges are converted. Before that
the recording is compared with the table: one that has become shorter, or holds other bytes where
the last conversion ended, is refused, or by an option converted again. Positions that were purged
in the archive stay in the table.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.directory import find_ends
from aerotape.catalog.layout import CATALOG_FILE_NAME
from aerotape.catalog.location import absolute_location
from aerotape.errors import (
    AerotapeError,
    ConfigurationError,
    StorageError,
    UnknownRecordingError,
)
from aerotape.replay.offline.directory import Recording
from aerotape.replay.offline.reader import RecordingRange
from aerotape.spark.parquet.commit import recording_folder
from aerotape.spark.parquet.fingerprint import changed
from aerotape.spark.parquet.manifest import Fingerprint, Manifest, joined, missing
from aerotape.spark.parquet.store import OutputStore
from aerotape.spark.parquet.table_state import TableState
from aerotape.spark.parquet.writer import described
from aerotape.spark.source.options import ReadOptions
from aerotape.spark.source.planning import choose_recordings, wanted_range
from aerotape.url_path import UrlPath

# A recording's descriptor never changes these.
_IDENTITY: Final = (
    "stream_id", "initial_term_id", "term_buffer_length", "mtu_length", "segment_file_length",
    "start_timestamp_ms",
)  # fmt: skip


class Action(Enum):
    """What to do for a recording."""

    CONVERT = "convert"
    RECONVERT = "reconvert"
    NOTHING = "up to date"
    WAIT = "wait for more"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingPlan:
    """Plan for one recording.

    Attributes:
        recording: as it is now; it can be damaged where `action` is REFUSE.
        action: what to do.
        ranges: what to convert.
        manifest: what the table retains.
        reason: why it is refused or converted again.
        warnings: further remarks for the user.
    """

    recording: Recording
    action: Action
    ranges: tuple[RecordingRange, ...] = ()
    manifest: Manifest | None = None
    reason: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def recording_bytes(self) -> int:
        """Bytes of the recording to read."""
        return sum(part.length for part in self.ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """Options of a job.

    Attributes:
        read: which recordings, positions and typed columns; its columns are not used.
        overwrite: convert again what the table has already.
        reconvert_changed: convert a recording again when it differs from what was converted
            (truncated, replaced), instead of leaving it out.
        by_date: partition each recording by date.
        min_bytes: a recording that is being written waits until it has so many new bytes …
        max_delay_s: … or has had new ones for so many seconds, in a job of several rounds.
    """

    read: ReadOptions
    overwrite: bool = False
    reconvert_changed: bool = False
    by_date: bool = False
    min_bytes: int = 0
    max_delay_s: float = math.inf

    def settings(self) -> dict[str, Any]:
        """Return the settings that must be the same in all jobs on a table."""
        payloads = self.read.payloads
        return {
            "partitioned_by": ["recording_id", "date"] if self.by_date else ["recording_id"],
            "mode": self.read.mode,
            "payload_schema": None if payloads is None else described(payloads),
        }


@dataclass(frozen=True, slots=True)
class _Seen:
    """State of a recording after a round.

    Attributes:
        is_active: it had no stop position.
        to_position: end of what the table has of it; None when it has nothing.
        is_done: the table has all that the options select.
    """

    is_active: bool
    to_position: int | None
    is_done: bool


class Planner:
    """Plans rounds of a job; caches what it has read of the table, which no other job changes."""

    def __init__(self, options: JobOptions, store: OutputStore) -> None:
        """Create a planner; nothing is read yet."""
        # Workers may run in another working directory.
        place = absolute_location(options.read.archive_dir)
        read = dataclasses.replace(options.read, archive_dir=place)
        self._options = dataclasses.replace(options, read=read)
        self._store = store
        self._table = TableState(store)
        self._overwritten: set[int] = set()
        self._waiting_since: dict[int, float] = {}
        self._known_same: dict[int, RecordingDescriptor] = {}
        self._compared: dict[int, set[Fingerprint]] = {}
        self._seen: dict[int, _Seen] = {}
        self._gone: set[int] = set()
        self._followed: set[int] = set()

    def recordings(self) -> list[Recording]:
        """Return the recordings that the options select now.

        One that was selected in an earlier round remains so when its channel has changed.

        Raises:
            CatalogError: the archive directory cannot be read.
            UnknownRecordingError: a recording in the options does not exist, nor did in an earlier
                round.
            ConfigurationError: the table would be in an archive directory.
        """
        read = self._options.read
        directory = read.open_directory()
        if not self._seen and (
            _is_within(self._store, read.archive_dir) or self._store.exists(CATALOG_FILE_NAME)
        ):
            raise ConfigurationError(
                f"{self._store.name} is, or lies in, an archive directory: name another folder for "
                "the table",
                "OUT",
            )
        try:
            recordings = choose_recordings(directory, read, self._followed)
        except UnknownRecordingError:
            there = {recording.recording_id for recording in directory.recordings()}
            ids = [id for id in read.recording_ids or () if id in there or id not in self._seen]
            read = dataclasses.replace(read, recording_ids=tuple(ids))
            recordings = choose_recordings(directory, read, self._followed)
        self._followed.update(each.recording_id for each in recordings if not each.damage)
        find_ends(recordings)
        return recordings

    def plan(self) -> list[RecordingPlan]:
        """Return the plan for each recording. Raises what `recordings` does."""
        recordings = self.recordings()
        self._table.read(recording.recording_id for recording in recordings)
        plans = [self._plan(recording) for recording in recordings]
        for plan in plans:
            known = plan.manifest.to_position if plan.manifest is not None else None
            active = not plan.recording.damage and plan.recording.descriptor.is_active
            done = plan.action is Action.NOTHING and not active
            self._seen[plan.recording.recording_id] = _Seen(active, known, done)
        return plans

    def gone(self, plans: Iterable[RecordingPlan]) -> list[tuple[int, int | None, bool]]:
        """Return recordings of earlier rounds that are no longer there, each once.

        Args:
            plans: the plans of this round.

        Returns:
            For each its id, the end of what the table has of it (None when it has nothing), and
            whether that is known to be all that the options select.
        """
        there = {plan.recording.recording_id for plan in plans}
        known = {id for id in self._seen.keys() - self._gone - there if id >= 0}
        if known:
            # A recording that was damaged may now turn out not to be selected: it is not gone.
            directory = self._options.read.open_directory()
            known -= {recording.recording_id for recording in directory.recordings()}
        ids = sorted(known)
        self._gone.update(ids)
        return [(id, self._seen[id].to_position, self._seen[id].is_done) for id in ids]

    def committed(self, recording_id: int, manifest: Manifest) -> None:
        """Update the state after a commit."""
        self._table.committed(recording_id, manifest)
        self._overwritten.add(recording_id)
        self._waiting_since.pop(recording_id, None)
        active = self._seen[recording_id].is_active
        self._seen[recording_id] = _Seen(active, manifest.to_position, not active)

    def files(self, recording_id: int) -> list[str]:
        """Return the Parquet files of a recording in the table, in a manifest or not."""
        return self._table.files(recording_id)

    def _plan(self, recording: Recording) -> RecordingPlan:
        id = recording.recording_id
        # A job of several rounds overwrites in the first one only.
        overwrite = self._options.overwrite and id not in self._overwritten
        manifest = None
        try:
            # Overwriting also repairs a table whose manifest does not match.
            read = self._table.readable_manifest if overwrite else self._table.manifest
            manifest = read(id)
            exists = self._table.has(id)
            return self._unless_little(
                self._decide(recording, manifest, exists=exists, overwrite=overwrite)
            )
        except ConfigurationError:  # concerns all recordings
            raise
        except AerotapeError as error:
            return RecordingPlan(
                recording=recording,
                action=Action.REFUSE,
                manifest=manifest,
                reason=f"recording {id}: {error}",
            )

    def _decide(
        self,
        recording: Recording,
        manifest: Manifest | None,
        *,
        exists: bool,
        overwrite: bool,
    ) -> RecordingPlan:
        options = self._options
        whole = wanted_range(recording, options.read)
        everything = (whole,) if whole.length else ()
        gone = "" if manifest is None else _gone(manifest, whole)
        if overwrite and exists:
            if gone:
                folder = recording_folder(recording.recording_id)
                raise StorageError(
                    f"the table has positions {gone}, which would not be converted again (purged "
                    f"in the archive, or outside the range): widen the range, or delete {folder} "
                    f"in {self._store.name} to discard them",
                    self._store.name,
                )
            return RecordingPlan(
                recording=recording,
                action=Action.RECONVERT,
                ranges=everything,
                reason="everything is converted again",
            )
        if manifest is None:
            return RecordingPlan(recording=recording, action=Action.CONVERT, ranges=everything)
        settings = options.settings()
        if manifest.settings != settings:
            raise StorageError(
                f"the table has it with {_difference(manifest, settings)}: use the same options, "
                "another folder, or convert it again with --overwrite",
                self._store.name,
            )
        change, warnings = "", _lost(recording, manifest, options.read)
        # During a job a stopped recording does not change without a change of its descriptor.
        if self._known_same.get(recording.recording_id) != recording.descriptor:
            change = _change(recording, manifest, whole.limit_position)
            if not change:
                change, unseen = self._compare(recording, manifest)
                warnings += unseen
        if not change and not recording.descriptor.is_active:
            self._known_same[recording.recording_id] = recording.descriptor
        if change and options.reconvert_changed:
            return RecordingPlan(
                recording=recording,
                action=Action.RECONVERT,
                ranges=everything,
                reason=change,
                warnings=(f"rows of positions {gone} were deleted and are not converted again",)
                if gone
                else (),
            )
        if change:
            raise StorageError(
                f"{change}: leave the table's rows as they are, or convert the recording again "
                "with --if-changed reconvert",
                self._store.name,
            )
        pieces = missing(whole.positions, manifest.ranges)
        if manifest.unfinished_at == whole.limit_position:
            # That range holds only the beginning of a message that has not ended.
            pieces = [piece for piece in pieces if piece[0] != manifest.unfinished_from]
        return RecordingPlan(
            recording=recording,
            action=Action.CONVERT if pieces else Action.NOTHING,
            ranges=tuple(whole.part(begin, end) for begin, end in pieces),
            manifest=manifest,
            warnings=warnings,
        )

    def _compare(self, recording: Recording, manifest: Manifest) -> tuple[str, tuple[str, ...]]:
        """Compare a recording's bytes with what was converted (StorageError).

        Returns:
            How it differs, "" when it does not; and warnings.
        """
        before = self._compared.setdefault(recording.recording_id, set())
        # For what an earlier round has compared, the last fingerprint suffices.
        taken = [each for each in manifest.fingerprints if each not in before]
        taken = taken or list(manifest.fingerprints[-1:])
        first, gone = changed(recording, taken)
        if first is not None:
            return (
                f"its bytes before position {first.to_position} differ from those that were "
                "converted"
            ), ()
        before.update(each for each in taken if each not in gone)
        if gone:
            return "", (
                f"segment files from position {gone[0].from_position} on are missing but not "
                "purged: cannot compare them with what was converted",
            )
        return "", ()

    def _unless_little(self, plan: RecordingPlan) -> RecordingPlan:
        """Let a recording that is being written wait, to avoid tiny files."""
        is_little = 0 < plan.recording_bytes < self._options.min_bytes
        if plan.action is not Action.CONVERT or not is_little:
            return plan
        now = time.monotonic()
        since = self._waiting_since.setdefault(plan.recording.recording_id, now)
        if now - since >= self._options.max_delay_s or not _may_grow(plan.recording):
            return plan
        return dataclasses.replace(plan, action=Action.WAIT)


def _is_within(store: OutputStore, archive_dir: str) -> bool:
    if store.is_local:
        return store.local_path().is_relative_to(Path(archive_dir).resolve())
    return f"{store.name}/".startswith(f"{archive_dir}/")


def _may_grow(recording: Recording) -> bool:
    if isinstance(recording.archive_dir, UrlPath):
        # Whether an archive still writes the original of this copy is unknown.
        return recording.descriptor.is_active
    return recording.is_being_written


def _change(recording: Recording, manifest: Manifest, recorded_position: int) -> str:
    """Return how a recording's descriptor differs from the table's; "" when it does not."""
    end = manifest.to_position
    if end is None:
        return ""
    descriptor = recording.descriptor
    for name in _IDENTITY:
        now, then = getattr(descriptor, name), manifest.recording.get(name)
        if now != then:
            return f"it is another recording than the table's ({name} {now}, in the table {then})"
    if recorded_position < end:
        return f"it ends at {recorded_position}, and the table has it up to {end}"
    return ""


def _gone(manifest: Manifest, whole: RecordingRange) -> str:
    """Return the positions that a table would lose if it had only a range; "" for none."""
    retained = [whole.positions] if whole.length > 0 else []
    pieces = joined(
        piece
        for begin, end in manifest.ranges
        for piece in missing((begin, min(end, whole.limit_position)), retained)
    )
    return ", ".join(f"{begin} to {end}" for begin, end in pieces)


def _lost(recording: Recording, manifest: Manifest, options: ReadOptions) -> tuple[str, ...]:
    """Return a warning if positions were purged before they were converted."""
    end, start = manifest.to_position, recording.start_position
    if end is None or end >= start or (options.from_position or 0) > start:
        return ()
    return (f"positions {end} to {start} were purged before they were converted",)


def _difference(manifest: Manifest, settings: dict[str, Any]) -> str:
    names = sorted(
        name
        for name in {*manifest.settings, *settings}
        if manifest.settings.get(name) != settings.get(name)
    )
    return ", ".join(f"{name} {_shown(manifest.settings.get(name))}" for name in names)


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) < 60 else f"{text[:57]}..."
