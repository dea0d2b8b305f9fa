"""Topics written into an archive directory without an archive."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from aerotape.catalog.file.catalog import Catalog
from aerotape.codecs.entity.actions import Action
from aerotape.codecs.entity.messages import encode
from aerotape.entity.partition import Partition
from aerotape.entity.topic import partition_of
from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder


def build_topic(directory: Path, topic: str, partitions: int, actions: Iterable[Action]) -> None:
    """Add the recordings of a topic, with these actions in order, to an archive directory."""
    parts = [Partition(topic, index, partitions) for index in range(partitions)]
    streams = [
        SegmentBuilder(stream_id=part.stream_id, session_id=part.index, initial_term_id=0)
        for part in parts
    ]
    for action in actions:
        streams[partition_of(action.id, partitions)].message(encode(action))
    directory.mkdir(exist_ok=True)
    create = not (directory / "archive.catalog").exists()
    with Catalog.open(directory, create=create) as catalog:
        for part, stream in zip(parts, streams, strict=True):
            channel = part.channel("aeron:ipc")
            stream.recording_id = add_entry(
                catalog,
                stream,
                stop_position=stream.position,
                stop_timestamp_ms=2,
                stripped_channel=channel,
                original_channel=channel,
            )
            stream.write(directory)
