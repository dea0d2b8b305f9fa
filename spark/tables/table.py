"""The interface of the tables that a table job writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from aerotape.errors import AerotapeError
from aerotape.replay.offline.read_progress import ReadProgress
from aerotape.spark.tables.output import OutputStore
from aerotape.spark.tables.writer import Naming, NewFile

if TYPE_CHECKING:
    import pyarrow


class TableChangedError(AerotapeError):
    """Another job has changed the table since it was read: read it again and plan again."""


class Table(Protocol):
    """A table of recordings. For one thread."""

    @property
    def store(self) -> OutputStore:
        """Its folder, into which tasks write files."""

    @property
    def naming(self) -> Naming:
        """The naming of its files by tasks."""

    @property
    def job_id(self) -> str:
        """The common part of the names of naming `UNIQUE` in this job."""

    @property
    def has_gaps(self) -> bool:
        """Whether it can have several ranges of a recording with other positions in between."""

    def check_options(self, *, replaces: bool) -> None:
        """Refuse to replace rows, if it cannot (ConfigurationError)."""

    def begin(self, schema: pyarrow.Schema) -> None:
        """Prepare to write rows with these columns; reserve a table that takes only one writer.

        Nothing that a reader would take for a table appears before the first commit.

        Raises:
            TableInUseError: another job is writing to it.
            StorageError: it cannot be written.
        """

    def close(self, *, failed: bool = False) -> None:
        """Release the table. Idempotent.

        Args:
            failed: the job has failed: delete a new table in which nothing was committed.
        """

    def refresh(self) -> None:
        """Read what the table has now (StorageError, also if its files are missing)."""

    def columns(self) -> dict[str, str] | None:
        """Return its columns and their Arrow types, without the date; None if it has no rows."""

    def converted(self, recording_ids: Iterable[int]) -> dict[int, ReadProgress]:
        """The converted ranges of those of the recordings that have rows in the table."""

    def commit(
        self,
        files: Sequence[NewFile],
        converted: Mapping[int, ReadProgress],
        replaced: Mapping[int, int],
    ) -> None:
        """Add files.

        A commit that raises may have reached the table, after an interrupt for example: the caller
        deletes nothing.

        Args:
            files: those that tasks have written.
            converted: what the table has then of each recording that is in them.
            replaced: recordings whose rows are removed, with the position from which on.

        Raises:
            TableChangedError: another job has changed the same recordings meanwhile.
            StorageError: it cannot be written.
        """

    def discard(self, files: Iterable[NewFile]) -> None:
        """Delete files for which `commit` is not called (StorageError)."""
