"""`follow`: print the changes of all journals of a topic."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from aerotape.errors import ConfigurationError
from aerotape.tools._cli.connection import add_connection_options
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import ABSENT, Absent, emit_line
from aerotape.tools._entity._common import add_optional_store, add_topic, open_topic
from aerotape.tools._entity.read import EventRow, event_row, event_text

if TYPE_CHECKING:
    from aerotape.entity.following.changes import TopicChange
    from aerotape.entity.following.following import From

_POSITIONS: Final = re.compile(r"[0-9]{1,18}(,[0-9]{1,18})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChangeRow:
    """A change of a journal.

    Attributes:
        topic: topic.
        key: key of the entity.
        change: append, delete or purge.
        events: the events of an append.
        to_seq_nr: the last event of a delete.
        partition: partition of the topic.
        offset: position of the record in the partition's log, bytes.
        positions: positions of the partitions, for --from.
    """

    topic: str
    key: str
    change: str
    events: Sequence[EventRow] | Absent = ABSENT
    to_seq_nr: int | Absent = ABSENT
    partition: int
    offset: int
    positions: str


JSON_ROWS: Final = {"follow": TopicChangeRow}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "follow", _follow)
    add_topic(parser)
    add_optional_store(parser)
    parser.add_argument(
        "--tag",
        metavar="TAG",
        dest="tags",
        action="append",
        default=[],
        help="only events with this tag (repeatable: with one of them), and all deletes and purges",
    )
    parser.add_argument(
        "--from",
        metavar="WHERE",
        dest="begin",
        type=_begin,
        default="beginning",
        help="beginning, now, or the positions of an earlier change, one for each partition: "
        "P0,P1,... (default: beginning)",
    )
    parser.add_argument(
        "--until-caught-up",
        action="store_true",
        help="end when all that is recorded now is printed (default: follow for ever)",
    )
    add_connection_options(parser)


def _follow(args: argparse.Namespace) -> None:
    """Print the changes of all journals of a topic, in the order of each partition's log.

    Changes are appends with the events that they added, deletes and purges. With a store, events up
    to its pointers are taken from there; those that have been deleted since are left out.

    With --json, a change is a line; its `positions` are those for --from to continue after it.
    """
    with open_topic(args) as entities:
        if isinstance(args.begin, Mapping) and len(args.begin) != entities.partitions:
            raise ConfigurationError(
                f"--from with {len(args.begin)} positions: topic {args.topic} has "
                f"{entities.partitions} partitions",
                "--from",
            )
        with entities.subscribe(
            args.begin, args.tags, until_caught_up=args.until_caught_up
        ) as changes:
            for change in changes:
                _emit(change, args)


def _emit(change: TopicChange, args: argparse.Namespace) -> None:
    from aerotape.entity.following.changes import TopicAppend, TopicDelete

    events: list[EventRow] | Absent = ABSENT
    to_seq_nr: int | Absent = ABSENT
    if isinstance(change, TopicAppend):
        name, texts = "append", [event_text(each) for each in change.events]
        events = [event_row(each) for each in change.events]
    elif isinstance(change, TopicDelete):
        name, texts = "delete", [f"deleted up to {change.to_seq_nr}"]
        to_seq_nr = change.to_seq_nr
    else:
        name, texts = "purge", ["purged"]
    if not args.json:
        for text in texts:
            emit_line({}, f"{change.id} {text}", args)
        return
    row = TopicChangeRow(
        topic=args.topic,
        key=change.id,
        change=name,
        events=events,
        to_seq_nr=to_seq_nr,
        partition=change.partition,
        offset=change.offset,
        positions=",".join(str(each) for _, each in sorted(change.positions.items())),
    )
    emit_line(row, "", args)


def _begin(text: str) -> From:
    if text in ("beginning", "now"):
        return cast("From", text)
    if not _POSITIONS.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected beginning, now, or positions separated by commas"
        )
    return dict(enumerate(map(int, text.split(","))))
