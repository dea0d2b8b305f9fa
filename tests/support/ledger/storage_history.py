"""Random histories of the recording of one ledger on a storage that crashes and is damaged.

The code of the archive finds the end of the recording, decides what is torn, and looks entries up.
What is simulated is its recorder: it writes whole entries, forces them to storage, and notes that.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from aerotape import QualifiedId
from aerotape.archive.control.feature import recovery_of
from aerotape.archive.features.built_in import FEATURES
from aerotape.archive.features.ledger import boot
from aerotape.archive.features.ledger.ledger_worker import LedgerWorker
from aerotape.archive.features.ledger.log import Log, Storage
from aerotape.archive.features.ledger.metadata import LedgerMetadata
from aerotape.archive.features.ledger.metadata_store import MetadataStore
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.refresh import refresh
from aerotape.codecs import entry as entries
from aerotape.codecs.generated.ledger_control import DigestType, LedgerType
from aerotape.errors import DamagedEntryError
from aerotape.frame_header import align_frame
from aerotape.waiting import Task, run
from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder

PAGE, SECTOR = 4096, 512
LEDGER = QualifiedId(7, 9)


@dataclass
class Written:
    """An entry in the recording.

    Attributes:
        begin: of its first frame, bytes.
        end: of its last one, bytes.
        is_damaged: whether a byte of it was changed after it was written.
    """

    begin: int
    end: int
    is_damaged: bool = False


class StorageHistory:
    """One ledger, in a directory.

    Attributes:
        written: the entries by their ids.
        boundaries: the ends of all frames.
        forced: up to where the recorder has forced it to storage, bytes.
        noted: up to where that was noted, bytes.
    """

    def __init__(
        self,
        archive_dir: Path,
        draw: random.Random,
        digest_type: entries.DigestType,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.archive_dir = archive_dir
        self.draw = draw
        self.digest_type = digest_type
        self.written: dict[int, Written] = {}
        self.boundaries = {0}
        self.forced = self.noted = 0
        self._next_id = 0
        self._length = 0
        self._boot = archive_dir.with_suffix(".boot")
        self._restart()
        monkeypatch.setattr(boot, "_BOOT_ID", self._boot)
        channel = f"aeron:ipc?alias=ledger-{LEDGER}-pd"
        self.stream = SegmentBuilder(segment_length=65_536)
        archive_dir.mkdir(parents=True)
        with Catalog.open(archive_dir, create=True) as catalog:
            self.stream.recording_id = add_entry(catalog, self.stream, original_channel=channel)
        self.metadata = LedgerMetadata(
            LEDGER,
            LedgerType.PD_JOURNAL,
            DigestType[digest_type],
            1,
            b"",
            recording_id=self.stream.recording_id,
        )
        with closing(MetadataStore.create(archive_dir, [self.metadata])) as store:
            store.set_forced(LEDGER, 0)

    def ids_up_to(self, end: int) -> list[int]:
        """Return the entries that end at or before a position in bytes."""
        return [number for number, entry in self.written.items() if entry.end <= end]

    def _restart(self) -> None:
        self._boot.parent.mkdir(exist_ok=True)
        self._boot.write_text(str(self.draw.getrandbits(64)))

    # ---- the recorder -------------------------------------------------------------------------

    def add(self) -> None:
        """Write some entries."""
        for _ in range(self.draw.randint(1, 12)):
            self._append()
            self._write()

    def _append(self) -> Written:
        payload = self.draw.randbytes(self.draw.choice((0, 1, 20, 100, 700, 3_000)))
        if self.draw.random() < 0.2:
            payload = bytes(len(payload))
        self._length += len(payload)
        data = entries.encode(
            scope_id=LEDGER.scope_id,
            ledger_id=LEDGER.ledger_id,
            entry_id=self._next_id,
            last_add_confirmed=max(self.ids_up_to(self.forced), default=-1),
            length=self._length,
            payload=payload,
            digest_type=self.digest_type,
        )
        found = self.stream.message(data)
        entry = Written(found.position, found.end_position)
        self.written[self._next_id] = entry
        self._next_id += 1
        return entry

    def _write(self, limit: int | None = None) -> bool:
        """Write all frames up to a position; return whether that has left out any data."""
        is_cut = False
        for position in sorted(self.stream.frames):
            frame = self.stream.frames.pop(position)
            self.boundaries |= {position, position + align_frame(len(frame))}
            length = len(frame) if limit is None else max(0, limit - position)
            is_cut |= any(frame[length:])
            if length:
                self._put(position, frame[:length])
        return is_cut

    def _put(self, position: int, data: bytes) -> None:
        path = self.stream.segment_path(self.archive_dir, position)
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.ftruncate(file, self.stream.segment_length)
        os.pwrite(file, data, position - self.stream.segment_base(position))
        os.close(file)

    def force(self) -> None:
        """Force all to storage, or all but the last frames of an entry; note that or do not."""
        self.forced = self.stream.position
        last = self.written[max(self.written)]
        if self.draw.random() < 0.3 and last.end - last.begin > self.stream.mtu_length:
            self.forced = last.begin + self.stream.mtu_length
        kind = self.draw.choice(("", "position", "entry"))
        if not kind:
            return
        with closing(self._worker()) as worker:
            if kind == "entry":
                run(worker.sync(LEDGER, self._log(worker).recording(self.metadata), self.forced))
            else:
                worker.note_forced(LEDGER, self.forced)
                worker.do_work()
                run(worker.forced(LEDGER))
        self.noted = self.forced

    # ---- faults -------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill the archive, sometimes in the middle of a write: that ends at a page."""
        if self.draw.random() < 0.5:
            begin = self.stream.position
            entry = self._append()
            pages = range((begin // PAGE + 1) * PAGE, entry.end, PAGE)
            limit = None
            if pages and entry.begin // 65_536 == begin // 65_536:
                limit = self.draw.choice(pages)
            if self._write(limit):
                del self.written[self._next_id - 1]

    def cut_power(self) -> None:
        """Lose some sectors that were not forced, and start the machine again."""
        self._restart()
        share = self.draw.choice((0.1, 0.5, 1.0))
        for at in range(self.forced // SECTOR * SECTOR, self.stream.position, SECTOR):
            begin, end = max(at, self.forced), min(at + SECTOR, self.stream.position)
            if self.draw.random() < share:
                self.change(begin, bytes(end - begin))

    def damage(self) -> str:
        """Change a bit, or bytes of a part of the recording, or all to its end; return which.

        Or cut its last segment file off, within what was recorded.
        """
        end = self.stream.position
        if not self.written:
            return "bit"
        begin = self.draw.randrange(max(0, end - 20_000), end)
        kind = self.draw.choice(("bit", "sector", "end", "cut"))
        if kind == "bit":
            numbers = [self.draw.choice(list(self.written)), max(self.written)]
            entry = self.written[self.draw.choice(numbers)]
            # Headers are hit as often as what follows.
            length = self.draw.choice((32, entry.end - entry.begin))
            begin = entry.begin + self.draw.randrange(length)
            data = bytes([self._byte(begin) ^ 1 << self.draw.randrange(8)])
        elif kind == "sector":
            data = bytes(min(SECTOR, end - begin))
        elif kind == "cut":
            begin = max(begin, self.stream.segment_base(end - 1))
            for entry in self.written.values():
                entry.is_damaged |= entry.end > begin
            path = self.stream.segment_path(self.archive_dir, begin)
            os.truncate(path, begin - self.stream.segment_base(begin))
            return kind
        else:
            data = bytes(end - begin)
        self.change(begin, data)
        return kind

    def seems_killed(self) -> bool:
        """Whether the last entry is damaged, and zeros from a page on, as a killed write is."""
        last = self.written[max(self.written)]
        pages = range((last.begin // PAGE + 1) * PAGE, last.end, PAGE)
        zeros = pages and not any(self._byte(at) for at in range(pages[-1], last.end))
        return last.is_damaged and bool(zeros)

    def _byte(self, position: int) -> int:
        path = self.stream.segment_path(self.archive_dir, position)
        offset = position - self.stream.segment_base(position)
        return (path.read_bytes()[offset : offset + 1] or b"\0")[0]

    def change(self, begin: int, data: bytes) -> None:
        """Change bytes at a position."""
        for offset in range(0, len(data), SECTOR):
            at, part = begin + offset, data[offset : offset + SECTOR]
            for position, piece in self._pieces(at, part):
                path = self.stream.segment_path(self.archive_dir, position)
                if not path.exists():
                    continue
                base = self.stream.segment_base(position)
                content = path.read_bytes()[position - base : position - base + len(piece)]
                if content != piece:
                    self._put(position, piece)
                    for entry in self.written.values():
                        if entry.begin < position + len(piece) and position < entry.end:
                            entry.is_damaged = True

    def _pieces(self, position: int, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Split data at the ends of segments."""
        left = self.stream.segment_base(position) + self.stream.segment_length - position
        yield position, data[:left]
        if data[left:]:
            yield position + left, data[left:]

    # ---- the archive --------------------------------------------------------------------------

    def _worker(self) -> LedgerWorker:
        return LedgerWorker(self.archive_dir, lambda: None, lambda text: None)

    def _log(self, worker: LedgerWorker, catalog: Catalog | None = None) -> Log:
        if catalog is None:
            with Catalog.open(self.archive_dir, read_only=True) as found:
                descriptor = found.descriptor(self.stream.recording_id)
            catalog = cast(
                Catalog,
                SimpleNamespace(descriptor=lambda _: descriptor, has_recording=lambda _: True),
            )
        recordings = SimpleNamespace(
            session=lambda _: None, changes=SimpleNamespace(await_disk=lambda: _nothing())
        )
        return Log(
            LEDGER,
            Storage(
                archive_dir=self.archive_dir,
                catalog=catalog,
                recordings=cast(Any, recordings),
                worker=worker,
                purge=cast(Any, None),
                truncate=cast(Any, None),
                errors=cast(Any, SimpleNamespace(record=lambda *_: None)),
            ),
        )

    def start(self, *, read: bool = True) -> Recovered:
        """Start the archive after a crash; return what it has of the ledger.

        Args:
            read: whether to look up all entries.
        """
        with (
            Catalog.open(self.archive_dir) as catalog,
            closing(self._worker()) as worker,
        ):
            refresh(
                catalog,
                self.archive_dir,
                now_ms=2,
                judge=recovery_of(FEATURES, self.archive_dir),
            )
            log = self._log(worker, catalog)
            recording = run(log.await_durable_end(self.metadata))
            end = log.end(self.metadata)
            last = run(log.last_entry(self.metadata))
            found: dict[int, bool] = {}
            for entry_id, entry in self.written.items():
                found[entry_id] = False
                if entry_id > last.entry_id or not read:
                    continue
                with suppress(DamagedEntryError):
                    at = run(worker.position_of(LEDGER, recording, entry_id, end))
                    is_sound = recording.damaged_end(at, end) is None
                    found[entry_id] = is_sound and at == entry.begin
            # The recording continues there.
            catalog.set_end_in_any_state(self.stream.recording_id, -1, -1)
        return Recovered(end, last.entry_id, last.length, found)

    def go_on(self, found: Recovered) -> None:
        """Continue with another writer where the archive has ended the ledger."""
        self.written = {
            entry_id: entry
            for entry_id, entry in self.written.items()
            if entry_id <= found.last_id and entry.end <= found.end
        }
        self._next_id, self._length = found.last_id + 1, found.length
        self.stream.position = self.forced = self.noted = found.end


@dataclass(frozen=True)
class Recovered:
    """A ledger after a start.

    Attributes:
        end: of the recording, bytes.
        last_id: the id of its last entry.
        length: payload bytes up to that.
        is_sound: of each entry that was written, whether it can be read.
    """

    end: int
    last_id: int
    length: int
    is_sound: dict[int, bool]


def _nothing() -> Task[None]:
    return
    yield
