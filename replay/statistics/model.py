"""What a recording is like: lengths and numbers of its messages, padding and gaps.

`aerotape.replay.statistics.compute` finds it out. A message counts where its first frame begins.
Lengths are those of payloads, fragments put together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from aerotape.errors import ConfigurationError

GapKind = Literal["missing", "unwritten", "damaged"]
"""What stands where frames should: no file or not enough of one; zeros; something else."""

Over = Literal["position", "time"]
"""What bins divide into equal parts."""

_NS_PER_S = 1_000_000_000


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
    """What begins in one part of the range. Lengths are 0 when there is no message.

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
        from_time_ns: about when the first position was recorded, nanoseconds since 1970; of bins
            over time only, else None.
        to_time_ns: the same of `to_position`.
    """

    from_position: int
    to_position: int
    messages: int = 0
    payload_bytes: int = 0
    padding_bytes: int = 0
    gap_bytes: int = 0
    min_bytes: int = 0
    median_bytes: int = 0
    p99_bytes: int = 0
    max_bytes: int = 0
    from_time_ns: int | None = None
    to_time_ns: int | None = None

    @property
    def length_bytes(self) -> int:
        """Bytes of the recording that it covers."""
        return self.to_position - self.from_position

    @property
    def duration_s(self) -> float | None:
        """How long it took, seconds; None of bins over position."""
        if self.from_time_ns is None or self.to_time_ns is None:
            return None
        return (self.to_time_ns - self.from_time_ns) / _NS_PER_S

    @property
    def messages_per_s(self) -> float | None:
        """Rate of messages; None of bins over position."""
        return self.messages / self.duration_s if self.duration_s else None

    @property
    def bytes_per_s(self) -> float | None:
        """Rate of recorded bytes, with headers and padding; None of bins over position."""
        return self.length_bytes / self.duration_s if self.duration_s else None


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
        over: of what each bin has as much: positions or time.
        bins: the range in these parts.
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
    over: Over
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
            raise ConfigurationError(f"share must be between 0 and 1, got {share}", "share")
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
                f"divisions must be a power of two up to 128, got {divisions}", "divisions"
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
        quantiles = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
        return {
            **asdict(self),
            "length_bytes": self.length_bytes,
            "mean_bytes": self.mean_bytes,
            **{f"{name}_bytes": self.quantile_bytes(share) for name, share in quantiles.items()},
            "messages_per_s": self.messages_per_s,
            "bytes_per_s": self.bytes_per_s,
        }


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
