"""The manifest of a recording in a table: ``_manifest.json`` in the recording's folder.

The manifest is written with the files that it names, or after them, so every file in it exists. The
next job reads from it which positions are converted, with which columns, and fingerprints of the
source. Its version is in `manifest_version`; a newer one is refused.
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
    aerotape_version: str = __version__
    date: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """Checksum of the source at the end of a converted range.

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
    """The converted part of one recording.

    Attributes:
        recording: its descriptor when it was last converted.
        ranges: positions that are converted, ascending, apart from each other.
        unfinished_at: the recorded position when a message had begun and not ended; None without
            such a message.
        unfinished_from: the end of the converted ranges then.
        schema: the files' columns and their Arrow types.
        settings: what must be the same in the next job for the files to be one table: mode,
            payload schema, partitions.
        files: the files, by position.
        fingerprints: of the source, one for each converted range, by position.
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
        """The end of the last converted range; None without one."""
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
        """Decode a manifest.

        Args:
            data: the file's bytes.
            name: its name in errors.

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
            for entry in document["files"]:
                entry.pop("source_crc32", None)  # null since there are fingerprints
            return cls(
                recording=dict(document["recording"]),
                ranges=tuple(
                    (int(each["from_position"]), int(each["to_position"]))
                    for each in document["ranges"]
                ),
                unfinished_at=document["unfinished_at"],
                unfinished_from=document["unfinished_from"],
                schema=dict(document["schema"]),
                settings=dict(document["settings"]),
                files=tuple(FileEntry(**entry) for entry in document["files"]),
                fingerprints=tuple(Fingerprint(**each) for each in document["fingerprints"]),
                warnings=tuple(document["warnings"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StorageError(f"{name} is damaged ({error}): {advice}", name) from error


def joined(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Sort intervals, join those that touch or overlap, and drop empty ones."""
    result: list[Interval] = []
    for begin, end in sorted(interval for interval in intervals if interval[0] < interval[1]):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((begin, end))
    return tuple(result)


def missing(wanted: Interval, present: Sequence[Interval]) -> list[Interval]:
    """Return the parts of `wanted` outside `present`, which are ascending and disjoint."""
    result = []
    begin, end = wanted
    for first, last in present:
        if begin < min(first, end):
            result.append((begin, min(first, end)))
        begin = max(begin, last)
    if begin < end:
        result.append((begin, end))
    return result
