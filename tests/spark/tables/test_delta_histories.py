"""Histories of Delta tables to which others than our jobs write, compared with a model."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

pytest.importorskip("deltalake")

from deltalake import DeltaTable
from support.spark.table_rig import run_here

from aerotape.replay.offline.directory import open_directory
from aerotape.spark.tables.delta import DeltaRecordingTable

Key = tuple[int, int]
"""Recording id and position."""
Rows = dict[Key, bytes]
Last = tuple[int, int, bytes]
"""End, reserved value and payload of a message."""


@dataclass
class Snapshot:
    """What a version of the table has.

    Attributes:
        rows: payloads.
        seen: of each recording up to where it was converted, and the key of its last message.
        last: what these last messages are.
    """

    rows: Rows = field(default_factory=dict)
    seen: dict[int, tuple[int, int]] = field(default_factory=dict)
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


class History:
    """A table, an archive directory and a model of both."""

    def __init__(self, archive_dir: Path, out: Path, seed: int) -> None:
        self.archive_dir, self.out = archive_dir, out
        self.rng = random.Random(seed)
        self.builders: list[SegmentBuilder] = []
        self.now = Snapshot()
        self.versions: dict[int, Snapshot] = {}
        self.done: list[str] = []

    def step(self) -> None:
        actions: list[tuple[int, Callable[[], None]]] = [
            (5, self.convert), (2, self.add), (4, self.grow), (2, self.truncate), (3, self.delete),
            (4, self.restore), (2, self.optimize), (1, self.vacuum), (1, self.checkpoint),
            (1, self.expire), (1, self.clean_log),
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
        read = table.to_pyarrow_table(columns=["recording_id", "position", "payload"]).to_pydict()
        keys = list(zip(read["recording_id"], read["position"], strict=True))
        assert len(set(keys)) == len(keys), self.done
        assert dict(zip(keys, read["payload"], strict=True)) == self.now.rows, self.done

    # -- our jobs ----------------------------------------------------------------------------

    def convert(self) -> None:
        reports = run_here("delta", self.archive_dir, self.out, replace_changed=True).recordings
        assert not [each.error for each in reports if each.error]
        now = self.now
        for id, messages in recorded(self.archive_dir).items():
            end = max((end for end, *_ in messages.values()), default=0)
            begin = 0
            if id in now.seen:
                begin, last = now.seen[id]
                if messages.get(last) != now.last[id]:
                    begin = 0
                    now.rows = {key: row for key, row in now.rows.items() if key[0] != id}
                    del now.seen[id]
            added = {at: each for at, each in messages.items() if at >= begin}
            now.rows.update({(id, at): each[-1] for at, each in added.items()})
            if added:
                last = max(added)
                now.seen[id], now.last[id] = (end, last), added[last]
        self.committed()

    def vacuum(self) -> None:
        if not self.versions:
            return
        DeltaRecordingTable(self.out).vacuum(0)
        self.versions = {}
        self.committed()

    # -- the archive -------------------------------------------------------------------------

    def add(self) -> None:
        builder = fill(SegmentBuilder(), self.rng.randrange(1, 40), self.rng.randrange(999))
        add_recording(self.archive_dir, builder, live=True)
        self.builders.append(builder)

    def grow(self) -> None:
        if self.builders:
            builder = self.rng.choice(self.builders)
            fill(builder, self.rng.randrange(1, 30), self.rng.randrange(999)).write(
                self.archive_dir
            )

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

    # -- delta-rs as another program ---------------------------------------------------------

    def delete(self) -> None:
        if not self.now.rows:
            return
        id, at = self.rng.choice(sorted(self.now.rows))
        sign = self.rng.choice(["<=", ">=", "="])
        self.table.delete(f"recording_id = {id} AND position {sign} {at}")
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
        self.table.restore(version)
        self.now = copy.deepcopy(self.versions[version])
        self.committed()

    def optimize(self) -> None:
        if self.versions:
            self.table.optimize.compact()
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


@pytest.mark.parametrize("seed", range(4))
def test_random_histories_agree_with_a_model(archive_dir: Path, out: Path, seed: int) -> None:
    """Each row is in the table exactly as often as the model says: RESTORE to a version brings back
    what that version lacks, and nothing is converted twice."""
    history = History(archive_dir, out, seed)
    history.add()
    for _ in range(40):
        history.step()
    history.convert()
