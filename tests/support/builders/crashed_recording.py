"""A recording that was being written when its archive was killed."""

from __future__ import annotations

import json
from pathlib import Path

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.refresh import RecordingOutcome, refresh
from aerotape.frame_header import ChecksumName
from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder, crc32
from support.damage.tool_commands import run

NOW_MS = 1_700_000_000_123
SEGMENT_LENGTH = 131_072


class Crashed:
    """A directory with one recording that was being written when the archive was killed."""

    def __init__(self, path: Path, checksum: ChecksumName = "none", start_position: int = 0):
        self.path = path
        self.checksum: ChecksumName = checksum
        self.stream = SegmentBuilder(
            start_position=start_position, checksum=crc32 if checksum == "crc-32" else None
        )
        self.catalog = Catalog.open(path, create=True, checksum=checksum)
        # Tests write frames of more than one page, too.
        self.recording_id = add_entry(self.catalog, self.stream, mtu_length=8192)

    def write(self) -> None:
        self.stream.write(self.path)

    def segment(self, base: int = 0) -> Path:
        return self.path / f"{self.recording_id}-{base}.rec"

    def refresh(self) -> RecordingOutcome:
        """Refresh; a recording about which nothing is reported is clean."""
        outcomes = refresh(self.catalog, self.path, checksum=self.checksum, now_ms=NOW_MS)
        clean = RecordingOutcome(
            self.recording_id, self.catalog.entry(self.recording_id).descriptor.stop_position
        )
        return next((each for each in outcomes if each.recording_id == self.recording_id), clean)

    def is_verified(self) -> bool:
        """Whether `verify` finds no damage in it."""
        self.catalog.close()
        done = run("tool", self.path, "verify", self.recording_id, "--json")
        return done.code == 0 and json.loads(done.out)[0]["marked"] is None

    def files(self) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in self.path.iterdir() if p.suffix != ".catalog"}

    def fill_first_segment(self) -> None:
        for _ in range(2):
            self.stream.frame(b"x" * 100)
            self.stream.pad_term()
        assert self.stream.position == SEGMENT_LENGTH
