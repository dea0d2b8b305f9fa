"""`list`: the topics of an archive or of a store, and the ids of a topic."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aerotape.errors import ConfigurationError
from aerotape.tools._cli.arguments import integer
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Row, emit
from aerotape.tools._entity._common import key

if TYPE_CHECKING:
    from aerotape.archive.client.client import ArchiveClient
    from aerotape.archive.entity.stores.base import EntityStore


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "list", _list)
    parser.add_argument("--topic", metavar="T", help="list the ids of this topic; needs --store")
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
    """List the topics of the archive, or of a store; with --topic, the ids of a store's topic.

    Ids are ordered by their bytes, in a Cassandra store by segment first.
    """
    from aerotape.archive.entity.stores.url import open_store
    from aerotape.archive.entity.topic import check_topic

    if args.topic is None and (args.after is not None or args.limit is not None):
        raise ConfigurationError("--after and --limit are for ids: give --topic", "--topic")
    if args.topic is not None:
        check_topic(args.topic)
        if args.store is None:
            raise ConfigurationError(
                f"--topic {args.topic} without --store: recordings have no index of ids; give the "
                "store of the topic's replicator",
                "--store",
            )
    if args.store is None:
        with connect(args) as client:
            emit(_recorded(client), args, "no topics")
        return
    with open_store(args.store) as store:
        if args.topic is None:
            emit(_stored(store), args, "no topics")
        else:
            emit(_ids(store, args), args, "no ids")


def _recorded(client: ArchiveClient) -> Iterator[Row]:
    from aerotape.archive.entity.topic import recordings_of, topics_of

    recordings = list(client.list_recordings())
    for topic in topics_of(recordings):
        found = recordings_of(topic, recordings)
        partition = next(iter(found))
        yield {
            "topic": topic,
            "type": partition.type,
            "partitions": partition.count,
            "recorded_bytes": sum(
                client.max_recorded_position(each.recording_id) - each.start_position
                for each in found.values()
            ),
        }


def _stored(store: EntityStore) -> Iterator[Row]:
    for topic in store.topics():
        pointers = store.pointers(topic).values()
        replicated = sum(pointer.next_position for pointer in pointers)
        yield {"topic": topic, "partitions": len(pointers), "replicated_bytes": replicated}


def _ids(store: EntityStore, args: argparse.Namespace) -> Iterator[Row]:
    from aerotape.archive.entity.stores.copying import pointers_of

    pointers_of(store, args.topic)  # refuses an unknown topic
    for id, head in store.ids(args.topic, args.after, 1000 if args.limit is None else args.limit):
        yield {
            "key": id,
            "partition": head.partition,
            "seq_nr": head.seq_nr,
            "deleted_to": head.delete_to,
            "updated_ms": head.updated_ms,
            "expires_ms": head.expires_ms,
        }


def _limit(text: str) -> int:
    return integer(text, 1, 1_000_000)
