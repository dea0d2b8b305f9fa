"""Seeking in a recording of a raft journal: from an index or an asqn to a position.

`from_index=N` begins at the first record whose index is N or higher. `from_asqn=N` begins at the
record with the highest asqn that is N or lower, as the journal's own reader does: a record with an
ApplicationEntry has the asqn of the first application record in it, so N is in that record. Without
such a record it begins at the first. Records without an asqn (-1) are passed over by the search.

Indexes and asqns rise, so a binary search over the first records of terms finds the term to read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from aerotape.catalog.segment.term_search import last_term_before
from aerotape.codecs.raft.record import NO_ASQN, decode_partially
from aerotape.errors import CodecError, JournalError

if TYPE_CHECKING:
    from aerotape.replay.offline.reader import RecordingRange

Messages = Generator[list[tuple[int, bytes]], None, None]
"""Batches of messages, none of them empty: the position and the payload of each."""
_BATCH_ROWS: Final = 1024


@dataclass(frozen=True, slots=True)
class SeekTarget:
    """The record to begin at, by one of the two.

    Attributes:
        index: begin at the first record with this index or a higher one.
        asqn: begin at the last record with this asqn or a lower one.
    """

    index: int | None = None
    asqn: int | None = None


def seek_position(whole: RecordingRange, target: SeekTarget) -> int:
    """Return the position of the message at which to begin; the end if no record is left.

    Args:
        whole: of the recording.
        target: the record.

    Raises:
        CodecError: a message is not a record of a raft journal.
        SegmentError: a segment file is missing, too short or damaged.
    """

    def messages(begin: int, end: int) -> Messages:
        scan = whole.part(begin, end).scan(batch_rows=_BATCH_ROWS)
        while (batch := scan.next_messages()) is not None:
            if batch:
                yield [(position, payload) for position, *_, payload in batch]

    start, limit = whole.from_position, whole.limit_position
    found = find_record(target, messages, whole.recording_id, start, limit, whole.term_length)
    return limit if found is None else found


def find_record(
    target: SeekTarget,
    messages: Callable[[int, int], Messages],
    recording_id: int,
    start: int,
    limit: int,
    term_length: int,
) -> int | None:
    """Return the position of the message at which to begin; None if all records precede the target.

    Args:
        target: the record.
        messages: iterates the messages that begin between two positions, in batches.
        recording_id: of the messages, for errors.
        start: start position of the recording, bytes.
        limit: position after its last byte.
        term_length: of the stream, bytes.
    """

    def is_before(begin: int, end: int) -> bool:
        with closing(messages(begin, end)) as batches:
            for position, payload in chain.from_iterable(batches):
                index, asqn = record_key(payload, recording_id, position)
                if target.index is not None:
                    return index <= target.index
                if target.asqn is not None and asqn != NO_ASQN:
                    return asqn <= target.asqn
        return False

    begin = last_term_before(start, limit, term_length, is_before)
    last = None
    with closing(messages(begin, limit)) as batches:
        for batch in batches:
            # Most batches precede the target: of those only the first and last record are decoded.
            for position, payload in (batch[0], batch[-1]):
                index, asqn = record_key(payload, recording_id, position)
            if target.index is not None and index < target.index:
                continue
            if target.asqn is not None and NO_ASQN < asqn <= target.asqn:
                last = position
                continue
            for position, payload in batch:
                index, asqn = record_key(payload, recording_id, position)
                if target.index is not None and index >= target.index:
                    return position
                if target.asqn is not None and asqn > target.asqn and last is not None:
                    return last
                if target.asqn is not None and (last is None or asqn != NO_ASQN):
                    last = position
    return last


def record_key(payload: bytes, recording_id: int, position: int) -> tuple[int, int]:
    """Return index and asqn of the record that a message holds (CodecError)."""
    try:
        if (record := decode_partially(payload)) is not None:
            return record.index, record.asqn
        problem = "its frame is 0"
    except JournalError as error:
        problem = str(error)
    raise CodecError(
        f"recording {recording_id}, position {position}: the message is not a record of a raft "
        f"journal, {problem}; only recordings of raft journals can be searched by index or asqn"
    )
