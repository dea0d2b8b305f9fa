"""What a recording is like: sizes and numbers of its messages over positions, padding and gaps.

One native pass over the segment files counts all of it (`native/src/scan/statistics.rs`), at the
speed at which they can be read and in memory that does not grow with them. Unlike a reader it
does not end at damage: that is a gap, and the pass goes on at the next frame that can be found.

A message counts where its first frame begins. Lengths are those of payloads, fragments put
together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from aerotape import _native
from aerotape.catalog.location import require_local
from aerotape.errors import ConfigurationError
from aerotape.replay.reader import recording_range

if TYPE_CHECKING:
    from aerotape.catalog.directory import Recording

GapKind = Literal["missing", "unwritten", "damaged"]
"""What stands where frames should: no file or not enough of one; zeros; something else."""

DEFAULT_BINS: Final = 100
MAX_BINS: Final = 100_000
_FRAME_ALIGNMENT: Final = 32
_MESSAGES_PER_BIN: Final = 20
_FEW_BINS: Final = 10
# So often can a pass be interrupted, and tells how far it is.
_SLICE_BYTES: Final = 64 * 1024 * 1024
_NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Gap:
    """A range of positions without frames, though the recording reaches beyond it.

    Attributes:
        from_position: where the first frame that is missing should begin.
        to_position: where frames go on, or the range that was looked at ends.
        kind: what stands there.
        detail: what a reader of the recording would be told at `from_position`.
    """

    from_position: int
    to_position: int
    kind: GapKind
    detail: str

    @property
    def length_bytes(self) -> int:
        """Length in bytes."""
        return self.to_position - self.from_position


@dataclass(frozen=True, slots=True)
class LengthBucket:
    """Messages of about one length.

    Attributes:
        from_bytes: shortest length that belongs here.
        to_bytes: shortest length that is too long.
        messages: number of messages.
        payload_bytes: sum of their lengths.
    """

    from_bytes: int
    to_bytes: int
    messages: int
    payload_bytes: int


@dataclass(frozen=True, slots=True)
class Bin:
    """What begins in one part of the range. Lengths are bytes, and 0 when there is no message.

    Attributes:
        from_position: first position.
        to_position: first position that belongs to the next one.
        messages: messages that begin here.
        payload_bytes: sum of their lengths.
        padding_bytes: bytes of padding frames that begin here.
        gap_bytes: bytes here that belong to gaps.
        min_bytes: length of the shortest message.
        median_bytes: the length that half of the messages do not exceed.
        p99_bytes: the length that 99 % of the messages do not exceed.
        max_bytes: length of the longest message.
    """

    from_position: int
    to_position: int
    messages: int
    payload_bytes: int
    padding_bytes: int
    gap_bytes: int
    min_bytes: int
    median_bytes: int
    p99_bytes: int
    max_bytes: int

    @property
    def length_bytes(self) -> int:
        """Bytes of the recording that it covers."""
        return self.to_position - self.from_position


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingStatistics:
    """What a range of a recording holds.

    Attributes:
        recording_id: the recording.
        stream_id: of the recording.
        channel: its original channel.
        from_position: first position that was looked at.
        to_position: position after the last one.
        messages: whole messages that begin in the range.
        payload_bytes: sum of their lengths.
        fragments: frames that they consist of.
        fragmented_messages: those of more than one frame.
        incomplete_fragments: frames that belong to no whole message: its beginning was not
            recorded, or its end never came, or is not there yet.
        padding_frames: frames without a message, which fill up a term mostly.
        padding_bytes: bytes of padding frames.
        filler_frames: those of the padding frames that do not reach to the end of their term:
            a claim that was aborted, a publisher that died in the middle of one, or what an
            unreliable stream has lost.
        filler_bytes: bytes of these.
        min_bytes: length of the shortest message, 0 when there is none.
        max_bytes: length of the longest one.
        lengths: how many messages there are of each length, ascending, only lengths that occur.
            Exact up to 255 bytes; a bucket of longer ones is at most 1/128 of its length wide.
        gap_count: number of gaps.
        gap_bytes: bytes that they cover.
        gaps: the first 1000 of them.
        bins: the range in equal parts.
        duration_s: how long recording the range took, seconds; None when that is not known.
    """

    recording_id: int
    stream_id: int
    channel: str
    from_position: int
    to_position: int
    messages: int
    payload_bytes: int
    fragments: int
    fragmented_messages: int
    incomplete_fragments: int
    padding_frames: int
    padding_bytes: int
    filler_frames: int
    filler_bytes: int
    min_bytes: int
    max_bytes: int
    lengths: tuple[LengthBucket, ...]
    gap_count: int
    gap_bytes: int
    gaps: tuple[Gap, ...]
    bins: tuple[Bin, ...]
    duration_s: float | None

    @property
    def length_bytes(self) -> int:
        """Bytes of the recording that were looked at."""
        return self.to_position - self.from_position

    @property
    def mean_bytes(self) -> float:
        """Mean length of a message, 0 when there is none."""
        return self.payload_bytes / self.messages if self.messages else 0.0

    @property
    def messages_per_s(self) -> float | None:
        """Mean rate; None when it is not known how long recording took."""
        return self.messages / self.duration_s if self.duration_s else None

    @property
    def bytes_per_s(self) -> float | None:
        """Mean rate of recorded bytes, with headers and padding; None as `messages_per_s`."""
        return self.length_bytes / self.duration_s if self.duration_s else None

    def quantile_bytes(self, share: float) -> int:
        """Return the length that this share of the messages does not exceed, 0 without messages.

        By the nearest rank. Exact where only one length occurs in its bucket of `lengths`, else
        that bucket's mean: off by less than 1/128.

        Raises:
            ConfigurationError: the share is not from 0 to 1.
        """
        if not 0 <= share <= 1:
            raise ConfigurationError(f"{share} is no share: it must be from 0 to 1", "share")
        rank, seen = max(math.ceil(share * self.messages), 1), 0
        for bucket in self.lengths:
            seen += bucket.messages
            if seen >= rank:
                return bucket.payload_bytes // bucket.messages
        return 0

    def histogram(self, divisions: int = 1) -> list[LengthBucket]:
        """Return the lengths in wider buckets, without a break from the shortest to the longest.

        Buckets are powers of two (0, 1, 2 to 3, 4 to 7 …), each divided into so many equal parts
        (a power of two up to 128) where it is long enough.
        """
        if divisions not in (1, 2, 4, 8, 16, 32, 64, 128):
            raise ConfigurationError(
                f"{divisions} divisions: use a power of two up to 128", "divisions"
            )
        if not self.messages:
            return []
        edges = list(_edges(self.min_bytes, self.max_bytes, divisions))
        counts = [[0, 0] for _ in edges[1:]]
        at = 0
        for bucket in self.lengths:
            while bucket.from_bytes >= edges[at + 1]:
                at += 1
            counts[at][0] += bucket.messages
            counts[at][1] += bucket.payload_bytes
        return [
            LengthBucket(edges[i], edges[i + 1], messages, payload_bytes)
            for i, (messages, payload_bytes) in enumerate(counts)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values, with the quantiles 0.5, 0.9, 0.99 and 0.999."""
        from dataclasses import asdict

        quantiles = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
        return {
            **asdict(self),
            "length_bytes": self.length_bytes,
            "mean_bytes": self.mean_bytes,
            **{f"{name}_bytes": self.quantile_bytes(share) for name, share in quantiles.items()},
            "messages_per_s": self.messages_per_s,
            "bytes_per_s": self.bytes_per_s,
        }


def recording_statistics(
    recording: Recording,
    from_position: int | None = None,
    to_position: int | None = None,
    *,
    bins: int = DEFAULT_BINS,
    progress: Callable[[int], object] | None = None,
) -> RecordingStatistics:
    """Count what a range of a recording holds.

    Args:
        recording: of an opened archive directory; it may still be recorded: what was recorded
            when it was looked at counts.
        from_position: the recording's start when None.
        to_position: what is recorded when None.
        bins: into how many equal parts to divide the range, from 0 to 100000. There are fewer
            when they would be shorter than the smallest frame.
        progress: called now and then with the bytes that are behind.

    Raises:
        ConfigurationError: an argument cannot be.
        CatalogError: the recording's descriptor is damaged.
        StorageError: of a recording without a stop position, a file cannot be read.
    """
    if not 0 <= bins <= MAX_BINS:
        raise ConfigurationError(f"{bins} bins: there can be 0 to {MAX_BINS}", "bins")
    require_local(recording.archive_dir, "statistics")
    chosen = recording_range(recording, from_position, to_position)
    now_ms = time.time_ns() // _NS_PER_MS
    edges = position_edges(chosen.from_position, chosen.to_position, bins)
    try:
        native_pass = _native.RecordingPass(chosen, edges)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    while not native_pass.advance(_SLICE_BYTES):
        if progress is not None:
            progress(native_pass.position - chosen.from_position)
    counts = native_pass.counts()
    whole = (
        chosen.from_position == recording.start_position
        and chosen.to_position == chosen.limit_position
    )
    return RecordingStatistics(
        recording_id=chosen.recording_id,
        stream_id=chosen.stream_id,
        channel=recording.descriptor.original_channel,
        from_position=chosen.from_position,
        to_position=chosen.to_position,
        messages=counts.messages,
        payload_bytes=counts.payload_bytes,
        fragments=counts.fragments,
        fragmented_messages=counts.fragmented_messages,
        incomplete_fragments=counts.skipped_fragments + counts.unfinished_fragments,
        padding_frames=counts.padding_frames,
        padding_bytes=counts.padding_bytes,
        filler_frames=counts.filler_frames,
        filler_bytes=counts.filler_bytes,
        min_bytes=counts.shortest_bytes,
        max_bytes=counts.longest_bytes,
        lengths=tuple(LengthBucket(*row) for row in counts.lengths),
        gap_count=counts.gap_count,
        gap_bytes=counts.gap_bytes,
        gaps=tuple(Gap(*row) for row in counts.gaps),
        bins=tuple(Bin(*row) for row in counts.bins),
        duration_s=_duration_s(recording, now_ms) if whole else None,
    )


def picture_statistics(
    recording: Recording,
    from_position: int | None = None,
    to_position: int | None = None,
    *,
    bins: int,
    progress: Callable[[int], object] | None = None,
) -> RecordingStatistics:
    """As `recording_statistics`, for a picture: with fewer bins where these would hold too few
    messages for the picture to show more than chance."""
    found = recording_statistics(
        recording, from_position, to_position, bins=bins, progress=progress
    )
    fewer = max(found.messages // _MESSAGES_PER_BIN, min(found.messages, _FEW_BINS))
    if fewer >= bins or not found.messages:
        return found
    # Where there are few messages a second pass takes no time.
    return recording_statistics(recording, from_position, to_position, bins=fewer)


def position_edges(from_position: int, to_position: int, bins: int) -> list[int]:
    """Divide a range into equal parts that begin where frames can; [] when there are none."""
    length = to_position - from_position
    if not bins or not length:
        return []
    bins = max(min(bins, length // _FRAME_ALIGNMENT), 1)
    steps = (length * i // bins // _FRAME_ALIGNMENT for i in range(1, bins))
    return [from_position, *(from_position + s * _FRAME_ALIGNMENT for s in steps), to_position]


def _duration_s(recording: Recording, now_ms: int) -> float | None:
    """How long a whole recording took, as far as its descriptor tells.

    It does not where the recording's beginning may have been purged: the start timestamp is that
    of a beginning that is no longer there. Purging moves the start to the beginning of a segment,
    thus of a term; position 0 is where streams begin.
    """
    descriptor = recording.descriptor
    start = descriptor.start_position
    if start > 0 and start % descriptor.term_buffer_length == 0:
        return None
    if descriptor.is_active:
        stop_ms = now_ms if recording.is_being_written else -1
    else:
        stop_ms = descriptor.stop_timestamp_ms
    duration_ms = stop_ms - descriptor.start_timestamp_ms
    return duration_ms / 1000 if descriptor.start_timestamp_ms >= 0 and duration_ms > 0 else None


def _edges(shortest: int, longest: int, divisions: int) -> Iterator[int]:
    """Edges of buckets, from the one at or below `shortest` to the one above `longest`."""
    edge, following = 0, 1
    while following <= shortest:
        edge, following = following, _next_edge(following, divisions)
    yield edge
    while following <= longest:
        yield following
        following = _next_edge(following, divisions)
    yield following


def _next_edge(edge: int, divisions: int) -> int:
    return edge + max((1 << (edge.bit_length() - 1)) // divisions, 1)
