"""Serialized raft entries, put together byte by byte from the layout of Zeebe's schema."""

from __future__ import annotations

import struct


def _header(block_length: int, template_id: int, version: int) -> bytes:
    return struct.pack("<HHHH", block_length, template_id, 8, version)


def _entry(term: int, kind: int, version: int) -> bytes:
    return _header(9, 1, version) + struct.pack("<QB", term, kind)


def initial(term: int, version: int = 2) -> bytes:
    """An InitialEntry."""
    return _entry(term, 2, version)


def application(term: int, lowest: int, highest: int, data: bytes, version: int = 2) -> bytes:
    """An ApplicationEntry."""
    block = _header(16, 2, version) + struct.pack("<QQ", lowest, highest)
    return _entry(term, 0, version) + block + struct.pack("<I", len(data)) + data


def configuration(
    term: int, timestamp: int, members: list[tuple[int, int, str]], version: int = 2
) -> bytes:
    """A ConfigurationEntry of members (type, updated, id), without old ones."""
    parts = [_entry(term, 1, version), _header(8, 4, version), struct.pack("<q", timestamp)]
    parts.append(struct.pack("<HB", 9, len(members)))
    for kind, updated, name in members:
        encoded = name.encode()
        parts.append(struct.pack("<BqI", kind, updated, len(encoded)) + encoded)
    if version >= 2:
        parts.append(struct.pack("<HB", 9, 0))
    return b"".join(parts)
