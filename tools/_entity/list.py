"""`list`: the topics of an archive or of a store, and the ids of a topic."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aerotape.errors import ConfigurationError
from aerotape.tools._cli.arguments import integer
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Row, as_row, emit
from aerotape.tools._cli.times import time_text
from aerotape.tools._entity._common import key

if TYPE_CHECKING:
    from aerotape.clients import ArchiveClient
    from aerotape.entity.stores.base import EntityStore

_MOST_IDS: Final = 1_000


@dataclass(frozen=True, slots=True)
class RecordedTopic:
    """A topic that is recorded.

    Attributes:
        topic: topic.
        type: VD_JOURNAL or PD_JOURNAL.
        partitions: number of partitions.
        recorded_bytes: bytes recorded.
    """

    topic: str
    type: str
    partitions: int
    recorded_bytes: int


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic in a store.

    Attributes:
        topic: topic.
        partitions: number of partitions.
        replicated_bytes: bytes that the store has.
    """

    topic: str
    partitions: int
    replicated_bytes: int


@dataclass(frozen=True, slots=True)
class ListedEntity:
    """An entity of a topic.

    Attributes:
        key: its key.
        partition: partition of the topic.
        seq_nr: sequence number of its last event.
        deleted_to: last deleted sequence number.
        updated_ms: last change, epoch milliseconds.
        expires_ms: when its journal may be purged, epoch milliseconds; null if never.
    """

    key: str
    partition: int
    seq_nr: int
    deleted_to: int | None
    updated_ms: int
    expires_ms: int | None


JSON_ROWS: Final = {"list": RecordedTopic | StoredTopic | ListedEntity}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "list", _list)
    parser.add_argument(
        "--topic",
        metavar="T",
        help="list the ids of this topic; without --store, all of its recordings are read",
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        help="list what this store has, for example sqlite:journals.db; the archive is not used",
    )
    parser.add_argument(
        "--after", metavar="ID", type=key, help="begin after this id, the last one of a page"
    )
    parser.add_argument("--limit", metavar="N", type=_limit, help="the most ids (default: 1000)")
    add_connection_options(parser)


def _list(args: argparse.Namespace) -> None:
    """List the topics of the archive, or of a store; with --topic, the ids of a topic.

    Ids are ordered by their bytes, in a Cassandra store by segment first.
    """
    from aerotape.entity.stores.url import open_store
    from aerotape.entity.topic import check_topic

    if args.topic is None and (args.after is not None or args.limit is not None):
        raise ConfigurationError("--after and --limit are for ids: give --topic", "--topic")
    if args.topic is not None:
        check_topic(args.topic)
    if args.store is None:
        with connect(args) as client:
            if args.topic is None:
                emit(_recorded(client), args, "no topics")
            else:
                _emit_ids(_recorded_ids(client, args), args)
        return
    with open_store(args.store) as store:
        if args.topic is None:
            emit(_stored(store), args, "no topics")
        else:
            _emit_ids(_ids(store, args), args)


def _recorded(client: ArchiveClient) -> Iterator[RecordedTopic]:
    from aerotape.entity.topic import recordings_of, topics_of

    recordings = list(client.list_recordings())
    for topic in topics_of(recordings):
        found = recordings_of(topic, recordings)
        partition = next(iter(found))
        yield RecordedTopic(
            topic=topic,
            type=partition.type,
            partitions=partition.count,
            recorded_bytes=sum(
                client.max_recorded_position(each.recording_id) - each.start_position
                for each in found.values()
            ),
        )


def _recorded_ids(client: ArchiveClient, args: argparse.Namespace) -> list[ListedEntity]:
    """Return the ids of a topic from its recordings, with what the store of a replicator has."""
    from aerotape.entity.following.changes import TopicAppend, TopicDelete
    from aerotape.entity.topic import existing_recordings_of

    existing_recordings_of(args.topic, client.list_recordings())
    found: dict[str, dict[str, Any]] = {}
    with (
        client.entities(args.topic) as entities,
        entities.subscribe("beginning", until_caught_up=True) as changes,
    ):
        for change in changes:
            row = found.setdefault(change.id, {"seq_nr": 0, "deleted_to": None, "expires_ms": None})
            row["partition"] = change.partition
            if isinstance(change, TopicAppend):
                last = change.events[-1]
                row |= {"seq_nr": last.event.seq_nr, "updated_ms": last.timestamp_ms}
                row["expires_ms"] = (
                    None
                    if last.expire_after_ns is None
                    else last.timestamp_ms + last.expire_after_ns // 1_000_000
                )
            elif isinstance(change, TopicDelete):
                row |= {"deleted_to": change.to_seq_nr, "updated_ms": change.timestamp_ms}
            else:
                del found[change.id]
    after = None if args.after is None else args.after.encode()
    ids = sorted((id for id in found if after is None or id.encode() > after), key=str.encode)
    return [ListedEntity(key=id, **found[id]) for id in ids[: _most(args)]]


def _stored(store: EntityStore) -> Iterator[StoredTopic]:
    for topic in store.topics():
        pointers = store.pointers(topic).values()
        replicated = sum(pointer.next_position for pointer in pointers)
        yield StoredTopic(topic, len(pointers), replicated)


def _ids(store: EntityStore, args: argparse.Namespace) -> Iterator[ListedEntity]:
    from aerotape.entity.stores.copying import pointers_of

    pointers_of(store, args.topic)  # refuses an unknown topic
    for id, head in store.ids(args.topic, args.after, _most(args)):
        yield ListedEntity(
            key=id,
            partition=head.partition,
            seq_nr=head.seq_nr,
            deleted_to=head.delete_to,
            updated_ms=head.updated_ms,
            expires_ms=head.expires_ms,
        )


def _emit_ids(rows: Iterable[ListedEntity], args: argparse.Namespace) -> None:
    """Print ids: for people with times, in JSON with their milliseconds."""
    emit(rows if args.json else map(_with_times, rows), args, "no ids")


def _with_times(row: ListedEntity) -> Row:
    shown = as_row(row)
    for name in ("updated", "expires"):
        milliseconds = shown.pop(f"{name}_ms")
        shown[name] = None if milliseconds is None else time_text(milliseconds)
    return shown


def _most(args: argparse.Namespace) -> int:
    return _MOST_IDS if args.limit is None else int(args.limit)


def _limit(text: str) -> int:
    return integer(text, 1, 1_000_000)
