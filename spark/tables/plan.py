"""The plans of a table job, one for each recording, from the table and the current recordings.

Only positions that the table does not have are converted. Before that the recording is compared
with what the table has: one that became shorter, or has other bytes where the last conversion
ended, is refused, or replaced if the options say so. Positions that were purged in the archive stay
in the table.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.catalog.directory import find_ends, split_key
from aerotape.catalog.layout import CATALOG_FILE_NAME
from aerotape.catalog.location import absolute_location
from aerotape.errors import (
    AerotapeError,
    ConfigurationError,
    StorageError,
    UnknownRecordingError,
)
from aerotape.replay.offline.choosing import choose_recordings
from aerotape.replay.offline.columns.added import schema_with
from aerotape.replay.offline.columns.names import SCOPE_NAMES, added_names
from aerotape.replay.offline.directory import Recording
from aerotape.replay.offline.read_progress import (
    Change,
    Comparison,
    ReadProgress,
    joined,
    missing,
)
from aerotape.replay.offline.reader import RecordingRange, recording_range
from aerotape.replay.offline.table import table_schema
from aerotape.spark.source.options import ReadOptions
from aerotape.spark.tables.table import Table
from aerotape.url_path import UrlPath, is_url, map_at_once

if TYPE_CHECKING:
    import pyarrow


class Action(Enum):
    """The action for a recording."""

    CONVERT = "convert"
    REPLACE = "replace"
    NOTHING = "up to date"
    WAIT = "wait for more"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingPlan:
    """The plan for one recording.

    Attributes:
        recording: as it is now; it can be damaged if `action` is REFUSE.
        action: what to do.
        ranges: what is to be converted.
        converted: what the table has and retains.
        replace_from: from which position on the table's rows are removed; None if they stay.
        reason: why it is refused or replaced.
        warnings: other remarks about it.
    """

    recording: Recording
    action: Action
    ranges: tuple[RecordingRange, ...] = ()
    converted: ReadProgress | None = None
    replace_from: int | None = None
    reason: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def key(self) -> int:
        """Key of the recording (`StoredRecording.key`)."""
        return self.recording.key

    @property
    def recording_bytes(self) -> int:
        """Bytes of the recording that are to be read."""
        return sum(part.length for part in self.ranges)


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The options of a table job.

    Attributes:
        read: which recordings, positions and typed columns; its columns are not used.
        overwrite: replace what the table has already.
        replace_changed: replace a recording that is not what the table has (truncated, replaced),
            instead of refusing it.
        by_date: partition the table by date.
        min_bytes: leave a recording that is being written until it has so many new bytes …
        max_delay_s: … or has had new ones for so long, in a job of several rounds.
    """

    read: ReadOptions
    overwrite: bool = False
    replace_changed: bool = False
    by_date: bool = False
    min_bytes: int = 0
    max_delay_s: float = math.inf

    def __post_init__(self) -> None:
        """Refuse what a table of several scopes cannot do (ConfigurationError)."""
        if self.read.scope_ids is not None and self.replaces:
            raise ConfigurationError(
                "--scope-ids: a table of recordings by scope cannot replace rows: omit --overwrite "
                "and --if-changed",
                "--scope-ids",
            )

    @property
    def replaces(self) -> bool:
        """Whether rows of the table may have to be replaced."""
        return self.overwrite or self.replace_changed

    def schema(self) -> pyarrow.Schema:
        """Return the Arrow schema of a new table, without the date."""
        names = added_names(self.read.payloads)
        if self.read.scope_ids is None:
            names = tuple(name for name in names if name not in SCOPE_NAMES)
        return schema_with(table_schema(self.read.mode, self.read.payloads), names)

    def schema_of(self, table: Table) -> pyarrow.Schema:
        """Return the schema of files for a table.

        Raises:
            ConfigurationError: the table has other columns than these options give.
        """
        schema = self.schema()
        present = table.columns()
        if present is None:
            return schema
        wanted = {field.name: str(field.type) for field in schema}
        if present != wanted:
            differing = sorted(
                name for name in {*present, *wanted} if present.get(name) != wanted.get(name)
            )
            raise ConfigurationError(
                f"{table.store.name} has other columns than these options give "
                f"({', '.join(differing)}): use the same mode, schema and --types, which is wire "
                "for tables of versions that had no decimals and timestamps; or another table",
                "OUT",
            )
        return schema


@dataclass(frozen=True, slots=True)
class _Seen:
    """A recording after a round.

    Attributes:
        is_active: it had no stop position.
        to_position: up to where the table has it; None if it has nothing.
        is_complete: the table has all that was asked for.
    """

    is_active: bool
    to_position: int | None
    is_complete: bool


class Planner:
    """Plans the rounds of a job."""

    def __init__(self, options: JobOptions, table: Table) -> None:
        """Read nothing yet."""
        # Workers may run in another folder.
        place = absolute_location(options.read.archive_dir)
        read = dataclasses.replace(options.read, archive_dir=place)
        self._options = dataclasses.replace(options, read=read)
        self._table = table
        self._overwritten: set[int] = set()
        self._waiting_since: dict[int, float] = {}
        self._seen: dict[int, _Seen] = {}
        self._reported_gone: set[int] = set()
        self._followed: set[int] = set()

    def recordings(self) -> list[Recording]:
        """Return the selected recordings as they are now.

        Raises:
            CatalogError: the archive directory cannot be read.
            UnknownRecordingError: a recording that was asked for does not exist, and did not in an
                earlier round.
            ConfigurationError: the table would be in an archive directory.
        """
        read = self._options.read
        directory = read.open_directory()
        store = self._table.store
        if not self._seen and (
            _is_within(self._table, read.archive_dir) or store.exists(CATALOG_FILE_NAME)
        ):
            raise ConfigurationError(
                f"{store.name} is, or is in, an archive directory: name another folder for the "
                "table",
                "OUT",
            )
        try:
            recordings = choose_recordings(directory, read, self._followed)
        except UnknownRecordingError:
            existing = {
                each.recording_id for each in directory.recordings_of_scopes(read.scope_ids)
            }
            seen = {split_key(key)[1] for key in self._seen}
            ids = [id for id in read.recording_ids or () if id in existing or id not in seen]
            read = dataclasses.replace(read, recording_ids=tuple(ids))
            recordings = choose_recordings(directory, read, self._followed)
        self._followed.update(each.key for each in recordings if not each.damage)
        find_ends(recordings)
        return recordings

    def plan(self) -> list[RecordingPlan]:
        """Decide what is to be done for each recording.

        Raises what `recordings` does, and ConfigurationError if the table has other columns.
        """
        recordings = self.recordings()
        converted = self._table.converted(recording.key for recording in recordings)
        pairs = [(each, converted.get(each.key)) for each in recordings]
        if len(recordings) > 1 and is_url(self._options.read.archive_dir):
            plans = map_at_once(lambda each: self._plan(*each), pairs)
        else:
            plans = [self._plan(*each) for each in pairs]
        for plan in plans:
            position = plan.converted.position if plan.converted is not None else None
            active = not plan.recording.damage and plan.recording.descriptor.is_active
            complete = plan.action is Action.NOTHING and not active
            self._seen[plan.key] = _Seen(active, position, complete)
        return plans

    def gone(self, plans: Iterable[RecordingPlan]) -> list[tuple[int, int | None, bool]]:
        """Return recordings of earlier rounds that are not in this one and gone, each once.

        Returns:
            For each its key, up to where the table has it (None if it has nothing), and whether
            that is known to be all that was asked for.
        """
        present = {plan.key for plan in plans}
        missing_ids = {id for id in self._seen.keys() - self._reported_gone - present if id >= 0}
        if missing_ids:
            # A damaged one may turn out not to match the options, which is not gone.
            directory = self._options.read.open_directory()
            missing_ids -= {
                each.key for each in directory.recordings_of_scopes(self._options.read.scope_ids)
            }
        self._reported_gone.update(missing_ids)
        return [
            (id, self._seen[id].to_position, self._seen[id].is_complete)
            for id in sorted(missing_ids)
        ]

    def committed(self, key: int, to_position: int | None) -> None:
        """Note what the table has now of a recording."""
        self._overwritten.add(key)
        self._waiting_since.pop(key, None)
        active = self._seen[key].is_active
        self._seen[key] = _Seen(active, to_position, not active)

    def _plan(self, recording: Recording, converted: ReadProgress | None) -> RecordingPlan:
        id = recording.recording_id
        try:
            return self._unless_little(self._decide(recording, converted))
        except ConfigurationError:  # an error of the user's, about all recordings
            raise
        except AerotapeError as error:
            return RecordingPlan(
                recording=recording,
                action=Action.REFUSE,
                converted=converted,
                reason=f"recording {id}: {error}",
            )

    def _decide(self, recording: Recording, converted: ReadProgress | None) -> RecordingPlan:
        options = self._options
        whole = recording_range(recording, options.read)
        everything = (whole,) if whole.length else ()
        if converted is None:
            action = Action.CONVERT if everything else Action.NOTHING
            return RecordingPlan(recording=recording, action=action, ranges=everything)
        # In a job of several rounds this concerns the first one.
        if options.overwrite and recording.key not in self._overwritten:
            return RecordingPlan(
                recording=recording,
                action=Action.REPLACE,
                ranges=everything,
                converted=converted,
                replace_from=whole.from_position,
                reason="everything is converted again",
            )
        comparison = converted.compare(recording, whole.limit_position)
        change = _difference(converted, comparison)
        if change and not options.replace_changed:
            raise StorageError(
                f"{change}; keep the rows that the table has, or replace those of a Delta table "
                "with --if-changed replace",
                self._table.store.name,
            )
        if change:
            return RecordingPlan(
                recording=recording,
                action=Action.REPLACE,
                ranges=everything,
                converted=converted,
                replace_from=0 if comparison.is_another else whole.from_position,
                reason=change,
            )
        pieces = missing(whole.positions, converted.ranges)
        after = joined([*converted.ranges, *pieces])
        # Positions that are purged will never be converted.
        if not self._table.has_gaps and after[1:] and after[1][0] > recording.start_position:
            raise StorageError(
                f"positions {after[0][1]} to {after[1][0]} would be missing between others: a "
                "Delta table has one range of positions for each recording; widen the range",
                self._table.store.name,
            )
        return RecordingPlan(
            recording=recording,
            action=Action.CONVERT if pieces else Action.NOTHING,
            ranges=tuple(whole.part(begin, end) for begin, end in pieces),
            converted=converted,
            warnings=_purged(converted, comparison, options.read),
        )

    def _unless_little(self, plan: RecordingPlan) -> RecordingPlan:
        """Let a recording that is being written wait, so that no tiny files are created."""
        is_little = 0 < plan.recording_bytes < self._options.min_bytes
        if plan.action is not Action.CONVERT or not is_little:
            return plan
        now = time.monotonic()
        since = self._waiting_since.setdefault(plan.key, now)
        if now - since >= self._options.max_delay_s or not _may_grow(plan.recording):
            return plan
        return dataclasses.replace(plan, action=Action.WAIT)


def longest_term(plans: Iterable[RecordingPlan]) -> int:
    """Return the longest term length of recordings that are to be converted; 0 if there is none."""
    return max((part.term_length for plan in plans for part in plan.ranges), default=0)


def _is_within(table: Table, archive_dir: str) -> bool:
    store = table.store
    if store.is_local:
        return store.local_path().is_relative_to(Path(archive_dir).resolve())
    return f"{store.name}/".startswith(f"{archive_dir}/")


def _may_grow(recording: Recording) -> bool:
    if isinstance(recording.archive_dir, UrlPath):
        # A copy does not say whether its archive still writes.
        return recording.descriptor.is_active
    return recording.is_being_written


def _difference(converted: ReadProgress, comparison: Comparison) -> str:
    """Describe how a recording differs from what was converted; "" if it does not."""
    if comparison.is_another:
        return "it is not the recording that the table has"
    if comparison.change is Change.TRUNCATED:
        return f"it ends at {comparison.end}, and the table has it up to {converted.position}"
    if comparison.change is Change.REPLACED and converted.last is not None:
        position = converted.last.position
        return f"its message at position {position} differs from the converted one"
    return ""


def _purged(
    converted: ReadProgress, comparison: Comparison, options: ReadOptions
) -> tuple[str, ...]:
    """Warn of positions that were purged before they were converted."""
    end, start = converted.position, comparison.resume
    if comparison.change is not Change.PURGED or (options.from_position or 0) > start:
        return ()
    return (f"positions {end} to {start} were purged before they were converted",)
