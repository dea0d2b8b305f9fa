"""`Recording.stats`, compared with the frames from which the segments were built."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import END, HEADER, PAD, SegmentBuilder
from support.damage.overwriting import overwrite

from aerotape.errors import CatalogError, ConfigurationError
from aerotape.replay.offline.directory import Recording, open_directory


def built(tmp_path: Path, builder: SegmentBuilder, *, live: bool = False) -> Recording:
    recording_id = add_recording(tmp_path, builder, live=live)
    return open_directory(tmp_path).recording(recording_id)


def paddings(builder: SegmentBuilder) -> list[tuple[int, int]]:
    """Return position and length of each padding frame."""
    headers = {position: HEADER.unpack(frame[:32]) for position, frame in builder.frames.items()}
    return [(p, (h[0] + 31) & ~31) for p, h in headers.items() if h[3] == PAD]


def nearest_rank(lengths: list[int], share: float) -> int:
    return sorted(lengths)[max(math.ceil(share * len(lengths)), 1) - 1]


@pytest.mark.parametrize("start_position", [0, 64, 98_304])
@pytest.mark.parametrize("live", [False, True])
def test_counts_equal_the_frames_written(tmp_path: Path, start_position: int, live: bool) -> None:
    """Counts are right with fragments, padding, several terms and segments, any start, and live."""
    builder = fill(SegmentBuilder(start_position=start_position), 200)
    stats = built(tmp_path, builder, live=live).stats(bins=37)
    lengths = [len(message.payload) for message in builder.messages]
    assert (stats.from_position, stats.to_position) == (start_position, builder.position)
    assert (stats.messages, stats.payload_bytes) == (200, sum(lengths))
    assert (stats.min_bytes, stats.max_bytes) == (min(lengths), max(lengths))
    padding = paddings(builder)
    assert stats.fragments == len(builder.frames) - len(padding)
    assert stats.fragmented_messages == sum(length > 1376 for length in lengths) > 0
    assert (stats.padding_frames, stats.padding_bytes) == (len(padding), sum(b for _, b in padding))
    assert padding and (stats.filler_frames, stats.incomplete_fragments) == (0, 0)
    assert (stats.gap_count, stats.gap_bytes, stats.gaps) == (0, 0, ())
    for share in (0, 0.1, 0.5, 0.9, 0.99, 1):
        expected = nearest_rank(lengths, share)
        assert abs(stats.quantile_bytes(share) - expected) <= expected / 128
    assert len(stats.bins) == 37
    for part in stats.bins:
        inside = [
            len(message.payload)
            for message in builder.messages
            if part.from_position <= message.position < part.to_position
        ]
        assert (part.messages, part.payload_bytes) == (len(inside), sum(inside))
        assert (part.min_bytes, part.max_bytes) == (min(inside, default=0), max(inside, default=0))
        if inside:
            median = nearest_rank(inside, 0.5)
            assert abs(part.median_bytes - median) <= median / 128
        in_part = range(part.from_position, part.to_position)
        assert part.padding_bytes == sum(length for p, length in padding if p in in_part)


def test_a_range_counts_messages_that_begin_in_it(tmp_path: Path) -> None:
    """Adjacent ranges count each message once, wherever they are split."""
    builder = fill(SegmentBuilder(), 120)
    recording = built(tmp_path, builder)
    whole = recording.stats()
    cut = builder.messages[47].position + 32
    parts = [recording.stats(to_position=cut), recording.stats(cut)]
    assert [part.messages for part in parts] == [48, 72]
    assert sum(part.payload_bytes for part in parts) == whole.payload_bytes
    assert sum(part.padding_bytes for part in parts) == whole.padding_bytes
    assert sum(part.fragments for part in parts) == whole.fragments
    assert [part.duration_s for part in [*parts, whole]] == [None, None, 1.0]
    assert whole.messages_per_s == 120
    assert whole.bytes_per_s == builder.position


def test_an_empty_recording(tmp_path: Path) -> None:
    """An empty recording has zeros, not an error."""
    stats = built(tmp_path, SegmentBuilder(start_position=64)).stats()
    assert (stats.messages, stats.length_bytes, stats.bins, stats.lengths) == (0, 0, (), ())
    assert (stats.mean_bytes, stats.quantile_bytes(0.5), stats.histogram()) == (0, 0, [])
    assert stats.duration_s == 1.0
    assert stats.messages_per_s == 0


def test_fragments_without_a_message_are_counted(tmp_path: Path) -> None:
    """Counted are a message's end without its beginning, and a beginning without its end."""
    builder = SegmentBuilder(start_position=1408)
    builder.frame(b"x" * 1376, flags=0)
    builder.frame(b"x" * 100, flags=END)
    builder.message(b"whole")
    builder.frame(b"x" * 1376, flags=0x80)
    builder.pad_term()
    builder.message(b"another")
    builder.frame(b"x" * 1376, flags=0x80)
    stats = built(tmp_path, builder).stats()
    assert (stats.messages, stats.fragments, stats.incomplete_fragments) == (2, 2, 4)
    assert stats.gap_count == 0


def test_padding_within_a_term_is_a_filler(tmp_path: Path) -> None:
    """Padding within a term stands for lost messages; padding at the end of a term does not."""
    builder = SegmentBuilder()
    builder.message(b"a" * 100)
    builder.frame(b"", frame_type=PAD, length=1000)
    builder.message(b"b" * 100)
    builder.pad_term()
    builder.message(b"c" * 100)
    stats = built(tmp_path, builder).stats()
    assert (stats.messages, stats.padding_frames) == (3, 2)
    assert (stats.filler_frames, stats.filler_bytes) == (1, 1024)


def test_a_purged_beginning_has_no_mean_rate(tmp_path: Path) -> None:
    """The start timestamp is that of the purged beginning, so that no rate is reported."""
    builder = fill(SegmentBuilder(start_position=131_072), 30)
    stats = built(tmp_path, builder).stats()
    assert (stats.messages, stats.duration_s, stats.messages_per_s) == (30, None, None)


def erase(path: Path, begin: int, end: int, fill_byte: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[begin:end] = bytes([fill_byte]) * (end - begin)
    path.write_bytes(data)


def test_gaps_are_reported_and_skipped(tmp_path: Path) -> None:
    """Zeros, invalid bytes, a missing and a short file are gaps; all frames between are counted."""
    builder = fill(SegmentBuilder(), 400, seed=4)
    recording = built(tmp_path, builder)
    assert len(recording.segment_files()) >= 5
    zeroed, garbled = builder.messages[20], builder.messages[40]
    first = builder.segment_path(tmp_path, 0)
    erase(first, zeroed.position, zeroed.end_position)
    erase(first, garbled.position, garbled.end_position, 0xA5)
    missing = builder.segment_path(tmp_path, 131_072)
    missing.unlink()
    short = builder.segment_path(tmp_path, 3 * 131_072)
    cut = next(m for m in builder.messages if m.position > 3 * 131_072 + 20_000 and m.payload)
    with short.open("r+b") as file:
        file.truncate(cut.position - 3 * 131_072 + 48)
    stats = recording.stats(bins=64)
    expected = [
        (zeroed.position, zeroed.end_position, "unwritten"),
        (garbled.position, garbled.end_position, "damaged"),
        (131_072, 262_144, "missing"),
        (cut.position, 4 * 131_072, "missing"),
    ]
    assert [(g.from_position, g.to_position, g.kind) for g in stats.gaps] == expected
    assert "no frame here" in stats.gaps[0].detail
    assert "cannot open segment file" in stats.gaps[2].detail
    assert stats.gap_count == 4
    assert stats.gap_bytes == sum(end - begin for begin, end, _ in expected)
    assert sum(part.gap_bytes for part in stats.bins) == stats.gap_bytes
    left = [
        message
        for message in builder.messages
        if not any(begin <= message.position < end for begin, end, _ in expected)
    ]
    assert stats.messages == len(left)
    assert stats.payload_bytes == sum(len(message.payload) for message in left)
    inside = recording.stats(140_000, 200_000)
    assert [(g.from_position, g.to_position) for g in inside.gaps] == [(140_000, 200_000)]
    assert inside.messages == 0


def test_a_damaged_tail(tmp_path: Path) -> None:
    """When the last file ends below the stop position, the rest is a gap."""
    builder = fill(SegmentBuilder(), 50)
    recording = built(tmp_path, builder)
    last = builder.messages[-1]
    base = builder.segment_base(last.position)
    erase(builder.segment_path(tmp_path, last.position), last.position - base, 131_072)
    stats = recording.stats()
    assert stats.messages == 49
    [gap] = stats.gaps
    assert (gap.from_position, gap.to_position) == (last.position, builder.position)
    assert (gap.kind, gap.length_bytes) == ("unwritten", builder.position - last.position)


def test_more_gaps_than_are_listed(tmp_path: Path) -> None:
    """All gaps are counted, a thousand are listed."""
    builder = SegmentBuilder()
    for _ in range(2200):
        builder.message(b"x" * 20)
    recording = built(tmp_path, builder)
    for message in builder.messages[1::2]:
        base = builder.segment_base(message.position)
        path = builder.segment_path(tmp_path, message.position)
        overwrite(path, message.position - base, bytes(4))
    stats = recording.stats()
    assert (stats.messages, stats.gap_count, len(stats.gaps)) == (1100, 1100, 1000)
    assert stats.gap_bytes == 1100 * 64


def test_histogram_in_powers_of_two(tmp_path: Path) -> None:
    """Buckets are contiguous from the shortest to the longest length, and each length is in its
    bucket."""
    builder = SegmentBuilder()
    lengths = [0, 1, 5, 31, 32, 33, 63, 64, 1000, 5000]
    for length in lengths:
        builder.message(b"x" * length)
    stats = built(tmp_path, builder).stats()
    for divisions in (1, 4, 128):
        buckets = stats.histogram(divisions)
        assert [b.from_bytes for b in buckets[1:]] == [b.to_bytes for b in buckets[:-1]]
        for bucket in buckets:
            inside = [x for x in lengths if bucket.from_bytes <= x < bucket.to_bytes]
            assert (bucket.messages, bucket.payload_bytes) == (len(inside), sum(inside))
    edges = [bucket.from_bytes for bucket in stats.histogram()]
    assert edges == [0, *(1 << n for n in range(13))]
    with pytest.raises(ConfigurationError, match=r"divisions must be .* got 3"):
        stats.histogram(3)
    with pytest.raises(ConfigurationError, match=r"share must be .* got 1\.5"):
        stats.quantile_bytes(1.5)


def test_bad_arguments(tmp_path: Path) -> None:
    """Numbers of bins and ranges that are not valid are refused."""
    recording = built(tmp_path, fill(SegmentBuilder(), 3))
    for bins in (-1, 100_001):
        with pytest.raises(ConfigurationError, match=f"bins must be .* got {bins}"):
            recording.stats(bins=bins)
    with pytest.raises(ConfigurationError, match="after to_position"):
        recording.stats(100, 50)


def test_a_damaged_descriptor(tmp_path: Path) -> None:
    """Statistics of a recording with an unreadable entry are an error."""
    recording = built(tmp_path, fill(SegmentBuilder(), 3))
    path = tmp_path / "archive.catalog"
    data = bytearray(path.read_bytes())
    offset = data.index(b"aeron:udp")
    data[offset - 4 : offset] = (1 << 20).to_bytes(4, "little")
    path.write_bytes(data)
    damaged = [r for r in open_directory(tmp_path).recordings() if r.damage]
    assert recording.stats().messages == 3
    assert len(damaged) == 1
    with pytest.raises(CatalogError, match="damaged descriptor"):
        damaged[0].stats()


def test_a_dictionary_of_statistics_can_be_written_as_json(tmp_path: Path) -> None:
    """`to_dict` has plain values only."""
    stats = built(tmp_path, fill(SegmentBuilder(), 60)).stats(bins=4)
    plain = json.loads(json.dumps(stats.to_dict()))
    assert plain["messages"] == 60
    assert [part["messages"] for part in plain["bins"]] == [b.messages for b in stats.bins]
    assert plain["p50_bytes"] == stats.quantile_bytes(0.5)
