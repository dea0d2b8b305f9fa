"""Outcomes of a start's refresh: the kinds of findings, and the report of each recording."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from pathlib import Path

from aerotape.protocol import NULL_VALUE


class Outcome(enum.StrEnum):
    """Kinds of findings about a recording, the gravest first."""

    UNREADABLE = "unreadable"
    """A file or the descriptor cannot be read; the recording was left as it is."""
    DAMAGED_DESCRIPTOR = "damaged descriptor"
    """The descriptor's figures are impossible; the recording was left as it is."""
    SUSPECT_TORN_TAIL = "suspect torn tail"
    """There were bytes after the last frame that is provably whole; they are in quarantine."""
    MISSING_SEGMENTS = "missing segments"
    """Segment files within the recording, or all of an active one's, are not there."""
    CHECKSUM_MISMATCH = "checksum mismatch"
    """Frames before the end fail their checksum."""
    TORN_FRAMES = "torn frames"
    """Frames before the end are partly missing: the power failed before all was on storage."""
    SHORT_SEGMENT = "short segment"
    """A segment file is shorter than the catalog says."""
    ZERO_LENGTH_SEGMENT = "zero-length segment"
    """A segment file has no bytes: the crash came just after it was created."""
    LONG_SEGMENT = "long segment"
    """A segment file is longer than the catalog says; the excess is ignored."""
    FOREIGN_FILE = "foreign file"
    """A file has the name of a segment, or its ending, but belongs to no recording here."""
    REPAIRED = "repaired"
    """A stop position was found and set."""
    CLEAN = "clean"
    """The recording had its stop position, and its files are there."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found about a recording.

    Attributes:
        outcome: what it is.
        detail: the same for people, with positions and what was done.
        path: the file concerned, if there is one.
        position: where in the recording, or -1.
        quarantine: the copy of removed bytes, or the segment file that was moved.
        suspect: whether data was lost or may have been.
    """

    outcome: Outcome
    detail: str
    path: Path | None = None
    position: int = NULL_VALUE
    quarantine: Path | None = None
    suspect: bool = False


@dataclass(frozen=True, slots=True)
class RecordingOutcome:
    """The findings and repair of one recording, or of files that belong to none.

    Attributes:
        recording_id: the recording, -1 for files that belong to no recording.
        stop_position: its stop position now, -1 when it could not be decided.
        findings: all that was found; empty for a clean recording.
        repaired: whether the stop position was set here.
        marked: whether it is marked as suspect, now or since an earlier start.
    """

    recording_id: int
    stop_position: int
    findings: tuple[Finding, ...] = field(default=())
    repaired: bool = False
    marked: bool = False

    @property
    def outcome(self) -> Outcome:
        """The gravest finding; else REPAIRED or CLEAN."""
        if not self.findings:
            return Outcome.REPAIRED if self.repaired else Outcome.CLEAN
        order = list(Outcome)
        return min((f.outcome for f in self.findings), key=order.index)

    @property
    def suspect(self) -> bool:
        """Whether data was lost or may have been, as far as is known."""
        return self.marked or any(finding.suspect for finding in self.findings)

    def __str__(self) -> str:
        subject = f"recording {self.recording_id}" if self.recording_id >= 0 else "directory"
        text = f"{subject}: {self.outcome}"
        if self.repaired:
            text += f", stop position {self.stop_position}"
        if self.findings:
            text += ": " + "; ".join(finding.detail for finding in self.findings)
        return text
