"""The stop position of a recording that has none: the decision, without changing anything.

A recorder writes whole frames, one after the other, into files of zeros. A crash therefore leaves
whole frames, perhaps an incomplete one, and zeros. The walk over the last segment stops at the
first frame whose header does not fit its place. Whether the last frame before that is whole:

* With a checksum, the checksum decides. Failing frames at the very end are not whole; failing
  frames with good ones after them are damage of another kind and stay in the recording. A frame
  that holds its session id was recorded without checksums and is judged as in the next case.
* Without, a write that a crash interrupted ends on a page boundary. A last frame that does not
  cross one is whole. One that does is whole only when each 512-byte sector (the unit in which
  storage writes) after the boundary holds data; otherwise it may be torn, and is left out.
  The Java archive checks whole pages instead and refuses to start in the doubtful case.
  After a power cut any page may be missing. Segment files are sparse, so a missing page is a hole:
  a data frame in a hole was never wholly written, and counts as one whose checksum fails
  (`find_recording_end` looks for holes on request; copies may have others).

If the last segment holds no frame and the previous one is not full, the recording ends in the
previous one. The same holds if segments are missing between the two and the last one holds data
that is not a frame: such a file may have been named by mistake.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aerotape.catalog.descriptor import (
    RecordingDescriptor,
)
from aerotape.catalog.segment.data_extents import find_data_end
from aerotape.catalog.segment_files import SegmentFile, own_segments, segment_file_size
from aerotape.errors import StorageError, StorageErrors
from aerotape.frame_header import (
    HEADER_LENGTH,
    TYPE_PADDING,
    ChecksumName,
    FrameHeader,
    align_frame,
)

if TYPE_CHECKING:
    from aerotape._native import SegmentWalk

PAGE_LENGTH = 4096
SECTOR_LENGTH = 512


@dataclass(frozen=True, slots=True)
class RecordingEnd:
    """The end of a recording, and the data after it.

    Attributes:
        position: position after the last frame that is provably whole.
        segment: segment file that holds the end, None when the recording has no files.
        offset: offset of the end in that file, bytes.
        data_end: offset after the last byte of the file that is not zero; more than `offset`
            when there is data after the end.
        torn: why the recording ends here rather than later, when it was cut; else empty.
        beyond: segment files after the end, which the recording does not reach.
        unverified: no frame of the segment carries the checksum that was asked for.
        damaged_positions: positions of frames before the end whose checksum fails, or which are
            partly in a hole of the file.
    """

    position: int
    segment: SegmentFile | None
    offset: int = 0
    data_end: int = 0
    torn: str = ""
    beyond: tuple[SegmentFile, ...] = ()
    unverified: bool = False
    damaged_positions: tuple[int, ...] = field(default=())


def walk(
    descriptor: RecordingDescriptor,
    segment: SegmentFile,
    checksum: ChecksumName = "none",
    limit: int | None = None,
    from_position: int = 0,
) -> SegmentWalk:
    """Walk the frames of one of a recording's segments, up to the offset `limit` if given.

    Where `from_position` lies in or after the segment the walk begins there or ends at once.

    Raises:
        StorageError: the file cannot be read, or is not a regular file.
    """
    from aerotape import _native
    from aerotape.catalog.segment.checks import segment_task

    # To open a pipe by that name would be to wait for its writer.
    segment_file_size(segment.path)
    length = descriptor.segment_file_length if limit is None else limit
    task = segment_task(descriptor, segment, segment.base_position + length)
    start_offset = max(task.start_offset, from_position - segment.base_position)
    return _native.walk_segment(replace(task, start_offset=start_offset), checksum=checksum)


def find_recording_end(
    descriptor: RecordingDescriptor,
    segments: Sequence[SegmentFile],
    checksum: ChecksumName = "none",
    write_unit_bytes: int = PAGE_LENGTH,
    from_position: int = 0,
    *,
    holes: bool = False,
) -> RecordingEnd:
    """Find where a recording ends that has no stop position.

    Args:
        descriptor: the recording.
        segments: its segment files, ascending; those that cannot be its own are passed over.
        checksum: checksum that the recorder used.
        write_unit_bytes: a write that was cut short ends on a multiple of this.
        from_position: begin of a frame, or the end of the last one; frames at lower positions are
            not read and count as recorded.
        holes: frames in a hole of the file were not recorded. Set it for files that a recorder
            wrote and that were not copied. It has no effect where a checksum decides.

    Raises:
        StorageError: a file cannot be read.
    """
    own = own_segments(descriptor, segments)
    if not own:
        return RecordingEnd(descriptor.start_position, None)
    last = own[-1]
    found = walk(descriptor, last, checksum, from_position=from_position)
    index = len(own) - 1
    while found.frames == 0 and index > 0:
        before = own[index - 1]
        follows = before.base_position == own[index].base_position - descriptor.segment_file_length
        # Files between may be missing if the last one is blank, but not if it holds other data.
        if not follows and find_data_end(own[index].path, found.end_offset) == found.end_offset:
            break
        found_before = walk(descriptor, before, checksum, from_position=from_position)
        if follows and found_before.end_offset >= descriptor.segment_file_length:
            break
        index, found = index - 1, found_before
    return _judge(
        descriptor, own[index], found, checksum, write_unit_bytes, tuple(own[index + 1 :]), holes
    )


def _judge(
    descriptor: RecordingDescriptor,
    segment: SegmentFile,
    found: SegmentWalk,
    checksum: ChecksumName,
    write_unit_bytes: int,
    beyond: tuple[SegmentFile, ...],
    holes: bool,
) -> RecordingEnd:
    offset, torn, unverified = found.end_offset, found.problem or "", False
    damaged: tuple[int, ...] = ()
    if checksum != "none" and found.checksum_passes == 0 and found.checksum_failures > 1:
        # It was recorded without this checksum: failing sums say nothing about its frames.
        unverified = True
    elif found.failed_tail_offset >= 0:
        offset = found.failed_tail_offset
        torn = f"checksum {checksum} fails at the end"
    if not unverified:
        damaged = tuple(
            segment.base_position + failed for failed in found.failed_offsets if failed < offset
        )
    by_headers = checksum == "none" or unverified or found.last_frame_is_unchecked
    if holes and by_headers:
        missing = frames_in_holes(descriptor, segment, found.end_offset)
        while missing and missing[-1][1] == offset:
            offset = missing.pop()[0]
            torn = "there are holes in its last frames"
        in_holes = {segment.base_position + begin for begin, _ in missing}
        damaged = tuple(sorted(in_holes.union(damaged)))
    if (
        by_headers
        and offset == found.end_offset
        and found.last_frame_offset >= 0
        and not found.last_frame_is_padding
        and _may_be_torn(
            segment, found.last_frame_offset, found.last_frame_length, write_unit_bytes
        )
    ):
        offset = found.last_frame_offset
        torn = (
            f"the last frame, of {found.last_frame_length} bytes, crosses a boundary of "
            f"{write_unit_bytes} bytes after which it is partly empty: it may be torn"
        )
    data_end = offset
    if offset < descriptor.segment_file_length:
        data_end = find_data_end(segment.path, offset)
        if data_end > offset and not torn:
            torn = "there are bytes after an unwritten frame"
    if beyond and not torn:
        torn = "segment files follow one that is not full"
    return RecordingEnd(
        position=max(segment.base_position + offset, descriptor.start_position),
        segment=segment,
        offset=offset,
        data_end=data_end,
        torn=torn,
        beyond=beyond,
        unverified=unverified,
        damaged_positions=damaged,
    )


def frames_in_holes(
    descriptor: RecordingDescriptor, segment: SegmentFile, end_offset: int
) -> list[tuple[int, int]]:
    """Return begin and end of each data frame before `end_offset` that is partly in a hole.

    Of a padding frame only the header is written.

    Raises:
        StorageError: the file cannot be read.
    """
    found: list[tuple[int, int]] = []
    known = offset = max(descriptor.start_position - segment.base_position, 0)
    try:
        with segment.path.open("rb", buffering=0) as file:
            while (hole := os.lseek(file.fileno(), offset, os.SEEK_HOLE)) < end_offset:
                before = walk(
                    descriptor, segment, limit=hole, from_position=segment.base_position + known
                )
                known = max(before.end_offset, known)
                header = FrameHeader.decode(os.pread(file.fileno(), HEADER_LENGTH, known))
                aligned = max(align_frame(header.frame_length), HEADER_LENGTH)
                if header.frame_type != TYPE_PADDING:
                    found.append((known, known + aligned))
                known = offset = known + aligned
    except OSError as error:
        if error.errno != errno.ENXIO:  # nothing is there from `offset` on
            raise StorageError(
                f"cannot read {segment.path}: {error.strerror}", segment.path
            ) from error
    return found


def _may_be_torn(segment: SegmentFile, offset: int, length: int, write_unit_bytes: int) -> bool:
    boundary = (offset // write_unit_bytes + 1) * write_unit_bytes
    end = offset + length
    if boundary >= end:
        return False
    path = segment.path
    with StorageErrors(f"cannot read {path}", path), path.open("rb") as file:
        written = os.pread(file.fileno(), end - boundary, boundary)
    return any(
        not any(written[begin : begin + SECTOR_LENGTH])
        for begin in range(0, end - boundary, SECTOR_LENGTH)
    )
