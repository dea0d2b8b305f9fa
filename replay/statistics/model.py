"""Model of a recording's statistics: numbers and lengths of messages, padding and gaps.

`aerotape.replay.statistics.compute` computes them. A message counts at the position of its first
frame. Lengths are those of payloads, reassembled from fragments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from aerotape.errors import ConfigurationError

GapKind = Literal["missing", "unwritten", "damaged"]
"""Content at positions of missing frames: no file or a short one; zeros; other bytes."""

Over = Literal["position", "time"]
"""The dimension that bins divide into equal parts."""

_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Gap:
    """A range of positions without frames, though the recording reaches beyond it.

    Attributes:
        from_position: expected position of the first missing frame.
        to_position: position of the next frame, or the end of the range.
        kind: content at these positions.
        detail: the error that a reader of the recording would get at `from_position`.
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
        from_bytes: shortest length in the bucket.
        to_bytes: shortest length above the bucket.
        messages: number of messages.
        payload_bytes: sum of their lengths.
    """

    from_bytes: int
    to_bytes: int
    messages: int
    payload_bytes: int


@dataclass(frozen=True, slots=True)
class Bin:
    """Frames that begin in one part of the range. Lengths are 0 if there is no message.

    Attributes:
        from_position: first position.
        to_position: first position of the next bin.
        messages: messages that begin here.
        payload_bytes: sum of their lengths.
        padding_bytes: bytes of padding frames that begin here.
        gap_bytes: bytes here that belong to gaps.
        min_bytes: length of the shortest message.
        median_bytes: the length that half of the messages do not exceed.
        p99_bytes: the length that 99 % of the messages do not exceed.
        max_bytes: length of the longest message.
        from_time_ns: approximate time when the first position was recorded, nanoseconds since
            1970; None for bins over position.
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
        """Length in bytes of the recording."""
        return self.to_position - self.from_position

    @property
    def duration_s(self) -> float | None:
        """Duration in seconds; None for bins over position."""
        if self.from_time_ns is None or self.to_time_ns is None:
            return None
        return (self.to_time_ns - self.from_time_ns) / _NS_PER_S

    @property
    def messages_per_s(self) -> float | None:
        """Rate of messages; None for bins over position."""
        return self.messages / self.duration_s if self.duration_s else None

    @property
    def bytes_per_s(self) -> float | None:
        """Rate of recorded bytes, with headers and padding; None for bins over position."""
        return self.length_bytes / self.duration_s if self.duration_s else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingStatistics:
    """Statistics of a range of a recording.

    Attributes:
        recording_id: id of the recording.
        stream_id: its stream id.
        channel: its original channel.
        from_position: first position of the range, bytes.
        to_position: position after the range, bytes.
        messages: number of whole messages that begin in the range.
        payload_bytes: sum of their lengths.
        fragments: frames of these messages.
        fragmented_messages: messages of more than one frame.
        incomplete_fragments: frames of incomplete messages: the beginning was not recorded, or
            the end was not recorded or not recorded yet.
        padding_frames: frames without a message, mostly at the end of a term.
        padding_bytes: bytes of padding frames.
        filler_frames: padding frames that do not reach the end of their term: an aborted claim, a
            publisher that died while writing a message, or data lost by an unreliable stream.
        filler_bytes: bytes of filler frames.
        min_bytes: length of the shortest message, 0 without messages.
        max_bytes: length of the longest message.
        lengths: number of messages of each length, ascending, only lengths that occur. Exact up
            to 255 bytes; a bucket of longer ones is at most 1/128 of its length wide.
        gap_count: number of gaps.
        gap_bytes: sum of the lengths of gaps.
        gaps: the first 1000 gaps.
        over: the dimension of the bins, "position" or "time".
        bins: the range divided into equal parts.
        duration_s: duration of recording the range, seconds; None if unknown.
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
        """Length of the range in bytes."""
        return self.to_position - self.from_position

    @property
    def mean_bytes(self) -> float:
        """Mean length of a message, 0 without messages."""
        return self.payload_bytes / self.messages if self.messages else 0.0

    @property
    def messages_per_s(self) -> float | None:
        """Mean rate; None if the duration is unknown."""
        return self.messages / self.duration_s if self.duration_s else None

    @property
    def bytes_per_s(self) -> float | None:
        """Mean rate of recorded bytes, with headers and padding; None as `messages_per_s`."""
        return self.length_bytes / self.duration_s if self.duration_s else None

    def quantile_bytes(self, share: float) -> int:
        """Return the length that this share of the messages does not exceed, 0 without messages.

        By the nearest rank. Exact if only one length occurs in its bucket of `lengths`, else the
        mean of the bucket: the error is below 1/128.

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

        Buckets are powers of two (0, 1, 2 to 3, 4 to 7 …), each divided into `divisions` equal
        parts (a power of two up to 128) if it is wide enough.
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
        """Return all fields as plain values, with the quantiles 0.5, 0.9, 0.99 and 0.999."""
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
