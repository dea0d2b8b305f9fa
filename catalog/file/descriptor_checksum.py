"""Checksums of descriptors, which are in the headers of their entries.

An archive that records with checksums gives each descriptor one and renews it with every change. A
Java archive without checksums and ArchiveTool change descriptors and leave their checksums.
"""

from __future__ import annotations

from aerotape.catalog import layout
from aerotape.catalog.file.entries import CatalogEntry
from aerotape.frame_header import ChecksumName
from aerotape.protocol import NULL_VALUE

_KINDS: tuple[ChecksumName, ...] = ("crc-32", "crc-32c")


def checksum_of(body: bytes, name: ChecksumName) -> int:
    """Return the checksum of a descriptor with its padding; 0 for "none"."""
    if name == "none":
        return 0
    from aerotape import _native

    return _native.checksum(name, body)


def checksum_kind(entry: CatalogEntry) -> ChecksumName:
    """Return the checksum that an entry carries; "none" when it has none, or a wrong one."""
    return _kind(entry.checksum, entry.body)


def kind_before_stop(entry: CatalogEntry) -> ChecksumName:
    """Return the checksum that an entry carried before it got its stop position.

    ArchiveTool sets the stop position of a recording that a crash has left without one, and so does
    an archive without checksums. When the rest of the descriptor is unchanged, the checksum of what
    it was before still matches.
    """
    body = bytearray(entry.body)
    for offset in (layout.STOP_TIMESTAMP_OFFSET, layout.STOP_POSITION_OFFSET):
        layout.LONG.pack_into(body, offset, NULL_VALUE)
    return _kind(entry.checksum, bytes(body))


def _kind(stored: int, body: bytes) -> ChecksumName:
    if not stored:
        return "none"
    return next((name for name in _KINDS if stored == checksum_of(body, name)), "none")
