"""Reads the recordings of an archive directory for REST and the pages, without the archive."""

from __future__ import annotations

import base64
import dataclasses
import json
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, Literal

from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.catalog.maintenance.dump import read_frames
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.catalog.time_index.file import DamagedTimeIndexError
from aerotape.catalog.time_index.lookup import RecordedTimes, StoredPoints
from aerotape.catalog.time_index.points import TimePoint
from aerotape.channel_uri import alias_of
from aerotape.clock import epoch_ms
from aerotape.codecs.payload_values import timestamp_text
from aerotape.codecs.payloads import PayloadSchema
from aerotape.errors import ConfigurationError, SegmentError, StorageError
from aerotape.formatting import utf8_text
from aerotape.frame_header import BEGIN_FLAG, END_FLAG, TYPE_DATA, is_frame_at
from aerotape.message import Message
from aerotape.protocol import NULL_POSITION
from aerotape.replay.offline.directory import Recording, directory_at
from aerotape.replay.offline.reader import bounded_range, counted, messages_of
from aerotape.replay.offline.selection import Selection
from aerotape.tools._cli.output import as_row
from aerotape.tools._web.observed import ObservedArchive, Snapshot
from aerotape.tools._web.rest.answers import PART
from aerotape.tools._web.suspects import Notes, brief
from aerotape.tools.messages._printing import decoded, message_row

MAX_PAYLOAD: Final = 1 << 16
"""The most bytes of a payload in an answer."""
_MAX_FIELDS: Final = 6 * MAX_PAYLOAD
"""The most bytes of the fields of a payload, in Arrow columns with their names.

As JSON they are at most some times as long, so that a row fits into an answer."""
MAX_BINS: Final = 2_000
_MAX_BYTES: Final = 8 << 20
_WINDOW: Final = 256 << 10
_BATCH_ROWS: Final = 1_000
_MIN_BIN_NS: Final = 1_000_000_000
_MAX_SCANNED: Final = 64 << 20
_MAX_FOUND: Final = 1 << 20
_SEARCH_S: Final = 1.0
_NS_PER_US: Final = 1_000
_DIGITS_OF_US: Final = 6
Sort = Literal["recording_id", "start_timestamp_ms", "recorded_bytes"]
Format = Literal["text", "hex", "base64"]
Removal = Literal["delete", "truncate", "purge"]
_ENCODINGS: Final[dict[Format, Callable[[bytes], str]]] = {
    "text": utf8_text,
    "hex": bytes.hex,
    "base64": lambda payload: base64.b64encode(payload).decode(),
}


def encoded(payload: bytes, format: Format) -> str:
    """Return a payload in a format."""
    return _ENCODINGS[format](payload)


def _shown(payload: bytes, format: Format, limit: int) -> tuple[str, bool]:
    """Return as many bytes of a payload as a limit, and whether these are all.

    As text it is as many characters: a byte that is not UTF-8 has four.
    """
    begin = payload[:limit]
    if format != "text":
        return encoded(begin, format), len(payload) <= limit
    text = utf8_text(begin, limit + 1)
    return text[:limit], len(payload) <= limit and len(text) <= limit


def fields_text(fields: Any) -> str:
    """Return the fields of a payload as JSON, in the order of its schema."""
    return json.dumps(fields, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search.

    Attributes:
        messages: the rows of messages, as of `Reading.messages`.
        from_position: where it began, bytes.
        to_position: up to where it has searched: where the next one goes on.
        end_position: up to where there is something to search.
    """

    messages: list[dict[str, Any]]
    from_position: int
    to_position: int
    end_position: int


@dataclass(frozen=True, slots=True)
class Damage:
    """What is known of the damage of a recording.

    Attributes:
        notes: why it is, or was, marked as suspect.
        verified_ms: when the last verification that checked it ended, epoch milliseconds; None: it
            did not.
        found: what that has found.
    """

    notes: Notes
    verified_ms: int | None
    found: list[SuspectNote]


class Reading:
    """Reads recordings from the files of an archive."""

    def __init__(
        self, observed: ObservedArchive, schemas: Mapping[str, PayloadSchema] = MappingProxyType({})
    ) -> None:
        """Create it; nothing is read.

        Args:
            observed: the archive.
            schemas: those that payloads can be decoded with, by name.
        """
        self._observed = observed
        self.schemas = schemas

    def opened(self, recording_id: int) -> Recording:
        """Open a recording (UnknownRecordingError, CatalogError)."""
        return directory_at(self._observed.directory).recording(recording_id)

    def recording(self, recording_id: int) -> dict[str, Any]:
        """Return a recording's row (UnknownRecordingError, CatalogError)."""
        snapshot = self._observed.snapshot()
        return row_of(snapshot, snapshot.positions(), self._descriptor(snapshot, recording_id))

    def _descriptor(self, snapshot: Snapshot, recording_id: int) -> RecordingDescriptor:
        for each in snapshot.recordings:
            if each.recording_id == recording_id:
                return each
        return self.opened(recording_id).descriptor  # just begun, or says why not

    def damage(self, recording_id: int) -> Damage:
        """Return what is known of the damage of a recording.

        Raises:
            UnknownRecordingError: there is nothing, and no such recording.
        """
        snapshot = self._observed.snapshot()
        verification = snapshot.verification
        marked = self._observed.notes(recording_id)
        if verification is not None and recording_id not in verification.checked:
            verification = None
        found = verification.failed.get(recording_id, []) if verification else []
        if not marked.total and not found:
            self._descriptor(snapshot, recording_id)
        verified_ms = None if verification is None else verification.timestamp_ms
        return Damage(marked, verified_ms, brief(found))

    def segments(self, found: Recording, position: int | None = None) -> Iterator[dict[str, Any]]:
        """Iterate over segment files from a position on (CatalogError, StorageError)."""
        length = found.descriptor.segment_file_length
        for each in found.segment_files():
            if position is not None and each.base_position + length <= position:
                continue
            try:
                size = each.path.stat().st_size
            except FileNotFoundError:  # it was purged since
                continue
            except OSError as error:
                raise StorageError(f"{each.path.name}: {error.strerror}", each.path) from None
            yield {"name": each.path.name, "base_position": each.base_position, "length": size}

    def removal(self, found: Recording, action: Removal, position: int | None) -> dict[str, int]:
        """The bytes of a recording and the number of segment files that an action would delete.

        Args:
            found: the recording.
            action: "delete" all, "truncate" what begins at the position or later, or "purge" the
                segment files before it.
            position: bytes; None: of "delete", which has none.

        Raises:
            ConfigurationError: the position is missing or not in the recording, or a purge would
                begin within a segment file.
        """
        of = found.descriptor
        start, end = found.start_position, found.recorded_position
        bases = [each.base_position for each in found.segment_files()]
        if action == "delete":
            return {"bytes": end - start, "segments": len(bases)}
        if position is None or not start <= position <= end:
            raise ConfigurationError(
                f"position={position}: expected one of the recording's, {start} to {end}",
                "position",
            )
        if action == "truncate":
            return {"bytes": end - position, "segments": sum(base >= position for base in bases)}
        if position not in (start, base := segment_base(of, position)):
            raise ConfigurationError(
                f"position={position}: the segment file that has it begins at {base}, and the next "
                f"one at {base + of.segment_file_length}",
                "position",
            )
        return {"bytes": position - start, "segments": sum(base < position for base in bases)}

    def messages(
        self,
        found: Recording,
        selection: Selection,
        limit: int,
        format: Format,
        schema: str | None = None,
        *,
        max_payload: int = MAX_PAYLOAD,
    ) -> Generator[dict[str, Any], None, None]:
        """Iterate over messages; at most 8 MiB are read, or one message.

        `recorded_time` is that of the last point of the time index at or before a message, null
        without one.
        With a schema, `fields` are those of the payload, null if it is of another schema, or if
        `fields_problem` says why there are none, such as that it is too long; else that is "".

        Args:
            found: the recording.
            selection: of its messages: positions, times, counts and the checksum.
            limit: the most messages.
            format: of payloads.
            schema: the name of a schema.
            max_payload: the most bytes of a payload that are shown.

        Raises:
            ConfigurationError: there is no such schema.
            SegmentError: a file is missing or damaged; messages before that are returned first.
        """
        self._check_schema(schema)
        part = bounded_range(found, selection)
        begin, end = part.positions
        if selection.last is None:
            end = min(begin + _MAX_BYTES, end)
        else:
            newest = counted(found, part, dataclasses.replace(selection, last=1))
            begin = max(begin, min(newest.from_position, end - _MAX_BYTES))
        part = counted(found, part.part(begin, end), selection)
        scan = part.scan(
            checksum=selection.checksum, batch_rows=_BATCH_ROWS, batch_bytes=_WINDOW
        )
        with RecordedTimes(found) as times:

            def row(message: Message) -> dict[str, Any]:
                fields = self._fields(schema, message.payload, max_payload)
                return _row(message, times, format, fields, max_payload)

            # A message, which may have megabytes, is released before the next one is read.
            yield from map(row, islice(messages_of(part, scan), limit))

    def search(
        self,
        found: Recording,
        selection: Selection,
        text: str,
        limit: int,
        format: Format,
        schema: str | None = None,
        *,
        max_payload: int = MAX_PAYLOAD,
    ) -> Search:
        """Search messages for a second or two, or 64 MiB.

        A message is found if its payload has the bytes of the text, or with a schema if the JSON of
        its fields has the text, with a space after each colon and comma, as pages show it.

        Args:
            found: the recording.
            selection: of its messages: positions, times and the checksum.
            text: what is searched; upper and lower case differ.
            limit: the most messages; fewer if an answer would have more than a MiB.
            format: of payloads.
            schema: the name of a schema.
            max_payload: the most bytes of a payload that are shown, and whose fields are searched.

        Raises:
            ConfigurationError: there is no such schema.
            SegmentError: the file of the first message is missing or damaged.
        """
        self._check_schema(schema)
        begin, end = bounded_range(found, selection).positions
        wanted = text.encode()
        deadline_s = time.monotonic() + _SEARCH_S
        rows: list[dict[str, Any]] = []
        reached, length = begin, 0
        times = RecordedTimes(found)
        try:
            for at in range(begin, min(end, begin + _MAX_SCANNED), _WINDOW):
                if at > begin and time.monotonic() >= deadline_s:
                    break
                for each in found.messages(at, min(at + _WINDOW, end), selection.checksum):
                    fields = self._fields(schema, each.payload, max_payload)
                    decoded = fields.get("fields")
                    if wanted in each.payload or (decoded and text in fields_text(decoded)):
                        rows.append(_row(each, times, format, fields, max_payload))
                        length += len(json.dumps(rows[-1]))
                    reached = each.end_position
                    del each  # it may have megabytes, and so may the next one
                    if len(rows) == limit or length >= _MAX_FOUND:
                        return Search(rows, begin, reached, end)
                reached = max(reached, min(at + _WINDOW, end))
        except SegmentError:
            if reached == begin:
                raise
        finally:
            times.close()
        return Search(rows, begin, min(reached, end), end)

    def _check_schema(self, schema: str | None) -> None:
        if schema is not None and schema not in self.schemas:
            known = ", ".join(self.schemas) or "none: start the service with --schema"
            raise ConfigurationError(f"schema={schema!r}: unknown; there is {known}", "schema")

    def _fields(self, schema: str | None, payload: bytes, max_payload: int) -> dict[str, Any]:
        """Return what the row of a message has because of a schema; nothing without one."""
        if schema is None:
            return {}
        fields, problem = None, ""
        try:
            if len(payload) > max_payload:
                raise ValueError(f"its payload has {len(payload)} bytes, more than {max_payload}")
            fields = decoded(self.schemas[schema], payload, max_bytes=_MAX_FIELDS)
        except ValueError as error:
            problem = str(error)
        return {
            "fields": None if fields is None else json.loads(fields),
            "fields_problem": problem,
        }

    def payload(self, found: Recording, position: int) -> tuple[int, Iterator[bytes]]:
        """Return the length of the payload of a message, and its parts, which are read one by one.

        Args:
            found: the recording.
            position: of the message, bytes.

        Raises:
            ConfigurationError: no message begins there, or its first frame is damaged.
            SegmentError: a later frame is damaged, or the message is not complete.
        """
        if not (found.start_position <= position < found.recorded_position) or not _begins(
            found, position
        ):
            raise ConfigurationError(f"position={position}: no message begins there", "position")
        length = sum(map(len, _payload_parts(found, position)))
        return length, _payload_parts(found, position)

    def statistics(self, found: Recording, position: int | None, bins: int) -> dict[str, Any]:
        """Return numbers and lengths of messages and gaps, of at most 64 MiB.

        Args:
            found: the recording.
            position: where the range begins, bytes; None: so that it ends where the recording does.
            bins: parts of the range.

        Raises:
            CatalogError: its descriptor is damaged.
            StorageError: a file cannot be read.
        """
        begin = max(found.recorded_position - _MAX_SCANNED, found.start_position)
        if position is not None:
            begin = position
        end = min(begin + _MAX_SCANNED, max(found.recorded_position, begin))
        statistics = found.stats(begin, end, bins=bins)
        histogram = [dataclasses.asdict(each) for each in statistics.histogram(2)]
        return {**statistics.to_dict(), "histogram": histogram}

    def rates(
        self, found: Recording, bins: int, from_ns: int | None, to_ns: int | None
    ) -> list[dict[str, Any]]:
        """Return bytes a second in equal parts of a time; empty without a time index.

        Between two points of the time index the rate is taken to be constant. So parts that are
        not much longer than its interval would show the interval, not the stream.

        Args:
            found: the recording.
            bins: the number of parts; fewer, but one, if they were shorter than a second.
            from_ns: the begin, epoch nanoseconds; None: that of the recording.
            to_ns: the end; None: that of the recording.
        """
        try:
            with StoredPoints(found) as points:
                return _rates(found, points, bins, from_ns, to_ns)
        except DamagedTimeIndexError:
            return []


def _rates(
    found: Recording, points: StoredPoints, bins: int, from_ns: int | None, to_ns: int | None
) -> list[dict[str, Any]]:
    recorded = max(found.recorded_position, found.start_position)
    count = points.after_position(recorded)  # those after the end are void
    if not count:
        return []
    begin = points[0].time_ns if from_ns is None else from_ns
    end = _end_ns(found) if to_ns is None else to_ns
    bins = max(min(bins, (end - begin) // _MIN_BIN_NS), 1)
    edges = [begin + (end - begin) * n // bins for n in range(bins + 1)]

    def position_at(time_ns: int) -> int:
        """Estimate how far the recording was at a time; at the end all was recorded."""
        after = min(points.after_time(time_ns), count)
        if after == 0:
            return found.start_position
        first = points[after - 1]
        last = points[after] if after < count else TimePoint(end, recorded)
        share = (time_ns - first.time_ns) * (last.position - first.position)
        return first.position + share // max(last.time_ns - first.time_ns, 1)

    positions = [position_at(edge) for edge in edges]
    return [
        {
            "from_ns": edges[n],
            "to_ns": edges[n + 1],
            "from_position": positions[n],
            "to_position": positions[n + 1],
            "bytes_per_s": (positions[n + 1] - positions[n]) * 1e9 / (edges[n + 1] - edges[n]),
        }
        for n in range(bins)
        if edges[n + 1] > edges[n]
    ]


def _begins(found: Recording, position: int) -> bool:
    """Whether a message begins at a position of a recording (CatalogError, StorageError)."""
    try:
        header = next(read_frames(found, position)).header
    except SegmentError as error:
        if error.position != position:
            raise
        return False  # within a frame, or damaged
    is_data = header.frame_type == TYPE_DATA and bool(header.flags & BEGIN_FLAG)
    return is_data and is_frame_at(header, found.descriptor, position)


def _payload_parts(found: Recording, position: int) -> Iterator[bytes]:
    """Iterate over the payload of the message at a position (SegmentError)."""
    part = bytearray()
    for frame in read_frames(found, position):
        part += frame.payload
        is_last = frame.header.flags & END_FLAG
        if is_last or len(part) >= PART:
            yield bytes(part)
            part.clear()
        if is_last:
            return
    raise SegmentError(f"the message at position {position} is not complete", position=position)


def _row(
    message: Message,
    times: RecordedTimes,
    format: Format,
    fields: dict[str, Any],
    max_payload: int,
) -> dict[str, Any]:
    """Return the row of a message, with what it has because of a schema."""
    shown, is_whole = _shown(message.payload, format, max_payload)
    time_ns = times.time_ns(message.position)
    recorded = None if time_ns is None else timestamp_text(time_ns // _NS_PER_US, _DIGITS_OF_US)
    row = {**as_row(message_row(message, shown)), "recorded_time": recorded, "is_whole": is_whole}
    return row | fields


def listed(
    snapshot: Snapshot,
    selection: Selection,
    *,
    sort: Sort,
    descending: bool,
    after: int | None,
    limit: int,
) -> tuple[int, list[dict[str, Any]]]:
    """The number of recordings that match, and a page of them, after a recording.

    Raises:
        ConfigurationError: the order does not follow from the id of the recording, which is gone.
    """
    positions = snapshot.positions()
    found = [
        each
        for each in snapshot.recordings
        if selection.matches(each, live=_is_live(snapshot, positions, each))
    ]

    def key(descriptor: RecordingDescriptor) -> tuple[int, int]:
        if sort == "recorded_bytes":
            return _recorded_bytes(descriptor, positions), descriptor.recording_id
        return getattr(descriptor, sort), descriptor.recording_id

    found.sort(key=key, reverse=descending)
    total = len(found)
    if after is not None:
        # It may match no more: it was stopped since, or deleted.
        last = next((key(each) for each in snapshot.recordings if each.recording_id == after), None)
        if last is None and sort != "recording_id":
            raise ConfigurationError(
                f"after={after}: there is no such recording; begin again without it", "after"
            )
        last = last or (after, after)
        found = [each for each in found if (key(each) < last if descending else key(each) > last)]
    return total, [row_of(snapshot, positions, each) for each in found[:limit]]


def _end_ns(recording: Recording) -> int:
    """Return a time after which nothing of a recording was recorded, or now."""
    stop_ms = recording.descriptor.stop_timestamp_ms
    return (epoch_ms() if stop_ms < 0 else stop_ms + 1) * 1_000_000


def row_of(
    snapshot: Snapshot, positions: dict[int, int], descriptor: RecordingDescriptor
) -> dict[str, Any]:
    """Return a recording with how far it is recorded."""
    recorded = positions.get(descriptor.recording_id, descriptor.stop_position)
    return {
        **dataclasses.asdict(descriptor),
        "alias": alias_of(descriptor.original_channel),
        "live": _is_live(snapshot, positions, descriptor),
        "suspect": descriptor.recording_id in snapshot.suspect,
        "recorded_position": recorded if recorded >= 0 else None,
        "recorded_bytes": _recorded_bytes(descriptor, positions),
    }


def _is_live(
    snapshot: Snapshot, positions: dict[int, int], descriptor: RecordingDescriptor
) -> bool:
    """Whether it is in progress, also if it began after the counters were read."""
    is_unstopped = descriptor.stop_position == NULL_POSITION
    return descriptor.recording_id in positions or (is_unstopped and snapshot.is_active)


def _recorded_bytes(descriptor: RecordingDescriptor, positions: dict[int, int]) -> int:
    recorded = positions.get(descriptor.recording_id, descriptor.stop_position)
    return max(recorded - descriptor.start_position, 0)
