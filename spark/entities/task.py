"""A Spark task that writes heads, events and snapshots: from Arrow to Parquet in one process."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.errors import AerotapeError
from aerotape.spark.tables.writer import ROW_GROUP_BYTES, STAGED_FOLDER

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import RecordBatch

    from aerotape.spark.tables.output import OutputStore

# Of the other columns, dictionaries only cost.
_DICTIONARIES: Final = {"topic", "origin", "version", "tags", "payload_type"}


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Writes the tables of the entities in a Spark partition.

    Attributes:
        store: the folder of the tables.
        topic: the topic's name.
        segments: the number of segments of heads.
        segment_size: events in a segment of a journal.
    """

    store: OutputStore
    topic: str
    segments: int
    segment_size: int

    def __call__(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """Write files, and return how far each partition of the topic is in them.

        Args:
            batches: all actions of some entities, sorted by id and position.
        """
        import pyarrow
        from pyspark import TaskContext

        from aerotape.spark.entities.rows import ACTIONS, EVENTS, HEADS, SNAPSHOTS, rows_of

        context = TaskContext.get()
        assert context is not None
        schemas = {"metajournal": HEADS, "journal": EVENTS, "snapshot": SNAPSHOTS}
        # Two attempts of a task, one perhaps still running, must not share a file.
        staged = f"{STAGED_FOLDER}/{uuid.uuid4().hex}"
        ends = []
        try:
            with ExitStack() as stack:
                add_heads, add_events, add_snapshots = (
                    stack.enter_context(_file(self.store, f"{staged}/{table}", schema))
                    for table, schema in schemas.items()
                )
                for batch in whole_entities(each.cast(ACTIONS) for each in batches):
                    heads_of, events_of, snapshots_of = rows_of(
                        batch, self.topic, self.segments, self.segment_size
                    )
                    add_heads(heads_of)
                    for rows in events_of:
                        add_events(rows)
                    add_snapshots(snapshots_of)
                    ends.append(_ends(pyarrow.table(batch)))
        except AerotapeError as error:
            raise error.with_traceback(None) from None  # Spark would print the traceback
        for table in schemas:
            name = f"{table}/part-{context.partitionId():05}.parquet"
            self.store.move(f"{staged}/{table}", name)
        for end in ends:
            yield from end.to_batches()


def whole_entities(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """Cut batches, sorted by entity, between entities."""
    import pyarrow
    from pyarrow import compute

    waiting: list[RecordBatch] = []
    for batch in batches:
        if not len(batch):
            continue
        ids = batch["entityId"]
        begin = compute.index(ids, ids[-1]).as_py()  # of the entity that may continue
        if begin or (waiting and waiting[-1]["entityId"][-1] != ids[0]):
            yield pyarrow.concat_batches([*waiting, batch.slice(0, begin)])
            waiting = []
        waiting.append(batch.slice(begin))
    if waiting:
        yield pyarrow.concat_batches(waiting)


def _ends(actions: pyarrow.Table) -> pyarrow.Table:
    """Return the last position and end position of each partition."""
    columns = [("position", "max"), ("end_position", "max")]
    return (
        actions.group_by("partition")
        .aggregate(columns)
        .select(["partition", *("_".join(each) for each in columns)])
        .rename_columns(["partition", "offset", "next_position"])
    )


@contextmanager
def _file(
    store: OutputStore, path: str, schema: pyarrow.Schema
) -> Iterator[Callable[[RecordBatch], None]]:
    """Create a Parquet file with row groups of about the same length; yield how to add rows."""
    import pyarrow
    from pyarrow import parquet

    rows: list[RecordBatch] = []
    length = 0
    dictionaries = [name for name in schema.names if name in _DICTIONARIES]

    def add(batch: RecordBatch) -> None:
        nonlocal length
        rows.append(batch)
        length += batch.nbytes
        if length >= ROW_GROUP_BYTES:
            flush()
            length = 0

    def flush() -> None:
        table = pyarrow.Table.from_batches(rows, schema)
        writer.write_table(table, row_group_size=max(1, len(table)))
        rows.clear()

    with (
        store.new_file(path) as file,
        parquet.ParquetWriter(file, schema, use_dictionary=dictionaries) as writer,
    ):
        yield add
        flush()
