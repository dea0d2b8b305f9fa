"""Random histories of a Delta table to which others than our jobs write, with a model of it.

Each step is one of our jobs, a change of the archive, or a change by another program, a `Hand`.
After each change the table is compared with the model: it has each row as often as the model, and
each file that its log names.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from aerotape.catalog.file.catalog import Catalog
from aerotape.errors import ConfigurationError
from aerotape.replay.offline.directory import open_directory
from aerotape.spark.tables.delta import DeltaRecordingTable
from aerotape.spark.tables.job import TableJob
from support.builders.built_archive import add_recording, fill
from support.builders.changed_directory import extend, stop
from support.builders.segment_builder import SegmentBuilder
from support.spark.table_rig import TasksHere, options, table_of

Key = tuple[int, int]
"""Recording id and position."""
Rows = dict[Key, bytes]
Last = tuple[int, int, bytes]
"""End, reserved value and payload of a message."""


class Hand(Protocol):
    """Another program that changes a table."""

    def delete(self, predicate: str) -> None:
        """Delete rows."""

    def restore(self, version: int) -> None:
        """Restore an earlier version."""

    def optimize(self) -> None:
        """Merge files."""

    def vacuum(self) -> None:
        """Delete all files that the latest version does not have."""

    def add_constraint(self) -> None:
        """Add a constraint that all rows satisfy."""

    def drop_constraint(self) -> None:
        """Drop it."""


class DeltaRs:
    """delta-rs."""

    def __init__(self, out: Path) -> None:
        self._out = out

    def _table(self) -> DeltaTable:
        return DeltaTable(self._out)

    def delete(self, predicate: str) -> None:
        self._table().delete(predicate)

    def restore(self, version: int) -> None:
        self._table().restore(version)

    def optimize(self) -> None:
        self._table().optimize.compact()

    def vacuum(self) -> None:
        self._table().vacuum(0, dry_run=False, enforce_retention_duration=False)

    def add_constraint(self) -> None:
        self._table().alter.add_constraint({"from_zero": "position >= 0"})

    def drop_constraint(self) -> None:
        self._table().alter.drop_constraint("from_zero")


@dataclass
class Snapshot:
    """What a version of the table has.

    Attributes:
        rows: payloads.
        seen: of each recording up to where it was converted, the key of its last message, and the
            number of the archive that has recorded it.
        last: what these last messages are.
    """

    rows: Rows = field(default_factory=dict)
    seen: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    last: dict[int, Last] = field(default_factory=dict)


def recorded(archive_dir: Path) -> dict[int, dict[int, Last]]:
    """Return each message, by recording and position."""
    return {
        recording.recording_id: {
            message.position: (message.end_position, message.reserved_value, message.payload)
            for message in recording.messages()
        }
        for recording in open_directory(archive_dir).recordings()
    }


class _Between(TasksHere):
    """Tasks after which something else happens, once, before their files are committed."""

    def __init__(self, action: Callable[[], None] | None) -> None:
        self._action = action

    def run(self, *arguments: Any) -> Any:
        outcomes = super().run(*arguments)
        action, self._action = self._action, None
        if action is not None:
            action()
        return outcomes


class History:
    """A table, an archive directory and a model of both."""

    def __init__(self, archive_dir: Path, out: Path, seed: int, hand: Hand) -> None:
        self.archive_dir, self.out, self.hand = archive_dir, out, hand
        self.rng = random.Random(seed)
        self.builders: list[SegmentBuilder] = []
        self.stopped: set[int] = set()
        self.archives = 0
        self.now = Snapshot()
        self.versions: dict[int, Snapshot] = {}
        self.done: list[str] = []

    def step(self) -> None:
        """Do one step."""
        actions: list[tuple[int, Callable[[], None]]] = [
            (5, self.convert), (3, self.race), (1, self.die), (2, self.add), (4, self.grow),
            (1, self.stop), (2, self.truncate), (1, self.record_anew), (3, self.delete),
            (4, self.restore), (2, self.optimize), (1, self.vacuum), (1, self.checkpoint),
            (1, self.expire), (1, self.clean_log), (1, self.constrain), (1, self.change_schema),
        ]  # fmt: skip
        weights = [weight for weight, _ in actions]
        [(_, action)] = self.rng.choices(actions, weights)
        self.done.append(action.__name__)
        action()

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.out)

    def committed(self) -> None:
        """Note the state of the model as that of the table's version, and compare them."""
        table = self.table
        self.versions[table.version()] = copy.deepcopy(self.now)
        lost = [uri for uri in table.file_uris() if not Path(uri).exists()]
        assert not lost, self.done
        read = table.to_pyarrow_table(columns=["recording_id", "position", "payload"]).to_pydict()
        keys = list(zip(read["recording_id"], read["position"], strict=True))
        assert len(set(keys)) == len(keys), self.done
        assert dict(zip(keys, read["payload"], strict=True)) == self.now.rows, self.done

    # -- our jobs ----------------------------------------------------------------------------

    def run_job(self, between: Callable[[], None] | None = None) -> None:
        job_options = options(self.archive_dir, replace_changed=True)
        with TableJob(job_options, table_of("delta", self.out), _Between(between)) as job:
            reports = job.run().recordings
        assert not [each.error for each in reports if each.error], self.done

    def convert(self, between: Callable[[], None] | None = None) -> None:
        """Run a job; perhaps something else happens before it commits."""
        self.run_job(between)
        if between is not None:
            self.run_job()  # recordings that were up to date when the job began may no longer be
        now = self.now
        for id, messages in recorded(self.archive_dir).items():
            end = max((end for end, *_ in messages.values()), default=0)
            begin = 0
            if id in now.seen:
                begin, last, archive = now.seen[id]
                if archive != self.archives or messages.get(last) != now.last[id]:
                    begin = 0
                    now.rows = {key: row for key, row in now.rows.items() if key[0] != id}
                    del now.seen[id]
            added = {at: each for at, each in messages.items() if at >= begin}
            now.rows.update({(id, at): each[-1] for at, each in added.items()})
            if added:
                last = max(added)
                now.seen[id], now.last[id] = (end, last, self.archives), added[last]
        self.committed()

    def race(self) -> None:
        """Another job, or another program, changes the table while a job runs."""
        between = self.rng.choice([self.convert, self.delete, self.restore, self.optimize])
        self.done.append(between.__name__)
        self.grow()
        self.convert(between)

    def die(self) -> None:
        """Let a job end before it commits."""

        def die() -> None:
            raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            self.run_job(die)
        if self.versions:
            self.committed()

    def vacuum(self) -> None:
        if not self.versions:
            return
        if self.rng.random() < 0.5:
            DeltaRecordingTable(self.out).vacuum(0)
        else:
            self.hand.vacuum()
        self.versions = {}
        self.committed()

    # -- the archive -------------------------------------------------------------------------

    def add(self) -> None:
        builder = fill(SegmentBuilder(), self.rng.randrange(1, 40), self.rng.randrange(999))
        add_recording(self.archive_dir, builder, live=True, start_timestamp_ms=self.archives)
        self.builders.append(builder)

    def grow(self) -> None:
        """Record more, which extends a recording that was stopped."""
        if self.builders:
            builder = self.rng.choice(self.builders)
            if builder.recording_id in self.stopped:
                extend(self.archive_dir, builder)
                self.stopped.remove(builder.recording_id)
            fill(builder, self.rng.randrange(1, 30), self.rng.randrange(999)).write(
                self.archive_dir
            )

    def stop(self) -> None:
        live = [each for each in self.builders if each.recording_id not in self.stopped]
        if live:
            builder = self.rng.choice(live)
            stop(self.archive_dir, builder)
            self.stopped.add(builder.recording_id)

    def truncate(self) -> None:
        """Cut a recording, and extend it or not."""
        if not self.builders:
            return
        builder = self.rng.choice(self.builders)
        cut = self.rng.choice(builder.messages).position
        if not cut:
            return
        builder.position = cut
        builder.frames = {at: frame for at, frame in builder.frames.items() if at < cut}
        builder.messages = [each for each in builder.messages if each.position < cut]
        fill(builder, self.rng.randrange(50), self.rng.randrange(1000, 9999))
        for path in self.archive_dir.glob(f"{builder.recording_id}-*.rec"):
            path.unlink()
        builder.write(self.archive_dir)
        if builder.recording_id in self.stopped:
            with Catalog.open(self.archive_dir) as catalog:
                catalog.set_stop_position(builder.recording_id, builder.position)

    def record_anew(self) -> None:
        """Delete the archive directory; a new archive gives the same ids to other recordings."""
        for path in self.archive_dir.iterdir():
            path.unlink()
        self.archives += 1
        self.builders, self.stopped = [], set()
        self.add()

    # -- another program ---------------------------------------------------------------------

    def delete(self) -> None:
        if not self.now.rows:
            return
        id, at = self.rng.choice(sorted(self.now.rows))
        sign = self.rng.choice(["<=", ">=", "="])
        self.hand.delete(f"recording_id = {id} AND position {sign} {at}")
        matches = {"<=": int.__le__, ">=": int.__ge__, "=": int.__eq__}[sign]
        self.now.rows = {
            key: row
            for key, row in self.now.rows.items()
            if key[0] != id or not matches(key[1], at)
        }
        self.committed()

    def restore(self) -> None:
        earlier = sorted(self.versions)[:-1]
        if not earlier:
            return
        version = self.rng.choice(earlier)
        self.hand.restore(version)
        self.now = copy.deepcopy(self.versions[version])
        self.committed()

    def optimize(self) -> None:
        if self.versions:
            self.hand.optimize()
            self.committed()

    def constrain(self) -> None:
        """A job refuses the table while it has a constraint."""
        if not self.versions:
            return
        self.hand.add_constraint()
        version = self.table.version()
        with pytest.raises(ConfigurationError, match="the CHECK constraint from_zero"):
            self.run_job()
        assert self.table.version() == version
        self.hand.drop_constraint()
        self.committed()

    def change_schema(self) -> None:
        """A job refuses the table while it has another column; the schema is then restored."""
        if not self.versions:
            return
        before = self.table.version()
        self.table.alter.add_columns([Field("note", PrimitiveType("string"))])
        version = self.table.version()
        with pytest.raises(ConfigurationError, match=r"other columns .*\(note\)"):
            self.run_job()
        assert self.table.version() == version
        self.hand.restore(before)
        self.committed()

    def checkpoint(self) -> None:
        if self.versions:
            self.table.create_checkpoint()

    def expire(self) -> None:
        """Let application transactions expire at once from now on."""
        if self.versions:
            self.table.alter.set_table_properties(
                {"delta.setTransactionRetentionDuration": "interval 0 seconds"}
            )
            self.committed()

    def clean_log(self) -> None:
        """Delete the commits before a job's."""
        if not self.versions:
            return
        self.grow()
        self.convert()
        table = self.table
        table.create_checkpoint()
        for path in (self.out / "_delta_log").glob("*.json"):
            if int(path.stem) < table.version():
                path.unlink()
        self.versions = {}
        self.committed()
