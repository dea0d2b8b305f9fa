"""Reading all entries of a long catalog, for those who show or count them.

Nearly every entry is sound, and its strings are those of many others: such a one is read in one
step. What is wrong with another is for `entries` to find out.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from aerotape.catalog import layout
from aerotape.catalog.descriptor import are_possible, sound_strings
from aerotape.catalog.file.entries import CatalogEntry, EntryPlace, read_entry

_HEADER_PADDING = layout.DESCRIPTOR_HEADER_LENGTH - layout.DESCRIPTOR_HEADER.size
# An entry from its state on to its strings, without what only means something on the wire.
_FIGURES = struct.Struct(
    f"<{layout.STATE_OFFSET}x{layout.DESCRIPTOR_HEADER.format[2:]}"
    f"{_HEADER_PADDING + layout.RECORDING_ID_OFFSET}x{layout.DESCRIPTOR_BLOCK.format[3:]}"
)
_STRINGS_OFFSET = layout.DESCRIPTOR_HEADER_LENGTH + layout.DESCRIPTOR_BLOCK_LENGTH
_REMEMBERED_STRINGS = 1024


class SoundEntry(NamedTuple):
    """An entry of whatever state, with which nothing is wrong; as `CatalogEntry` has it."""

    state: int
    checksum: int
    recording_id: int
    start_timestamp_ms: int
    stop_timestamp_ms: int
    start_position: int
    stop_position: int
    initial_term_id: int
    segment_file_length: int
    term_buffer_length: int
    mtu_length: int
    session_id: int
    stream_id: int
    stripped_channel: str
    original_channel: str
    source_identity: str


def read_entries(
    data: mmap.mmap, places: Iterable[EntryPlace]
) -> Iterator[SoundEntry | CatalogEntry]:
    """Read what stands at these places of a catalog file.

    Those that are not sound come as `CatalogEntry`; nothing is raised for them.
    """
    read, make = _FIGURES.unpack_from, SoundEntry._make
    for place in places:
        offset, length, _, damage, _ = place
        if not damage:
            figures = read(data, offset)
            begin = offset + _STRINGS_OFFSET
            strings = _strings(data[begin : begin + length - layout.DESCRIPTOR_BLOCK_LENGTH])
            if strings and are_possible(figures[5], figures[6], figures[8], figures[9]):
                yield make(figures + strings)
                continue
        yield read_entry(data, place)


@lru_cache(maxsize=_REMEMBERED_STRINGS)
def _strings(data: bytes) -> tuple[str, ...]:
    return sound_strings(data, 0)
