"""The topics of entities and their keys, from the recordings of their logs, without the archive.

A search reads the logs from their ends to lower positions, so what has changed last is found first.
It shows what the log has, also appends that the journal refused: a journal itself is read with a
control session.
"""

from __future__ import annotations

import heapq
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

from aerotape.codecs.entity.actions import ActionHeader, ActionKind, Append
from aerotape.codecs.entity.messages import decode, read_header
from aerotape.codecs.entity.payload import events_of
from aerotape.entity.topic import check_topic, existing_recordings_of, recordings_of, topics_of
from aerotape.errors import CodecError, ConfigurationError, EntityError, SegmentError
from aerotape.replay.offline.directory import Recording, directory_at
from aerotape.tools._web.error_text import error_text
from aerotape.tools._web.observed import ObservedArchive

MAX_KEYS: Final = 1_000
_SEARCH_S: Final = 1.0
_MAX_SCANNED: Final = 64 << 20
_WINDOW: Final = 256 << 10
_MAX_MERGED: Final = 64
"""The most partitions whose records are put in the order of their times."""
_MAX_FOUND: Final = 1 << 20
"""The most bytes of rows, but of one."""
_MAX_PROBLEMS: Final = 20
_ACTIONS: Final = {
    ActionKind.APPEND: "append",
    ActionKind.CONDITIONAL_APPEND: "conditional append",
    ActionKind.DELETE: "delete",
    ActionKind.PURGE: "purge",
    ActionKind.CONDITIONAL_PURGE: "conditional purge",
    ActionKind.SNAPSHOT: "snapshot",
}
_WITH_EVENTS: Final = {ActionKind.APPEND, ActionKind.CONDITIONAL_APPEND, ActionKind.SNAPSHOT}
_PLACE: Final = re.compile(r"[0-9]{1,5}:[0-9]{1,19}(,[0-9]{1,5}:[0-9]{1,19})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that a search has found, those that changed last first.

    Attributes:
        keys: a row for each: the newest record of it that matches.
        before: the positions, by partition, down to which the search has come.
        searched_bytes: of the log.
        left_bytes: of the log, which a search from `before` on would read.
        problems: why a part of the log could not be read, a sentence each, the first 20.
    """

    keys: list[dict[str, Any]]
    before: dict[int, int]
    searched_bytes: int
    left_bytes: int
    problems: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        """Where the next search goes on, as `parse_place` reads it; "" at the begin of the log."""
        if not self.left_bytes:
            return ""
        return ",".join(f"{index}:{position}" for index, position in self.before.items())


class _Record(NamedTuple):
    """A record of a log."""

    partition: int
    position: int
    header: ActionHeader


class Topics:
    """Reads topics from the files of an archive."""

    def __init__(self, observed: ObservedArchive) -> None:
        """Create it; nothing is read.

        Args:
            observed: the archive.
        """
        self._observed = observed

    def listed(self) -> list[dict[str, Any]]:
        """Return a row for each topic; `problem` is why its recordings are not a topic's."""
        snapshot = self._observed.snapshot()
        ends = snapshot.ends()
        rows: list[dict[str, Any]] = []
        for topic in topics_of(snapshot.recordings):
            row: dict[str, Any] = {"topic": topic, "type": None, "partitions": 0}
            row |= {"recorded_bytes": 0, "problem": ""}
            try:
                found = recordings_of(topic, snapshot.recordings)
            except EntityError as error:
                row["problem"] = self._observed.error_text(error)
            else:
                partition = next(iter(found))
                row |= {"type": partition.type, "partitions": partition.count}
                row["recorded_bytes"] = sum(
                    max(ends[each.recording_id] - each.start_position, 0)
                    for each in found.values()
                )
            rows.append(row)
        return rows

    def keys(
        self,
        topic: str,
        key: str = "",
        tag: str = "",
        before: Mapping[int, int] | None = None,
        limit: int = MAX_KEYS,
    ) -> Keys:
        """Search the keys of a topic, for about a second, or 64 MiB of the log.

        Args:
            topic: the topic.
            key: a part of the keys that are found; upper and lower case differ.
            tag: one that an event of a record has; "": any or none.
            before: positions by partition: records at lower ones are searched; None: all.
            limit: the most keys; fewer if an answer would have more than a MiB.

        Raises:
            ConfigurationError: the topic has no valid name.
            EntityError: there is no such topic.
        """
        found = existing_recordings_of(check_topic(topic), self._observed.snapshot().recordings)
        directory = directory_at(self._observed.directory)
        indices = {each.recording_id: partition.index for partition, each in found.items()}
        with directory.open_catalog() as catalog:
            entries = list(catalog.entries_of(indices))
        logs = {
            indices[each.recording_id]: each for each in directory.recordings_of(entries)
        }
        starts = {index: log.start_position for index, log in logs.items()}
        places = {index: log.recorded_position for index, log in logs.items()}
        for index, position in (before or {}).items():
            if index in places:
                places[index] = min(max(position, starts[index]), places[index])
        begins = dict(places)
        problems: list[str] = []
        rows: dict[bytes, dict[str, Any]] = {}
        length = 0
        part = key.encode(errors="surrogateescape")
        deadline_s = time.monotonic() + _SEARCH_S
        newest = (
            _newest(index, log, places, problems) for index, log in sorted(logs.items())
        )
        for record in _merged(newest, len(logs)):
            index, position, header = record
            if len(rows) == limit:
                break
            if header.kind in _ACTIONS and part in header.id and header.id not in rows:
                try:
                    row = _row(logs[index], record, tag)
                except (SegmentError, CodecError) as error:
                    text = self._observed.error_text(error)
                    problems.append(f"partition {index}, position {position}: {text}")
                    row = None
                if row is not None:
                    length += len(json.dumps(row, ensure_ascii=False))
                    if rows and length > _MAX_FOUND:
                        break
                    rows[header.id] = row
            places[index] = position
            searched = sum(begins.values()) - sum(places.values())
            if searched >= _MAX_SCANNED or time.monotonic() >= deadline_s:
                break
        searched = sum(begins.values()) - sum(places.values())
        left = sum(places.values()) - sum(starts.values())
        return Keys(list(rows.values()), places, searched, left, problems[:_MAX_PROBLEMS])


def parse_place(text: str) -> dict[int, int]:
    """Parse where a search goes on: `PARTITION:POSITION`, separated by commas; "" is the end.

    Raises:
        ConfigurationError: it is not of this form.
    """
    if not text:
        return {}
    if not _PLACE.fullmatch(text):
        raise ConfigurationError(
            f"before={text[:100]!r}: expected positions as the last answer has them, such as "
            "0:4096,1:1024",
            "before",
        )
    pairs = (each.partition(":") for each in text.split(","))
    return {int(index): int(position) for index, _, position in pairs}


def _merged(logs: Iterator[Iterator[_Record]], count: int) -> Iterator[_Record]:
    """Iterate over the records of partitions, the newest first if there are not too many."""
    if count > _MAX_MERGED:
        return chain.from_iterable(logs)
    return heapq.merge(*logs, key=lambda record: -record.header.timestamp_ms)


def _newest(
    partition: int, log: Recording, places: dict[int, int], problems: list[str]
) -> Iterator[_Record]:
    """Iterate over the records of a partition by falling positions; note where it begins."""
    start, end = log.start_position, places[partition]
    while end > start:
        begin = max(start, end - _WINDOW)
        try:
            # Without the payloads: the records of each partition wait for those of the others.
            found = [
                _Record(partition, each.position, read_header(each.payload))
                for each in log.messages(begin, end)
            ]
            yield from reversed(found)
        except (SegmentError, CodecError) as error:
            problems.append(f"partition {partition}: {error_text(error, log.archive_dir)}")
            break
        end = begin
        places[partition] = min(places[partition], begin)
    places[partition] = start


def _row(log: Recording, record: _Record, tag: str) -> dict[str, Any] | None:
    """Return the row of a record; None if it does not have the tag.

    Raises:
        CodecError: it is damaged.
        SegmentError: it cannot be read.
    """
    header, origin = record.header, ""
    tags: tuple[str, ...] = ()
    if header.kind in _WITH_EVENTS:
        [message] = log.messages(record.position, record.position + 1)
        action = decode(message.payload)
        assert isinstance(action, Append)
        tags = tuple(dict.fromkeys(tag for each in events_of(action).events for tag in each.tags))
        origin = action.origin
    if tag and tag not in tags:
        return None
    return {
        "key": header.id.decode(errors="backslashreplace"),
        "partition": record.partition,
        "position": record.position,
        "timestamp_ms": header.timestamp_ms,
        "action": _ACTIONS[header.kind],
        "from_seq_nr": header.from_seq_nr,
        "to_seq_nr": header.to_seq_nr,
        "tags": list(tags),
        "origin": origin,
    }
