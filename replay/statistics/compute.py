"""Computing the statistics of a recording.

One native pass over the segment files counts everything (`native/format/src/scan/statistics.rs`),
at the speed at which they can be read and in memory that does not grow with them. Unlike a reader
it does not end at damage: that is a gap, and the pass continues at the next frame found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from aerotape import _native
from aerotape.clock import epoch_ms
from aerotape.errors import ConfigurationError
from aerotape.frame_header import FRAME_ALIGNMENT
from aerotape.replay.statistics.model import Bin, Gap, LengthBucket, Over, RecordingStatistics
from aerotape.replay.statistics.segment_copies import SegmentCopies
from aerotape.replay.statistics.time_axis import time_scale
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    from aerotape.catalog.directory import StoredRecording
    from aerotape.catalog.segment.scan_range import ScanRange

PICTURE_BINS: Final = 200
MAX_BINS: Final = 100_000
_MESSAGES_PER_BIN: Final = 20
_FEW_BINS: Final = 10
# Interval of interrupts and progress reports of a pass.
_SLICE_BYTES: Final = 64 * 1024 * 1024
_NS_PER_S: Final = 1_000_000_000


def recording_statistics(
    recording: StoredRecording,
    chosen: ScanRange,
    over: Over,
    bins: int,
    progress: Callable[[int], object] | None = None,
) -> RecordingStatistics:
    """Compute the statistics of a range of a recording.

    Arguments and errors are those of `aerotape.replay.offline.directory.Recording.stats`.
    """
    if not 0 <= bins <= MAX_BINS:
        raise ConfigurationError(f"bins must be between 0 and {MAX_BINS}, got {bins}", "bins")
    now_ms = epoch_ms()
    parts = _Parts(recording, chosen, over, bins)
    counts = _count(recording, chosen, parts.edges, progress or (lambda _: None))
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
        over=over,
        bins=parts.bins([Bin(*row) for row in counts.bins]),
        duration_s=_duration_s(recording, chosen, now_ms),
    )


def _count(
    recording: StoredRecording,
    chosen: ScanRange,
    edges: list[int],
    progress: Callable[[int], object],
) -> _native.RecordingCounts:
    """Run the pass; over local copies if the recording is in remote storage."""
    if not isinstance(recording.archive_dir, UrlPath):
        native_pass = _pass(chosen, edges)
        while not native_pass.advance(_SLICE_BYTES):
            progress(native_pass.position - chosen.from_position)
        return native_pass.counts()
    # A pass reads at most so far ahead of a slice, unless it has to search for the next frame.
    ahead = _SLICE_BYTES + chosen.segment_length
    while True:
        with SegmentCopies(recording) as copies:
            native_pass = _pass(replace(chosen, archive_dir=str(copies.folder)), edges)
            is_done = False
            while not is_done:
                held_to = native_pass.position + ahead
                copies.hold(native_pass.position, held_to)
                is_done = native_pass.advance(_SLICE_BYTES)
                if native_pass.position > held_to:
                    break
                progress(native_pass.position - chosen.from_position)
            else:
                return native_pass.counts()
        # It took for missing what had not been fetched yet.
        ahead *= 8


def _pass(chosen: ScanRange, edges: list[int]) -> _native.RecordingPass:
    try:
        return _native.RecordingPass(chosen, edges)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error


def picture_statistics(
    recording: StoredRecording,
    chosen: ScanRange,
    over: Over | None = None,
    bins: int | None = None,
    most_bins: int = PICTURE_BINS,
    progress: Callable[[int], object] | None = None,
) -> RecordingStatistics:
    """As `recording_statistics`, for a picture.

    When `over` is None: time if the recording has a time index, else position. When `bins` is None:
    `most_bins`, or fewer if the time index has fewer points or there are few messages.
    """
    if bins is not None and bins < 1:
        raise ConfigurationError(f"bins must be at least 1 for a picture, got {bins}", "bins")
    scale = time_scale(recording, chosen.from_position, chosen.to_position)
    if over is None:
        over = "time" if scale is not None and scale.duration_ns else "position"
    if over == "time" and scale is not None:
        # More bins than points of the time index show nothing new.
        most_bins = min(most_bins, max(len(scale.times_ns) - 1, _FEW_BINS))

    if bins is not None:
        return recording_statistics(recording, chosen, over, bins, progress)
    found = recording_statistics(recording, chosen, over, most_bins, progress)
    fewer = max(found.messages // _MESSAGES_PER_BIN, min(found.messages, _FEW_BINS))
    if not 0 < fewer < most_bins:
        return found
    # With few messages a second pass is fast.
    return recording_statistics(recording, chosen, over, fewer)


class _Parts:
    """The division of a range into bins; `edges` are the positions for the native pass."""

    def __init__(
        self, recording: StoredRecording, chosen: ScanRange, over: Over, bins: int
    ) -> None:
        begin, end = chosen.from_position, chosen.to_position
        if over not in ("position", "time"):
            raise ConfigurationError(f"over must be position or time, got {over!r}", "over")
        self._times_ns: list[int] = []
        if over == "position" or begin == end or not bins:
            self.edges = self._positions = position_edges(begin, end, bins)
            return
        scale = time_scale(recording, begin, end)
        if scale is None:
            why = recording.time_index.problem or "it has no time index"
            raise ConfigurationError(
                f"times of recording {recording.recording_id} are unknown ({why}): use over "
                "position",
                "over",
            )
        self._times_ns, self._positions = scale.edges(bins)
        # Parts in which nothing was recorded are empty ranges of positions: the pass skips them.
        self.edges = list(dict.fromkeys(self._positions))

    def bins(self, counted: list[Bin]) -> tuple[Bin, ...]:
        """Add times to the counted bins, and the empty bins between them."""
        if not self._times_ns:
            return tuple(counted)
        by_start = {part.from_position: part for part in counted}
        parts = zip(pairwise(self._positions), pairwise(self._times_ns), strict=True)
        return tuple(
            replace(
                by_start[begin] if begin < end else Bin(begin, end),
                from_time_ns=from_time_ns,
                to_time_ns=to_time_ns,
            )
            for (begin, end), (from_time_ns, to_time_ns) in parts
        )


def position_edges(from_position: int, to_position: int, bins: int) -> list[int]:
    """Divide a range into equal parts that begin at frame boundaries; [] without parts."""
    length = to_position - from_position
    if not bins or not length:
        return []
    bins = max(min(bins, length // FRAME_ALIGNMENT), 1)
    steps = (length * i // bins // FRAME_ALIGNMENT for i in range(1, bins))
    return [from_position, *(from_position + s * FRAME_ALIGNMENT for s in steps), to_position]


def _duration_s(recording: StoredRecording, chosen: ScanRange, now_ms: int) -> float | None:
    """Return the duration of recording a range, from descriptor or time index; None if unknown.

    The descriptor's start timestamp is of no use if the beginning of the recording may have been
    purged. Purging moves the start to the beginning of a segment, which is that of a term; a stream
    begins at position 0.
    """
    descriptor = recording.descriptor
    start = descriptor.start_position
    is_whole = (chosen.from_position, chosen.to_position) == (start, chosen.limit_position)
    if is_whole and (start == 0 or start % descriptor.term_buffer_length):
        stop_ms = descriptor.stop_timestamp_ms
        if descriptor.is_active and recording.is_being_written:
            stop_ms = now_ms
        duration_ms = stop_ms - descriptor.start_timestamp_ms
        if descriptor.start_timestamp_ms >= 0 and stop_ms >= 0 and duration_ms > 0:
            return duration_ms / 1000
    scale = time_scale(recording, chosen.from_position, chosen.to_position)
    return scale.duration_ns / _NS_PER_S if scale is not None and scale.duration_ns else None
