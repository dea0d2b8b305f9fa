"""The list of positions of a snapshot of a Delta table, and what to do without one.

The commit of a job names its list (`converted_files`) by an application transaction. Delta keeps
the latest version of a transaction and reverts it neither with RESTORE nor with the rows, and may
let it expire; so the log itself is read, from the snapshot's commit back to the one of a job:

- OPTIMIZE, DELETE, changed properties and so on leave the list as it is: rows that a user deletes
  stay deleted.
- RESTORE continues at the version that it restored.

If a commit on the way is no longer in the log, or the list was deleted, the positions of the rows
themselves are read (`converted_without_list`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from aerotape.catalog.directory import recording_key
from aerotape.errors import StorageError
from aerotape.replay.offline.read_progress import LastRead, ReadProgress
from aerotape.spark.tables.converted_files import (
    APPLICATION,
    CONVERTED_FOLDER,
    read_converted,
)
from aerotape.spark.tables.output import OutputStore

if TYPE_CHECKING:
    from deltalake import DeltaTable

_RESTORE: Final = "RESTORE"


@dataclass(frozen=True, slots=True)
class Commit:
    """The used actions of a file of the log.

    Attributes:
        list_id: the list that it names, None if it is not the commit of a job.
        restores: it restores an earlier version.
        restored: that version, None if the log does not say it by number.
        paths: files that it adds (True) or removes (False).
    """

    list_id: int | None
    restores: bool
    restored: int | None
    paths: dict[str, bool]


ReadCommit = Callable[[int], Commit | None]
"""Returns the commit of a version; None if it is not in the log."""


def commit_reader(store: OutputStore) -> ReadCommit:
    """Return a function that reads commits of the table in a folder (StorageError)."""
    return partial(_read_commit, store)


def find_list(read: ReadCommit, version: int, known: Mapping[int, int]) -> int | None:
    """Return the id of the list of a snapshot; None if the log does not have its commit.

    Args:
        read: reads a commit.
        version: version of the snapshot.
        known: ids of lists of earlier versions that were found before.
    """
    while version >= 0:
        if version in known:
            return known[version]
        commit = read(version)
        if commit is None:
            return None
        if commit.list_id is not None:
            return commit.list_id
        if commit.restores:
            restored = commit.restored
            if restored is None:
                restored = _version_with_the_files_of(read, version)
            if restored is None or restored >= version:
                return None
            version = restored
        else:
            version -= 1
    return None


def names_list(read: ReadCommit, list_id: int, versions: range) -> bool:
    """Return whether one of some commits names a list (StorageError)."""
    commits = (read(version) for version in versions)
    return any(commit is not None and commit.list_id == list_id for commit in commits)


def _version_with_the_files_of(read: ReadCommit, restoring: int) -> int | None:
    """Return the latest version that had the files which a restoring commit left."""
    # Files whose presence differs from that after the restoring commit.
    differing: set[str] = set()
    present: dict[str, bool] = {}
    for version in range(restoring, 0, -1):
        commit = read(version)
        if commit is None:
            return None
        for path, is_added in commit.paths.items():
            after = present.setdefault(path, is_added)
            # A file that is added again, with other statistics, cannot be told from a new one.
            if after == (not is_added):
                differing.discard(path)
            else:
                differing.add(path)
        if not differing:
            return version - 1
    return None


def converted_without_list(table: DeltaTable, store: OutputStore) -> dict[int, ReadProgress]:
    """The converted ranges of each recording, from the rows of a table.

    The positions from the first row of a recording to the last one count as converted. What an
    earlier commit says of a recording is returned if its last row is the one that the commit names,
    because that has a checksum of it.

    Raises:
        StorageError: recordings of several scopes, which rows do not distinguish.
    """
    import pyarrow
    from deltalake import QueryBuilder

    id = table.transaction_version(APPLICATION)
    recorded = {} if id is None else read_converted(store, id) or {}
    query = QueryBuilder().register("messages", table)
    rows = pyarrow.table(
        query.execute(
            "SELECT recording_id, min(position) AS first, max(position) AS last, "
            "max(end_position) AS end_position FROM messages GROUP BY recording_id"
        )
    ).to_pylist()
    if any(field.name == "scope_id" for field in table.schema().fields):
        if rows:
            raise StorageError(
                f"{store.name} has recordings of several archives, and the log no longer has the "
                "commit that lists their positions, or the list is missing in "
                f"{CONVERTED_FOLDER}: restore it, or convert into another table",
                store.name,
            )
        return {}
    found = {}
    for row in rows:
        key = recording_key(None, row["recording_id"])
        said = recorded.get(key)
        if said is not None and _agrees(said, row):
            found[key] = said
            continue
        found[key] = ReadProgress(
            begin=row["first"],
            position=row["end_position"],
            last=LastRead(row["last"], row["end_position"], None),
            identity=None if said is None else said.identity,
        )
    return found


def _agrees(converted: ReadProgress, row: Mapping[str, int]) -> bool:
    """Return whether that is what the rows of the recording show."""
    last, begin = converted.last, converted.begin
    if last is None or last.position != row["last"] or begin is None:
        return False
    return begin <= row["first"] and row["end_position"] <= converted.position


def _read_commit(store: OutputStore, version: int) -> Commit | None:
    path = f"_delta_log/{version:020}.json"
    if not store.exists(path):
        return None
    with store.open_file(path) as stream:
        text = stream.read()
    list_id = None
    restores, restored = False, None
    paths: dict[str, bool] = {}
    for action in _actions(bytes(text)):
        if transaction := action.get("txn"):
            if transaction.get("appId") == APPLICATION:
                list_id = int(transaction["version"])
        elif info := action.get("commitInfo"):
            restores = info.get("operation") == _RESTORE
            number = str((info.get("operationParameters") or {}).get("version"))
            restored = int(number) if restores and number.isdigit() else None
        elif removed := action.get("remove"):
            paths.setdefault(removed["path"], False)
        elif added := action.get("add"):
            paths[added["path"]] = True
    return Commit(list_id, restores, restored, paths)


def _actions(text: bytes) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.strip():
            yield json.loads(line)
