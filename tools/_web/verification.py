"""What `aerotape tool DIR verify --json` found last, from the file it was printed to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.errors import StorageError

_T = TypeVar("_T")
_OUTCOME: Final = "verification"
_MAX_PROBLEMS: Final = 100


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification.

    Attributes:
        timestamp_ms: when it ended, epoch milliseconds: the file's time.
        checked: the ids of the recordings that were checked.
        failed: the problems of those that have any, by recording id; of each the first 100.
    """

    timestamp_ms: int
    checked: frozenset[int]
    failed: dict[int, list[SuspectNote]]

    @property
    def recordings(self) -> int:
        """The number of recordings that were checked."""
        return len(self.checked)


def read_verification(path: Path) -> Verification:
    """Read the output of `aerotape tool DIR verify --json`.

    Raises:
        StorageError: the file cannot be read, or is not such output: none yet, or not all of it.
    """
    try:
        status = path.stat()
        return _parsed(path, status.st_ino, status.st_size, status.st_mtime_ns // 1_000_000)
    except OSError as error:
        raise StorageError(f"cannot read the verification {path}: {error.strerror}") from None


@lru_cache(maxsize=1)
def _parsed(path: Path, _inode: int, _size: int, timestamp_ms: int) -> Verification:
    """Read the file, once for each that it has been (errors as `read_verification`, OSError)."""
    try:
        rows = json.loads(path.read_bytes())
        checked = frozenset(_typed(row["recording_id"], int) for row in rows)
        failed = {
            row["recording_id"]: [
                _note(problem, timestamp_ms) for problem in row["problems"][:_MAX_PROBLEMS]
            ]
            for row in rows
            if row["problems"]
        }
    except (ValueError, TypeError, KeyError, RecursionError):
        raise StorageError(
            f"{path} is not what `aerotape tool DIR verify --json` prints, or not all of it"
        ) from None
    return Verification(timestamp_ms, checked, failed)


def _note(problem: dict[str, Any], timestamp_ms: int) -> SuspectNote:
    detail, position = _typed(problem["detail"], str), problem["position"]
    if position is not None:
        _typed(position, int)
    return SuspectNote(_OUTCOME, detail, position, timestamp_ms)


def _typed(value: Any, kind: type[_T]) -> _T:
    """Return a value of a type (TypeError)."""
    if type(value) is not kind:
        raise TypeError
    return value
