"""What a migration is going to do, kept in a file until it is done.

Names of segment files alone do not tell how far a migration came: a number in them means one thing
before a step and another one after it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from aerotape.catalog.durability import sync_directory
from aerotape.catalog.no_follow import open_no_follow
from aerotape.errors import StorageError

FILE_NAME: Final = "aerotape-migration.json"


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """One step to the next major version.

    Attributes:
        version: the version it leads to.
        marker: the file that tells of it.
        renames: names of segment files, before and after, in the order in which it is done.
    """

    version: int
    marker: Path
    renames: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Journal:
    """A migration that was begun.

    Attributes:
        path: the file.
        steps: all its steps.
    """

    path: Path
    steps: tuple[MigrationStep, ...]

    def rest(self, names: set[str], version: int) -> tuple[MigrationStep, ...]:
        """Return what is left to be done.

        Args:
            names: all names in the directory.
            version: the version that the mark file has reached.

        Raises:
            StorageError: the files are not what the migration can have left.
        """
        rest = [step for step in self.steps if step.version > version]
        if not rest:
            return ()
        first = rest[0]
        # Later steps rename what this one has renamed; before them it is the names of this one that
        # tell how far it came.
        done = _count_done(first.renames, names)
        if done is not None:
            return (replace(first, renames=first.renames[done:]), *rest[1:])
        raise StorageError(
            f"a migration was cut short ({self.path.name}), and segment files have changed since: "
            f"restore the directory from a copy",
            self.path,
        )


def _count_done(renames: Sequence[tuple[str, str]], names: set[str]) -> int | None:
    """Return how many renames, from the first, were done; the most that it can have been.

    Of all names that occur, just those are there then that the ones done have given and the others
    have not taken yet. None when it is so after no number of them.
    """
    # By how many renames a name should be there: one may be given that another takes.
    expected = Counter(target for _, target in renames)
    expected.update({source: 0 for source, _ in renames})
    wrong = sum((name in names) != (count > 0) for name, count in expected.items())
    for done in range(len(renames), 0, -1):
        if not wrong:
            return done
        source, target = renames[done - 1]
        for name, change in ((target, -1), (source, 1)):
            is_there, count = name in names, expected[name]
            expected[name] = count + change
            wrong += (is_there != (count + change > 0)) - (is_there != (count > 0))
    return None if wrong else 0


def read_journal(archive_dir: Path) -> Journal | None:
    """Read what was begun in a directory; None when nothing was (StorageError)."""
    path = archive_dir / FILE_NAME
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        steps = tuple(
            MigrationStep(
                step["version"],
                archive_dir / step["marker"],
                tuple((source, target) for source, target in step["renames"]),
            )
            for step in content["steps"]
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise StorageError(f"cannot read {path}: {error}", path) from error
    return Journal(path, steps)


def write_journal(archive_dir: Path, steps: Sequence[MigrationStep]) -> None:
    """Note what is going to be done, on storage when this returns (OSError)."""
    path = archive_dir / FILE_NAME
    temporary = archive_dir / f"{FILE_NAME}.tmp"
    content = {
        "steps": [
            {"version": step.version, "marker": step.marker.name, "renames": step.renames}
            for step in steps
        ]
    }
    with open(temporary, "w", encoding="utf-8", opener=open_no_follow) as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(archive_dir)


def remove_journal(archive_dir: Path) -> None:
    """Forget what was done (OSError)."""
    (archive_dir / FILE_NAME).unlink(missing_ok=True)
    sync_directory(archive_dir)
