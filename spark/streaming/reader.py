"""`spark.readStream.format("aerotape")`: new messages of an archive directory, batch by batch.

The reader lives in a Python process next to the driver while the query runs. For each batch Spark
calls `latestOffset`, writes the result into the checkpoint, and then calls `partitions`. After a
failure it calls only `partitions`, with offsets from the checkpoint, which suffice to read the very
same messages again.

`aerotape.spark.streaming.backlog` reads the directory, `aerotape.spark.streaming.read_limits`
limits batches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from aerotape.replay.offline.boundaries import last_message
from aerotape.replay.offline.read_progress import ReadProgress
from aerotape.replay.offline.selection import refuse
from aerotape.spark.source.batch_reader import BatchReader, ScanPartition, without_traceback
from aerotape.spark.source.options import spell
from aerotape.spark.source.planning import plan_partitions
from aerotape.spark.streaming.backlog import Backlog, FollowedDirectory
from aerotape.spark.streaming.offsets import StreamOffset
from aerotape.spark.streaming.read_limits import Allowance, admit

if TYPE_CHECKING:
    from aerotape.spark.source.options import ReadOptions
    from aerotape.spark.streaming.options import StreamOptions


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what has been recorded since the previous batch, in old and new recordings."""

    def __init__(
        self, options: ReadOptions, stream_options: StreamOptions, batches: BatchReader
    ) -> None:
        """Create a reader without reading the directory.

        Raises:
            ConfigurationError: an option is not valid for a stream.
        """
        refuse(
            options,
            ("to_position", "to_time", "first", "last"),
            "a stream has no end: this option is for spark.read; filter the column position, or "
            "stop the query",
            spell,
        )
        self._partition_bytes = options.partition_bytes
        self._limits = stream_options
        self._directory = FollowedDirectory(options, stream_options.fail_on_data_loss)
        self._batches = batches
        self._turn = -1
        self._targets: dict[int, int] | None = None
        self._recorded: dict[int, int] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset at which a new query begins, the same each time.

        Spark calls this again when the first batch failed; later offsets have positions.
        """
        return StreamOffset(starts_latest=self._limits.starts_latest).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return one limit, because Spark supports only one; `latestOffset` applies both."""
        if self._limits.max_bytes is not None:
            return ReadMaxBytes(self._limits.max_bytes)
        if self._limits.max_messages is not None:
            return ReadMaxRows(self._limits.max_messages)
        return ReadAllAvailable()

    @without_traceback
    def prepareForTriggerAvailableNow(self) -> None:
        """Store where recordings end now: the query ends there."""
        self._targets = self._directory.ends()

    @without_traceback
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Choose what the next batch reads.

        Args:
            start: the offset up to which messages have been read.
            limit: Spark's limit; unless that is ReadAllAvailable, the limits of the options apply.

        Returns:
            The offset up to which it reads: `start` when there is nothing new.
        """
        offset = StreamOffset.from_json(start)
        recordings, progress = self._directory.scan(offset)
        targets = self._targets
        if targets is not None:
            # Recordings that were followed before their channel changed are only in the checkpoint.
            for each in recordings:
                if each.key in progress and each.key not in targets:
                    targets[each.key] = each.recorded_position
            recordings = [each for each in recordings if each.key in targets]
        backlogs = []
        for each in recordings:
            target = targets[each.key] if targets is not None else None
            backlog = self._directory.backlog(each, progress.get(each.key), target)
            if backlog is not None:
                backlogs.append(backlog)
        self._recorded = {id: each.position for id, each in progress.items()}
        self._recorded |= {each.key: each.range.limit_position for each in backlogs}
        if offset.starts_latest:
            return StreamOffset(dict(_skipped(backlogs))).to_json()
        allowance = Allowance()
        if not isinstance(limit, ReadAllAvailable):
            allowance = Allowance(self._limits.max_bytes, self._limits.max_messages)
        after, self._turn = admit(backlogs, allowance, self._turn)
        progress.update(after)
        return StreamOffset(progress).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the ends of recordings at the last scan, for the query's progress."""
        if self._recorded is None:
            return None
        ends = {id: ReadProgress(position=position) for id, position in self._recorded.items()}
        return StreamOffset(ends).to_json()

    @without_traceback
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Cut the ranges between two offsets into partitions, the same messages each time.

        Raises:
            DataLossError: a part of them is gone, and failOnDataLoss is true.
        """
        ranges = list(
            self._directory.ranges(StreamOffset.from_json(start), StreamOffset.from_json(end))
        )
        return [ScanPartition(part) for part in plan_partitions(ranges, self._partition_bytes)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Scan a partition into Arrow record batches."""
        return self._batches.read(partition)


def _skipped(backlogs: Sequence[Backlog]) -> Iterator[tuple[int, ReadProgress]]:
    """Yield the progress of recordings that are skipped to their end.

    A message that is still being recorded will be read later.
    """
    for backlog in backlogs:
        whole = backlog.range
        if backlog.stop is not None:
            # Finding the last messages of very many stopped recordings would take long.
            progress = backlog.progress_at(backlog.stop, stop=backlog.stop)
        else:
            read = backlog.after(last_message(whole), complete=True)
            progress = read or backlog.progress_at(whole.from_position)
        yield backlog.key, dataclasses.replace(progress, begin=progress.position)
