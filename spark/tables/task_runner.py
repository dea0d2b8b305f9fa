"""Running the tasks of a job in Spark, with progress and one line for a failure."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from aerotape.context import Closing
from aerotape.errors import AerotapeError
from aerotape.spark.runtime.failures import cause
from aerotape.spark.runtime.session import check_master, job_context
from aerotape.spark.tables.writer import Piece, TaskOutcome, WriteSettings, write_files

if TYPE_CHECKING:
    from pyspark import SparkContext

Partition = tuple[Piece, ...]
OnDone = Callable[[int], None]
"""Called with the number of partitions that are done."""

_POLL_S: Final = 0.2


class TaskRunner(Protocol):
    """Runs the tasks of a job."""

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at the same time."""

    def run(
        self, partitions: Sequence[Partition], settings: WriteSettings, on_done: OnDone | None
    ) -> list[TaskOutcome]:
        """Run one task for each partition and gather the outcomes."""


class SparkTasks(Closing):
    """Runs tasks in a Spark context, which is started when the first ones come."""

    def __init__(self, master: str | None, *, whole_log: bool = False) -> None:
        """Choose Spark's master URL and how it logs.

        See `aerotape.spark.runtime.session.job_context`.

        Raises:
            ConfigurationError: there is no such master.
        """
        check_master(master)
        self._master = master
        self._whole_log = whole_log
        self._spark = ExitStack()
        self._context: SparkContext | None = None

    def close(self) -> None:
        """Stop Spark, if it was started here. Idempotent."""
        self._context = None
        self._spark.close()

    @property
    def parallelism(self) -> int:
        return int(self._started().defaultParallelism)

    def run(
        self, partitions: Sequence[Partition], settings: WriteSettings, on_done: OnDone | None
    ) -> list[TaskOutcome]:
        context = self._started()
        done = threading.Event()
        watcher = threading.Thread(target=_watch, args=(context, done, on_done), daemon=True)
        watcher.start()
        tag = f"aerotape-{uuid.uuid4().hex}"
        context.addJobTag(tag)
        try:
            tasks = context.parallelize(partitions, len(partitions))
            return list(tasks.mapPartitions(partial(write_files, settings=settings)).collect())
        except Exception as error:  # py4j's and Spark's own have no base in common
            raise AerotapeError(f"the Spark job failed: {cause(error)}") from error
        except BaseException:
            # A session that is not ours continues to run, and so would the tasks.
            with suppress(Exception):
                context.cancelJobsWithTag(tag)
            raise
        finally:
            with suppress(Exception):
                context.removeJobTag(tag)
            done.set()
            watcher.join()

    def _started(self) -> SparkContext:
        if self._context is None:
            self._context = self._spark.enter_context(
                job_context(self._master, "aerotape table", whole_log=self._whole_log)
            )
        return self._context


def _watch(context: SparkContext, done: threading.Event, on_done: OnDone | None) -> None:
    if on_done is None:
        return
    tracker = context.statusTracker()
    while not done.wait(_POLL_S):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        on_done(sum(stage.numCompletedTasks for stage in stages if stage))
