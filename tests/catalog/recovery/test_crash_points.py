"""Recordings cut off at random by a crash: all whole frames are retained, and nothing else."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder, crc32
from support.damage.overwriting import overwrite

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.refresh import refresh
from aerotape.catalog.segment.data_extents import find_data_end
from aerotape.frame_header import ChecksumName

pytestmark = pytest.mark.crash

SEGMENT_LENGTH = 131_072
PAGE_LENGTH = 4096
NOW_MS = 1_700_000_000_123


def build(rng: random.Random, checksum: ChecksumName, position: int = 0) -> SegmentBuilder:
    stream = SegmentBuilder(
        start_position=position, checksum=crc32 if checksum == "crc-32" else None
    )
    for _ in range(rng.randrange(1, 200)):
        kind = rng.random()
        if kind < 0.02:
            stream.pad_term()
        else:
            filler = bytes(1) if kind < 0.1 else b"\x5a"
            stream.message(filler * rng.choice([rng.randrange(1, 100), rng.randrange(1, 6000)]))
    return stream


def write_until(stream: SegmentBuilder, directory: Path, cut: int) -> None:
    """Write the recording as if the process had crashed when the bytes up to `cut` were copied."""
    stream.write(directory)
    for path in directory.glob("*.rec"):
        base = int(path.stem.partition("-")[2])
        if base >= cut:
            # Segments that were not created before the crash.
            path.unlink()
        elif base + SEGMENT_LENGTH > cut:
            data = path.read_bytes()[: cut - base]
            path.write_bytes(data.ljust(SEGMENT_LENGTH, b"\0"))


def boundaries(stream: SegmentBuilder) -> list[int]:
    return [*stream.frames, stream.position]


@pytest.mark.parametrize("checksum", ["none", "crc-32"])
@pytest.mark.parametrize("seed", range(25))
def test_a_write_cut_off_at_a_page_leaves_whole_frames(
    tmp_path: Path, seed: int, checksum: ChecksumName
) -> None:
    """Whatever page the last write ended on, the end is right and no earlier byte changes."""
    rng = random.Random(seed)
    stream = build(rng, checksum)
    cut = min(rng.randrange(0, stream.position // PAGE_LENGTH + 2) * PAGE_LENGTH, stream.position)
    cut = max(cut, 1)
    write_until(stream, tmp_path, cut)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.rec")}
    with Catalog.open(tmp_path, create=True, checksum=checksum) as catalog:
        add_entry(catalog, stream)
        (outcome,) = refresh(catalog, tmp_path, checksum=checksum, now_ms=NOW_MS)
    stop = outcome.stop_position
    frames = boundaries(stream)
    assert stop in frames
    # A padding frame is whole with its header; a frame of zeros is as it was before the write.
    whole = max(
        end
        for begin, end in [(0, 0), *itertools.pairwise(frames)]
        if end <= cut or begin + len(stream.frames.get(begin, b"").rstrip(b"\0")) <= cut
    )
    if checksum == "none":
        # At most one frame is doubtful, and its bytes are in quarantine.
        assert stop in (whole, frames[max(frames.index(whole) - 1, 0)])
        assert stop == whole or outcome.suspect
    else:
        assert stop >= max(end for end in frames if end <= cut)
        assert stop <= whole
    for path, data in before.items():
        base = int(path.stem.partition("-")[2])
        retained = max(min(stop - base, SEGMENT_LENGTH), 0)
        if path.exists():
            assert path.read_bytes() == data[:retained].ljust(SEGMENT_LENGTH, b"\0")


@pytest.mark.parametrize("seed", range(10))
def test_after_an_extension_old_bytes_do_not_pass_for_new(tmp_path: Path, seed: int) -> None:
    """After an extension over a torn tail and another crash, the recording ends with the
    extension."""
    rng = random.Random(1000 + seed)
    stream = SegmentBuilder()
    for _ in range(rng.randrange(1, 5)):
        stream.frame(b"\x5a" * rng.randrange(1, 1300))
    torn = stream.frame(b"\x5a" * 600)
    # After a hole where the torn frame's header was: frames that are valid in themselves.
    for _ in range(5):
        stream.frame(b"\x5a" * 600)
    stream.write(tmp_path)
    segment = tmp_path / "0-0.rec"
    overwrite(segment, torn, bytes(640))
    with Catalog.open(tmp_path, create=True) as catalog:
        recording_id = add_entry(catalog, stream)
        (outcome,) = refresh(catalog, tmp_path, now_ms=NOW_MS)
        assert outcome.stop_position == torn
        # The extension writes one frame with the length of the torn one, up to the old frames.
        catalog.extend_recording(recording_id, control_session_id=1, correlation_id=2, session_id=3)
        extension = SegmentBuilder(start_position=0)
        extension.position = torn
        extension.frame(b"\xa5" * 600)
        overwrite(segment, torn, extension.frames[torn])
        (again,) = refresh(catalog, tmp_path, now_ms=NOW_MS + 1)
        assert again.stop_position == torn + 640
        assert again.findings == ()
        assert again.suspect


def test_the_last_written_byte_is_found_across_holes(tmp_path: Path) -> None:
    """Sparse or not, the data ends at the last byte that is not zero."""
    path = tmp_path / "segment"
    with path.open("wb") as file:
        file.truncate(8 << 20)
        assert find_data_end(path, 64) == 64
        for offset in (100, (5 << 20) + 3):
            file.seek(offset)
            file.write(b"\x07")
        file.seek(6 << 20)
        file.write(bytes(1 << 20))
    assert find_data_end(path, 0) == (5 << 20) + 4
    assert find_data_end(path, (5 << 20) + 4) == (5 << 20) + 4
    assert find_data_end(path, 9 << 20) == 9 << 20
