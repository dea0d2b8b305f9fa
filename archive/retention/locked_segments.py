"""Plans that leave alone what is being read from the files of a directory.

A reader keeps a shared lock on the segment file that it is in (`native/src/scan/window.rs`), and
goes from there towards the end. Segments go from a recording's beginning, so the first one that is
locked holds back all that a reader may come to. Who has not begun to read is not seen.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from aerotape.archive.retention.plan import Holding, RetentionPlan, make_plan
from aerotape.archive.retention.policy import RetentionPolicy
from aerotape.archive.retention.survey import PAUSE_AFTER, Usage, survey
from aerotape.catalog.segment.placement import is_long_enough, misplaced_head, read_heads
from aerotape.catalog.segment_files import segment_file_name

_NO_USAGE = Usage()
# What a lock fails with where the file system has none; NFS wants a file open for writing.
_NO_LOCKS = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.ENOLCK, errno.EBADF)


def plan_directory(
    archive_dir: Path,
    policy: RetentionPolicy,
    now_ns: int,
    usage: Usage = _NO_USAGE,
    pause: Callable[[], None] = lambda: None,
) -> RetentionPlan:
    """Find out what a policy takes away from a directory, of what nobody uses or reads.

    Args:
        archive_dir: the directory; an archive may be at work in it.
        policy: the policy.
        now_ns: the time, nanoseconds since 1970.
        usage: what its archive says is in use.
        pause: as for `survey`.

    Raises:
        CatalogError: the catalog cannot be read.
        StorageError: the directory cannot be read.
    """
    holdings = {each.recording_id: each for each in survey(archive_dir, usage, pause)}
    sound: set[int] = set()
    while True:
        plan = make_plan(holdings.values(), policy, now_ns)
        # What one recording has to keep, a limit of several may take from others: looked at again.
        held_back = False
        for number, removal in enumerate(plan.removals):
            if number % PAUSE_AFTER == 0:
                pause()
            holding = holdings[removal.recording_id]
            free, in_use = 0, ""
            if removal.recording_id not in sound:
                in_use = _problem(archive_dir, holding, pause)
            if not in_use:
                sound.add(removal.recording_id)
                free, in_use = _count_free(archive_dir, holding, removal.segments, pause)
            if free < removal.segments:
                held_back = True
                holdings[removal.recording_id] = replace(
                    holding, removable=free, can_go=False, in_use=in_use
                )
        if not held_back:
            return plan


def _problem(archive_dir: Path, holding: Holding, pause: Callable[[], None]) -> str:
    """Say which segment of a recording is too short or does not hold what its name says.

    Then none may go: what has happened to that one may have happened to others.
    """
    descriptor = holding.descriptor
    paths = _paths(archive_dir, holding)
    looked_at = zip(holding.segments, read_heads(paths), strict=True)
    for number, (segment, head) in enumerate(looked_at):
        if number % PAUSE_AFTER == 0:
            pause()
        if not is_long_enough(descriptor, head, segment.base_position, holding.end_position):
            return f"{Path(paths[number]).name} is damaged"
        if reason := misplaced_head(descriptor, head, segment.base_position):
            return f"{Path(paths[number]).name}: {reason}"
    return ""


def _count_free(
    archive_dir: Path, holding: Holding, count: int, pause: Callable[[], None]
) -> tuple[int, str]:
    """Return how many of the first `count` segments may go, and why others may not."""
    for index, path in enumerate(_paths(archive_dir, holding)[:count]):
        if index % PAUSE_AFTER == 0:
            pause()
        if is_read(path):
            return index, "it is being read"
    return count, ""


def _paths(archive_dir: Path, holding: Holding) -> list[str]:
    # Text, not Path: there may be thousands.
    folder, recording_id = os.fspath(archive_dir), holding.recording_id
    return [
        f"{folder}/{segment_file_name(recording_id, segment.base_position)}"
        for segment in holding.segments
    ]


def is_read(path: str | Path) -> bool:
    """Whether a reader has a segment file open, or may have; not where there are no locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # nobody can tell now
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _NO_LOCKS
    finally:
        os.close(descriptor)
    return False
