"""What a table has of a recording: ``_manifest.json`` in the recording's folder.

The manifest is written with the files that it names, or after them, so it never tells of a file
that is not there. It is what the next job goes by: which positions are converted already, with
which columns, and how the source looked then. Its version is in `manifest_version`; what is newer
is refused rather than misread.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aerotape import __version__
from aerotape.errors import StorageError

MANIFEST_NAME: Final = "_manifest.json"
MANIFEST_VERSION: Final = 1

Interval = tuple[int, int]
"""Positions from the first up to, not including, the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One Parquet file.

    Attributes:
        name: path below the recording's folder.
        from_position: the file has the messages that begin from here …
        to_position: … and before here.
        rows: messages in it.
        payload_bytes: bytes of their payloads.
        bytes: length of the file.
        checksum: which checksum the frames were verified with.
        source_crc32: CRC-32 of the source's last 64 KiB before `to_position`; None since there are
            fingerprints instead.
        converted_at: when, ISO 8601, UTC.
        aerotape_version: by which version.
        date: the partition of a table that has them by date, ISO 8601.
    """

    name: str
    from_position: int
    to_position: int
    rows: int
    payload_bytes: int
    bytes: int
    checksum: str
    converted_at: str
    source_crc32: int | None = None
    aerotape_version: str = __version__
    date: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What the source held at the end of a range when that was converted.

    Attributes:
        from_position: the bytes of the recording from here, a multiple of 32 …
        to_position: … up to here, in one segment file.
        crc32c: CRC-32C of them with frames' session ids as zero, as a signed number
            (`aerotape.spark.parquet.fingerprint`).
    """

    from_position: int
    to_position: int
    crc32c: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is converted of one recording.

    Attributes:
        recording: its descriptor when it was last converted.
        ranges: positions that are converted, ascending, apart from each other.
        unfinished_at: what was recorded when a message had begun that had not ended yet; None when
            there was no such message.
        unfinished_from: where what is converted of the recording ended then.
        schema: the files' columns and their Arrow types.
        settings: what must be the same in the next job for the files to be one table: mode,
            payload schema, partitions.
        files: the files, by position.
        fingerprints: of the source, for each range that was converted at once, by position. None
            of ranges that an earlier version has converted.
        warnings: what is suspect about the rows.
    """

    recording: dict[str, Any]
    ranges: tuple[Interval, ...] = ()
    unfinished_at: int | None = None
    unfinished_from: int | None = None
    schema: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    files: tuple[FileEntry, ...] = ()
    fingerprints: tuple[Fingerprint, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def to_position(self) -> int | None:
        """Where the last converted range ends; None when there is none."""
        return self.ranges[-1][1] if self.ranges else None

    def encode(self) -> bytes:
        """Encode as JSON."""
        document = {
            "manifest_version": MANIFEST_VERSION,
            "aerotape_version": __version__,
            "recording": self.recording,
            "from_position": self.ranges[0][0] if self.ranges else None,
            "to_position": self.to_position,
            "unfinished_at": self.unfinished_at,
            "unfinished_from": self.unfinished_from,
            "ranges": [{"from_position": begin, "to_position": end} for begin, end in self.ranges],
            "rows": sum(entry.rows for entry in self.files),
            "payload_bytes": sum(entry.payload_bytes for entry in self.files),
            "bytes": sum(entry.bytes for entry in self.files),
            "schema": self.schema,
            "settings": self.settings,
            "warnings": list(self.warnings),
            "files": [dataclasses.asdict(entry) for entry in self.files],
            "fingerprints": [dataclasses.asdict(each) for each in self.fingerprints],
        }
        return (json.dumps(document, indent=2) + "\n").encode()

    @classmethod
    def decode(cls, data: bytes, name: str) -> Manifest:
        """Decode what `encode` made.

        Args:
            data: the file's bytes.
            name: what to call it in errors.

        Raises:
            StorageError: it is damaged, or of another version.
        """
        advice = "convert the recording again (--overwrite), or write to another folder"
        try:
            document = json.loads(data)
            version = document.get("manifest_version")
            if version != MANIFEST_VERSION:
                raise StorageError(
                    f"{name} has version {version}, and aerotape {__version__} supports version "
                    f"{MANIFEST_VERSION}: use the aerotape that wrote it, {advice}",
                    name,
                )
            return cls(
                recording=dict(document["recording"]),
                ranges=tuple(
                    (int(each["from_position"]), int(each["to_position"]))
                    for each in document["ranges"]
                ),
                unfinished_at=document["unfinished_at"],
                # Earlier versions noticed it only behind the last range.
                unfinished_from=document.get("unfinished_from", document["to_position"]),
                schema=dict(document["schema"]),
                settings=dict(document["settings"]),
                files=tuple(FileEntry(**entry) for entry in document["files"]),
                fingerprints=tuple(
                    Fingerprint(**each) for each in document.get("fingerprints", ())
                ),
                warnings=tuple(document["warnings"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StorageError(f"{name} is damaged ({error}): {advice}", name) from error


def joined(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Sort intervals and join those that touch or overlap; empty ones go."""
    result: list[Interval] = []
    for begin, end in sorted(interval for interval in intervals if interval[0] < interval[1]):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((begin, end))
    return tuple(result)


def missing(wanted: Interval, present: Sequence[Interval]) -> list[Interval]:
    """Return what of `wanted` is in none of `present`, which are ascending and apart."""
    result = []
    begin, end = wanted
    for first, last in present:
        if begin < min(first, end):
            result.append((begin, min(first, end)))
        begin = max(begin, last)
    if begin < end:
        result.append((begin, end))
    return result
