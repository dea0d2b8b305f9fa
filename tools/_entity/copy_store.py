"""`copy-store`: copy the journals of a topic into another store."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import Final

from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit
from aerotape.tools._entity._common import add_store, add_topic


@dataclass(frozen=True, slots=True)
class CopiedTopic:
    """A topic that was copied.

    Attributes:
        topic: topic.
        journals: number of journals.
        events: number of events.
        snapshots: number of snapshots.
    """

    topic: str
    journals: int
    events: int
    snapshots: int


JSON_ROWS: Final = {"copy-store": CopiedTopic}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "copy-store", _copy_store)
    add_topic(parser)
    add_store(parser, "--from", "the store to copy")
    add_store(parser, "--to", "the store, of any kind, or the namespace that gets the topic")


def _copy_store(args: argparse.Namespace) -> None:
    """Copy the journals of a topic into another store; its replicator then continues there.

    Heads, events, snapshots and pointers are copied. The target must not have the topic. No
    replicator may run in either namespace. A copy that is interrupted can be repeated.
    """
    from aerotape.entity.stores.copying import copy_topic
    from aerotape.entity.topic import check_topic

    topic = check_topic(args.topic)
    copied = copy_topic(getattr(args, "from"), args.to, topic)
    emit(CopiedTopic(topic=topic, **asdict(copied)), args)
