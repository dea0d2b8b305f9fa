"""Log buffers of publications, as a driver creates them, without terms."""

from __future__ import annotations

import struct
from pathlib import Path

from aerotape.frame_header import to_int32
from aerotape.units import MAX_LONG


def write_log_buffer(
    aeron_dir: Path,
    registration_id: int,
    initial_term_id: int,
    term_length: int,
    position: int,
    *,
    is_ended: bool = False,
) -> None:
    """Write the metadata of a publication that has accepted messages up to a position."""
    terms, offset = divmod(position, term_length)
    # Aeron prepares the tails of terms that were not used yet as those of three terms before.
    tails = [to_int32(initial_term_id + index - 3) << 32 for index in range(3)]
    for term in range(max(0, terms - 2), terms + 1):
        used = offset if term == terms else term_length + 96
        tails[term % 3] = to_int32(initial_term_id + term) << 32 | used
    metadata = bytearray(4096)
    struct.pack_into("<3qi", metadata, 0, *tails, terms)
    struct.pack_into("<q", metadata, 128, position if is_ended else MAX_LONG)
    struct.pack_into("<iiii", metadata, 264, initial_term_id, 32, 1408, term_length)
    path = aeron_dir / "publications" / f"{registration_id}.logbuffer"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(bytes(512) + metadata)
