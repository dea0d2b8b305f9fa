"""`append` and `save-snapshot`: append events to a journal, and save the state after one."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aerotape import _native
from aerotape.errors import ConfigurationError
from aerotape.tools._cli.group import Commands
from aerotape.tools._cli.output import emit
from aerotape.tools._entity._common import add_journal_command, age_ns, journals, last_seq_nr

if TYPE_CHECKING:
    from aerotape.codecs.entity.actions import Event
    from aerotape.entity.blocking.entities import Entities
    from aerotape.entity.log.writer import RecordPosition

_KEYS: Final = ("seq_nr", "tags", "payload_type", "payload")
# Other fields that `aerotape entity read --json` prints: they are of the record, not of the event.
_IGNORED: Final = (
    "timestamp_ms",
    "partition",
    "offset",
    "origin",
    "version",
    "metadata",
    "payload_metadata",
    "expire_after_ns",
)
_EVENT_NAMES: Final = frozenset({"seqnr", "tags", "payloadtype", "payload"})
_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class AppendedEvents:
    """Events that were appended.

    Attributes:
        topic: topic.
        key: key of the entity.
        from_seq_nr: first sequence number.
        to_seq_nr: last sequence number.
        partition: partition of the topic.
        offset: position of the record in the partition's log, bytes.
        next_position: position after the record, bytes.
    """

    topic: str
    key: str
    from_seq_nr: int
    to_seq_nr: int
    partition: int
    offset: int
    next_position: int


@dataclass(frozen=True, slots=True)
class SavedSnapshot:
    """A snapshot that was saved.

    Attributes:
        topic: topic.
        key: key of the entity.
        seq_nr: the last event that is in the snapshot.
        partition: partition of the topic.
        offset: position of the record in the partition's log, bytes.
        next_position: position after the record, bytes.
    """

    topic: str
    key: str
    seq_nr: int
    partition: int
    offset: int
    next_position: int


JSON_ROWS: Final = {"append": AppendedEvents, "save-snapshot": SavedSnapshot}


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    parser = add_journal_command(commands, "append", _append)
    parser.add_argument(
        "events",
        nargs="+",
        metavar="EVENT",
        help="an event as JSON; -: one on each line of standard input",
    )
    parser.add_argument(
        "--expire-after",
        metavar="TIME",
        type=age_ns,
        help="the journal may be purged after so long without an append: '1 day', '90 minutes'",
    )
    parser.add_argument(
        "--expect",
        metavar="N",
        type=last_seq_nr,
        help="fail unless the journal's last event is N, 0: unless there is no journal",
    )
    save = add_journal_command(commands, "save-snapshot", _save_snapshot)
    save.add_argument(
        "snapshot", metavar="SNAPSHOT", help="the snapshot as JSON; -: a line of standard input"
    )
    for each in (parser, save):
        each.add_argument("--metadata", metavar="JSON", help="metadata of the record")


def _append(args: argparse.Namespace) -> None:
    """Append events to a journal, all or none.

    An event is its payload, any JSON value, like {"price": 3}. A JSON object that has one of the
    following members is an event with more than its payload, like {"tags": ["x"], "payload": 3}:

      seq_nr        its sequence number; without one in any event: after the last event, also if
                    others append at the same time
      payload       any JSON value; a text for the types text and binary (in hexadecimal)
      payload_type  json, text, binary or none (default: json with a payload, else none)
      tags          a list of texts

    A payload of type json is appended as it is written: numbers keep their digits.

    The other fields that `aerotape entity read --json` prints are ignored, so that its lines can be
    appended to another journal.
    """
    given = list(_given(args.events))
    metadata = _metadata(args)
    numbered = ["seq_nr" in fields for fields in given]
    if any(numbered) and not all(numbered):
        raise ConfigurationError("some events have a seq_nr and others not", "EVENT")

    with journals(args, may_be_new=True) as entities:
        if all(numbered) and args.expect is None:
            events = [_event(fields, 0) for fields in given]
            place = entities.append(
                args.key, events, expire_after_ns=args.expire_after, metadata=metadata
            )
        else:
            events, place = _append_after(entities, given, metadata, args)
    emit(
        AppendedEvents(
            topic=args.topic,
            key=args.key,
            from_seq_nr=events[0].seq_nr,
            to_seq_nr=events[-1].seq_nr,
            **place._asdict(),
        ),
        args,
    )


def _append_after(
    entities: Entities, given: list[dict[str, Any]], metadata: Any, args: argparse.Namespace
) -> tuple[list[Event], RecordPosition]:
    """Append after the event --expect, or after the last one, again if others were faster."""
    from aerotape.errors import SequenceConflictError

    last = (entities.pointer(args.key) or 0) if args.expect is None else args.expect
    while True:
        events = [_event(fields, number) for number, fields in enumerate(given, last + 1)]
        try:
            return events, entities.append(
                args.key,
                events,
                expect=last,
                expire_after_ns=args.expire_after,
                metadata=metadata,
            )
        except SequenceConflictError as error:
            if args.expect is not None:
                raise
            last = error.actual


def _save_snapshot(args: argparse.Namespace) -> None:
    """Save the state of an entity after an event; `aerotape entity snapshot` prints the latest.

    A snapshot is a JSON object, like {"seq_nr": 3, "payload": {"open": 40}}, with the fields of an
    event (see `aerotape entity append --help`) without tags; seq_nr, the last event that is in the
    state, is required.
    """
    given = list(_given([args.snapshot]))
    if len(given) != 1 or "seq_nr" not in given[0] or "tags" in given[0]:
        raise ConfigurationError(
            f"{_shown(args.snapshot)}: expected one object with a seq_nr and without tags",
            "SNAPSHOT",
        )
    state = _event(given[0], 0)
    metadata = _metadata(args)
    with journals(args) as entities:
        place = entities.save_snapshot(
            args.key, state.seq_nr, state.payload, state.payload_type, metadata=metadata
        )
    emit(SavedSnapshot(args.topic, args.key, state.seq_nr, **place._asdict()), args)


def _metadata(args: argparse.Namespace) -> Any:
    return None if args.metadata is None else _parsed(args.metadata, "--metadata")


def _given(texts: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the fields of the events; the value of `payload` is JSON, as it is written."""
    number = 0
    for text in texts:
        for line in (line for line in sys.stdin if line.strip()) if text == "-" else (text,):
            number += 1
            yield _fields(line, f"event {number}")


def _fields(text: str, name: str) -> dict[str, Any]:
    with _refused(text, name, "EVENT"):
        text.encode()
        # Only an object can be more than a payload; `{}` is an event without one.
        members = _native.json_members(text) if text.lstrip().startswith("{") else {"": ""}
        if members and not _EVENT_NAMES & {_plain_name(each) for each in members}:
            _native.check_json(text.encode())
            return {"payload": text.strip()}
        return {
            key: value if key == "payload" else json.loads(value)
            for key, value in members.items()
            if key not in _IGNORED
        }


def _plain_name(member: str) -> str:
    """Return a name by which `seqNr` is a misspelt `seq_nr`, not a member of a payload."""
    return member.replace("_", "").lower()


def _parsed(text: str, name: str) -> Any:
    with _refused(text, name, name):
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()
        return value


@contextmanager
def _refused(text: str, name: str, parameter: str) -> Iterator[None]:
    """Refuse a text that is not JSON, of the parameter or the event `name`."""
    start = f"{name}: {_shown(text)}"
    try:
        yield
    except UnicodeEncodeError:
        raise ConfigurationError(f"{start} is not UTF-8", parameter) from None
    except ValueError as error:
        raise ConfigurationError(f"{start} is not JSON: {error}", parameter) from None
    except TypeError as error:
        raise ConfigurationError(f"{start}: {error}", parameter) from None
    except RecursionError:
        raise ConfigurationError(f"{start} is nested too deeply", parameter) from None


def _shown(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _event(fields: dict[str, Any], number: int) -> Event:
    from aerotape.codecs.entity.actions import Event

    unknown = sorted(set(fields) - set(_KEYS))
    if unknown:
        raise ConfigurationError(
            f"event with {unknown[0]!r}: expected {', '.join(_KEYS)}; a payload with one of these "
            'members is given as {"payload": …}',
            "EVENT",
        )
    kind = fields.get("payload_type", "json" if "payload" in fields else "none")
    given: str = fields.get("payload", "null")
    payload: bytes | None = None
    if kind == "json":
        payload = given.encode()
    elif kind in ("text", "binary"):
        if not given.startswith('"'):
            raise ConfigurationError(f"payload of type {kind}: expected a text", "EVENT")
        value = json.loads(given)
        try:
            payload = value.encode() if kind == "text" else bytes.fromhex(value)
        except ValueError as error:
            raise ConfigurationError(f"payload {value!r}: {error}", "EVENT") from None
    elif kind != "none":
        raise ConfigurationError(
            f"payload_type {kind!r}: expected json, text, binary or none", "EVENT"
        )
    elif given != "null":
        raise ConfigurationError("an event of payload_type none has no payload", "EVENT")
    seq_nr, tags = fields.get("seq_nr", number), fields.get("tags", [])
    if type(seq_nr) is not int:
        raise ConfigurationError(f"seq_nr {seq_nr!r}: expected an integer", "EVENT")
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ConfigurationError(f"tags {tags!r}: expected a list of texts", "EVENT")
    return Event(seq_nr, payload, kind, tuple(tags))
