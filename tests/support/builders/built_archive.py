"""Archive directories with recordings that `support.builders.segment_builder` wrote."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from aerotape.catalog.file.catalog import Catalog
from aerotape.frame_header import ChecksumName
from support.builders.segment_builder import SegmentBuilder

CHANNEL = "aeron:udp?endpoint=localhost:40123|alias=prices"
MIXED_LENGTHS = (0, 1, 31, 32, 33, 256, 1376, 1377, 5000)


def fill(builder: SegmentBuilder, count: int, seed: int = 1) -> SegmentBuilder:
    """Append `count` messages of mixed lengths, some of them fragmented."""
    rng = random.Random(seed)
    for index in range(count):
        length = rng.choice([*MIXED_LENGTHS, rng.randrange(12_000)])
        builder.message(rng.randbytes(length), reserved_value=index - 5)
    return builder


ENTRY: dict[str, Any] = {
    "start_position": 96,
    "start_timestamp_ms": 5,
    "initial_term_id": -3,
    "segment_file_length": 1 << 17,
    "term_buffer_length": 1 << 16,
    "mtu_length": 1408,
    "session_id": 11,
    "stream_id": 10,
    "stripped_channel": "aeron:ipc",
    "original_channel": "aeron:ipc?alias=prices",
    "source_identity": "aeron:ipc",
}
"""Arguments of `Catalog.add_recording`, for tests of the catalog alone."""


def add_entry(catalog: Catalog, builder: SegmentBuilder, **others: Any) -> int:
    """Add a builder's recording to a catalog; return its recording id.

    Args:
        others: descriptor fields that differ from the builder's and from the defaults.
    """
    entry: dict[str, Any] = {
        "start_position": builder.start_position,
        "start_timestamp_ms": 1,
        "initial_term_id": builder.initial_term_id,
        "segment_file_length": builder.segment_length,
        "term_buffer_length": builder.term_length,
        "mtu_length": builder.mtu_length,
        "session_id": builder.session_id,
        "stream_id": builder.stream_id,
        "stripped_channel": "aeron:ipc",
        "original_channel": "aeron:ipc",
        "source_identity": "aeron:ipc",
    }
    return catalog.add_recording(**(entry | others))


def add_recording(
    archive_dir: Path,
    builder: SegmentBuilder,
    *,
    live: bool = False,
    checksum: ChecksumName = "none",
    **others: Any,
) -> int:
    """Write a builder's segments and its descriptor; return its recording id.

    `checksum` is that of the descriptor; `others` are fields of it.
    """
    fields: dict[str, Any] = {
        "start_timestamp_ms": 1_700_000_000_000,
        "stripped_channel": "aeron:udp?endpoint=localhost:40123",
        "original_channel": CHANNEL,
        "source_identity": "127.0.0.1:40123",
    }
    with Catalog.open(archive_dir, create=True, checksum=checksum) as catalog:
        builder.recording_id = add_entry(catalog, builder, **(fields | others))
        if not live:
            catalog.recording_stopped(builder.recording_id, builder.position, 1_700_000_001_000)
    builder.write(archive_dir)
    return builder.recording_id
