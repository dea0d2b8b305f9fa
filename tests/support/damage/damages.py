"""Damage to an archive directory, drawn from a seed: equal seeds produce equal damage.

Each function takes the directory of `damaged_directory.build` and a random number generator, does
one kind of damage, and returns what it has damaged.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from aerotape.catalog import layout
from aerotape.catalog.file.catalog import Catalog
from support.damage.damaged_directory import BuiltDirectory, Original
from support.damage.overwriting import overwrite

CATALOG = layout.CATALOG_FILE_NAME
MARK_FILE = "archive-mark.dat"
_PAGE = 4096
_HEADER_FIELDS = {"term offset": 8, "stream id": 16, "term id": 20}
_BODY = layout.DESCRIPTOR_HEADER_LENGTH


@dataclass(frozen=True)
class Hit:
    """The result of a damage.

    Attributes:
        what: a description for people.
        recordings: ids of damaged recordings; all others must be served whole.
        entries: ids of recordings whose catalog entry was damaged.
        no_catalog: no catalog is left that could be opened.
        visible: ids whose damage shows in names, lengths and first frames of files, or in the
            catalog.
    """

    what: str
    recordings: frozenset[int]
    entries: frozenset[int] = frozenset()
    no_catalog: bool = False
    visible: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Damaged:
    """A damaged directory.

    Attributes:
        path: the directory; must not be changed.
        hit: what was damaged.
        surviving: the original frames that still exist.
    """

    path: Path
    hit: Hit
    surviving: frozenset[bytes]


Damage = Callable[[BuiltDirectory, Path, random.Random], Hit]


# ---- segment files -------------------------------------------------------------------------------


def _segments(built: BuiltDirectory, directory: Path) -> list[tuple[Original, int, Path]]:
    """List the segment files: recording, base position and path."""
    found = []
    for original in built.originals.values():
        stream = original.stream
        for base in sorted({stream.segment_base(position) for position in stream.frames}):
            found.append((original, base, directory / f"{original.recording_id}-{base}.rec"))
    return found


def _some_segment(
    built: BuiltDirectory, directory: Path, rng: random.Random
) -> tuple[Original, int, Path]:
    return rng.choice(_segments(built, directory))


def _recorded(original: Original, base: int) -> tuple[int, int]:
    """Return the recorded range of a segment file, as offsets in it."""
    stream = original.stream
    return max(stream.start_position - base, 0), min(stream.position - base, stream.segment_length)


def _flip(path: Path, offset: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ (1 << bit)]))


def cut_short(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    original, base, path = _some_segment(built, directory, rng)
    begin, end = _recorded(original, base)
    length = rng.choice([0, rng.randrange(begin, end), rng.randrange(begin, end)])
    os.truncate(path, length)
    touched = frozenset({original.recording_id})
    return Hit(f"{path.name} is cut to {length} bytes", touched, visible=touched)


def flipped_bits(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    original, base, path = _some_segment(built, directory, rng)
    begin, end = _recorded(original, base)
    places = [(rng.randrange(begin, end), rng.randrange(8)) for _ in range(rng.randrange(1, 9))]
    for offset, bit in places:
        _flip(path, offset, bit)
    return Hit(
        f"bits of {path.name} are flipped: {places}",
        frozenset({original.recording_id}),
    )


def flipped_headers(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    """Flip bits in header fields, each of which determines the place of the frame."""
    original, base, path = _some_segment(built, directory, rng)
    end = base + original.stream.segment_length
    position = rng.choice([at for at in original.stream.frames if base <= at < end])
    name, offset = rng.choice(list(_HEADER_FIELDS.items()))
    bit = rng.randrange(32)
    _flip(path, position - base + offset + bit // 8, bit % 8)
    return Hit(
        f"bit {bit} of the {name} at position {position} ({path.name}) is flipped",
        frozenset({original.recording_id}),
    )


def flipped_payload(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    """Flip bits in payloads of recordings with checksums."""
    original = rng.choice([each for each in built.originals.values() if each.checksum != "none"])
    stream = original.stream
    position = rng.choice([at for at, frame in stream.frames.items() if len(frame) > 32])
    offset = position - stream.segment_base(position) + 32
    path = stream.segment_path(directory, position)
    _flip(path, offset, rng.randrange(8))
    return Hit(f"a payload at position {position} ({path.name})", frozenset({stream.recording_id}))


def zeroed_pages(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    return _overwritten_pages(built, directory, rng, lambda length: bytes(length), "zeros")


def garbage_pages(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    return _overwritten_pages(built, directory, rng, rng.randbytes, "garbage")


def _overwritten_pages(
    built: BuiltDirectory,
    directory: Path,
    rng: random.Random,
    make: Callable[[int], bytes],
    what: str,
) -> Hit:
    original, base, path = _some_segment(built, directory, rng)
    begin, end = _recorded(original, base)
    pages = rng.sample(range(begin // _PAGE, -(-end // _PAGE)), rng.randrange(1, 3))
    for page in pages:
        overwrite(path, page * _PAGE, make(_PAGE))
    return Hit(f"pages {pages} of {path.name} are {what}", frozenset({original.recording_id}))


def swapped(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    one, other = rng.sample(_segments(built, directory), 2)
    aside = directory / "aside"
    one[2].rename(aside)
    other[2].rename(one[2])
    aside.rename(other[2])
    touched = frozenset({one[0].recording_id, other[0].recording_id})
    return Hit(f"{one[2].name} and {other[2].name} are swapped", touched, visible=touched)


def missing(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    """Delete a segment file, or all of a recording."""
    original, _, path = _some_segment(built, directory, rng)
    gone = [path]
    if rng.random() < 0.5:
        gone = [each for _, _, each in _segments_of(built, directory, original)]
    for each in gone:
        each.unlink()
    touched = frozenset({original.recording_id})
    return Hit(f"{len(gone)} files like {path.name} are gone", touched, visible=touched)


def _segments_of(
    built: BuiltDirectory, directory: Path, original: Original
) -> list[tuple[Original, int, Path]]:
    return [each for each in _segments(built, directory) if each[0] is original]


def duplicated(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    """Duplicate a segment file: over another one, after the end, or for an unknown recording."""
    _, _, path = _some_segment(built, directory, rng)
    other, base, target = _some_segment(built, directory, rng)
    touched = visible = frozenset({other.recording_id})
    where = rng.choice(["over", "behind", "nobody's"])
    if where == "behind":
        target = directory / f"{other.recording_id}-{base + 9 * other.stream.segment_length}.rec"
        visible = frozenset()
    elif where == "nobody's" or target == path:
        target = directory / f"77-{base}.rec"
        touched = visible = frozenset()
    shutil.copyfile(path, target)
    return Hit(f"{path.name} is there again as {target.name}", touched, visible=visible)


def renamed(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    """Rename a segment file to a position after the end of some recording."""
    original, _, path = _some_segment(built, directory, rng)
    other, base, _ = _some_segment(built, directory, rng)
    target = directory / f"{other.recording_id}-{base + 9 * other.stream.segment_length}.rec"
    path.rename(target)
    return Hit(
        f"{path.name} is {target.name}",
        frozenset({original.recording_id, other.recording_id}),
        visible=frozenset({original.recording_id}),
    )


def no_file(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    original, _, path = _some_segment(built, directory, rng)
    kind = rng.choice(["directory", "fifo", "loop of links", "device", "dangling link"])
    path.unlink()
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.symlink_to(path.name if kind == "loop of links" else "nowhere")
    touched = frozenset({original.recording_id})
    return Hit(f"{path.name} is a {kind}", touched, visible=touched)


def garbage_behind(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    """Write garbage after the end of a recording, or of a file."""
    original = rng.choice(list(built.originals.values()))
    stream = original.stream
    _, base, path = _segments_of(built, directory, original)[-1]
    offset = stream.segment_length
    if stream.position % stream.segment_length and rng.random() < 0.7:
        offset = stream.position - base
    overwrite(path, offset, rng.randbytes(rng.randrange(1, 200)))
    # Without a stop position, garbage at the end is a damaged frame of the recording: all messages
    # preceding it are served, but `verify` hides it as ArchiveTool does, until it is repaired.
    is_its_own = original.live and offset == stream.position - base
    touched = frozenset({original.recording_id} if is_its_own else ())
    return Hit(f"garbage in {path.name} at offset {offset}", touched)


# ---- the catalog ---------------------------------------------------------------------------------


def _entry(directory: Path, recording_id: int) -> tuple[int, int]:
    """Return the offset and the length of an entry, header included."""
    with Catalog.open(directory, read_only=True) as catalog:
        entries = {entry.recording_id: entry for entry in catalog.entries()}
    return entries[recording_id].offset, _BODY + entries[recording_id].length


def _some_entry(built: BuiltDirectory, directory: Path, rng: random.Random) -> tuple[int, int, int]:
    number = rng.choice(list(built.originals))
    return number, *_entry(directory, number)


def _put(
    built: BuiltDirectory, directory: Path, rng: random.Random, offset: int, data: bytes, what: str
) -> Hit:
    number, begin, _ = _some_entry(built, directory, rng)
    overwrite(directory / CATALOG, begin + offset, data)
    touched = frozenset({number})
    what = f"{what} of recording {number}: {data.hex()}"
    return Hit(what, touched, entries=touched, visible=touched)


def torn_entry(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    """Lose the beginning or the end of an entry, as if it was never written to storage."""
    number, begin, length = _some_entry(built, directory, rng)
    at = rng.randrange(8, length - 8, 8)
    first, last = (0, at) if rng.random() < 0.5 else (at, length)
    overwrite(directory / CATALOG, begin + first, bytes(last - first))
    touched = frozenset({number})
    what = f"bytes {first} to {last} of the entry of recording {number} are zeros"
    # Possibly only the padding at its end was damaged.
    return Hit(what, touched, entries=touched)


def flipped_catalog(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    number, begin, length = _some_entry(built, directory, rng)
    places = [(rng.randrange(length), rng.randrange(8)) for _ in range(rng.randrange(1, 4))]
    for offset, bit in places:
        _flip(directory / CATALOG, begin + offset, bit)
    touched = frozenset({number})
    what = f"bits {places} of the entry of recording {number}"
    return Hit(what, touched, entries=touched)


def catalog_cut_short(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    ends = {number: sum(_entry(directory, number)) for number in built.originals}
    length = rng.randrange(layout.CATALOG_HEADER_LENGTH, max(ends.values()))
    os.truncate(directory / CATALOG, length)
    touched = frozenset(number for number, end in ends.items() if end > length)
    return Hit(f"the catalog is cut to {length} bytes", touched, entries=touched)


def garbage_length(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    value = rng.choice([-1, 0, 1, 31, 79, 80, 96, 608, 1 << 20, (1 << 31) - 1, -(1 << 31)])
    value = rng.choice([value, rng.randrange(-(1 << 31), 1 << 31)])
    return _put(built, directory, rng, 0, struct.pack("<i", value), "length")


def duplicate_id(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    number, begin, _ = _some_entry(built, directory, rng)
    other = rng.choice([each for each in built.originals if each != number])
    offset = begin + _BODY + layout.RECORDING_ID_OFFSET
    overwrite(directory / CATALOG, offset, struct.pack("<q", other))
    # It may be unknown which of the two is the damaged one.
    touched = frozenset({number, other})
    return Hit(f"recording {number} has id {other} too", touched, entries=touched)


def negative_position(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    offset = rng.choice([layout.START_POSITION_OFFSET, layout.STOP_POSITION_OFFSET])
    value = rng.choice([-2, -32, -(1 << 63), rng.randrange(-(1 << 63), -1)])
    return _put(built, directory, rng, _BODY + offset, struct.pack("<q", value), "position")


def other_position(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    """Set a valid position: in a descriptor with a checksum, or in one without."""
    offset = rng.choice([layout.START_POSITION_OFFSET, layout.STOP_POSITION_OFFSET])
    value = rng.randrange(0, 400_000, 32)
    hit = _put(built, directory, rng, _BODY + offset, struct.pack("<q", value), "position")
    # It cannot be distinguished from the correct one.
    return Hit(hit.what, hit.recordings, entries=hit.entries)


def garbage_segment_length(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    offset = rng.choice([layout.SEGMENT_FILE_LENGTH_OFFSET, layout.TERM_BUFFER_LENGTH_OFFSET])
    value = rng.choice([0, -1, 77, 65_535, 65_537, 3 * 65_536, (1 << 31) - 1, -(1 << 31)])
    return _put(built, directory, rng, _BODY + offset, struct.pack("<i", value), "length")


def garbage_state(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    value = rng.choice([3, -1, 1 << 16 | 1, rng.randrange(3, 1 << 31)])
    data = struct.pack("<i", value)
    return _put(built, directory, rng, layout.STATE_OFFSET, data, "state")


def garbage_catalog_header(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    what = rng.choice(["version", "length", "alignment", "all", "zeros"])
    data: bytes = (directory / CATALOG).read_bytes()[: layout.CATALOG_HEADER_LENGTH]
    fields = {"version": (0, 4), "length": (4, 8), "alignment": (16, 20), "all": (0, 20)}
    begin, end = fields.get(what, (0, 32))
    garbage = bytes(end - begin) if what == "zeros" else b"\x55" + rng.randbytes(end - begin - 1)
    overwrite(directory / CATALOG, 0, data[:begin] + garbage + data[end:])
    everything = frozenset(built.originals)
    return Hit(
        f"{what} of the catalog's header: {garbage.hex()}",
        everything,
        entries=everything,
        no_catalog=True,
    )


def catalog_gone(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    what = rng.choice(["gone", "empty", "a stump", "zeros"])
    path = directory / CATALOG
    length = path.stat().st_size
    path.unlink()
    if what != "gone":
        path.write_bytes({"empty": b"", "a stump": b"\0\1\3", "zeros": bytes(length)}[what])
    everything = frozenset(built.originals)
    return Hit(f"the catalog is {what}", everything, entries=everything, no_catalog=True)


# ---- other files of the directory ----------------------------------------------------------------


def garbage_beside(built: BuiltDirectory, directory: Path, rng: random.Random) -> Hit:
    """Replace a file of ours by garbage: time index, marks, quarantine, remains of a crash."""
    name = rng.choice(
        [
            "aerotape-0.time-index",
            "aerotape-1.time-index",
            "aerotape-0.suspect",
            "aerotape-quarantine",
            "aerotape-import",
            "archive.catalog.rewrite",
            "archive-mark.lnk",
        ]
    )
    path = directory / name
    kind = rng.choice(["file", "directory", "fifo", "loop of links"])
    path.unlink(missing_ok=True)
    if kind == "file":
        path.write_bytes(rng.randbytes(rng.randrange(400)))
    elif kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(name)
    marked = frozenset({0}) if name.endswith(".suspect") else frozenset[int]()
    return Hit(f"{name} is a {kind}", marked, visible=marked)


SEGMENT_DAMAGES: Mapping[str, Damage] = {
    "cut-short": cut_short,
    "flipped-bits": flipped_bits,
    "flipped-headers": flipped_headers,
    "flipped-payload": flipped_payload,
    "zeroed-pages": zeroed_pages,
    "garbage-pages": garbage_pages,
    "swapped": swapped,
    "missing": missing,
    "duplicated": duplicated,
    "renamed": renamed,
    "no-file": no_file,
    "garbage-behind": garbage_behind,
}
CATALOG_DAMAGES: Mapping[str, Damage] = {
    "torn-entry": torn_entry,
    "flipped-catalog": flipped_catalog,
    "catalog-cut-short": catalog_cut_short,
    "garbage-length": garbage_length,
    "duplicate-id": duplicate_id,
    "negative-position": negative_position,
    "other-position": other_position,
    "garbage-segment-length": garbage_segment_length,
    "garbage-state": garbage_state,
    "garbage-catalog-header": garbage_catalog_header,
    "catalog-gone": catalog_gone,
}
OTHER_DAMAGES: Mapping[str, Damage] = {"garbage-beside": garbage_beside}
DAMAGES: Mapping[str, Damage] = {**SEGMENT_DAMAGES, **CATALOG_DAMAGES, **OTHER_DAMAGES}
