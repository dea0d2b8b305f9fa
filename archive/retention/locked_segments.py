"""Plans that spare the files that are being read.

A reader has a shared lock on its current segment file (`native/format/src/scan/window.rs`) and
continues towards the end. Segments are deleted from the start of a recording, so that the first
locked one protects all that the reader has yet to reach. A reader without an open file is not
detected.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace
from pathlib import Path

from aerotape.archive.retention.plan import Holding, RetentionPlan, make_plan
from aerotape.archive.retention.policy import RetentionPolicy
from aerotape.archive.retention.survey import Holds, Usage, survey
from aerotape.catalog.segment.placement import is_long_enough, misplaced_head, read_head
from aerotape.catalog.segment_files import segment_file_name

_NO_USAGE = Usage()


def plan_directory(
    archive_dir: Path,
    policy: RetentionPolicy,
    now_ns: int,
    holds: Holds,
    usage: Usage = _NO_USAGE,
) -> RetentionPlan:
    """Return the removals of a policy in a directory, of data that is not in use.

    Args:
        archive_dir: the directory; an archive may be using it.
        policy: the policy.
        now_ns: the time, nanoseconds since 1970.
        holds: of the features.
        usage: the recordings in use by the archive.

    Raises:
        CatalogError: the catalog cannot be read.
        StorageError: the directory cannot be read.
    """
    holdings = {each.recording_id: each for each in survey(archive_dir, holds, usage)}
    sound: set[int] = set()
    while True:
        plan = make_plan(holdings.values(), policy, now_ns)
        # A limit of several recordings may take from others what is in use in one: planned again.
        held_back = False
        for removal in plan.removals:
            holding = holdings[removal.recording_id]
            free, in_use = 0, ""
            if removal.recording_id not in sound:
                in_use = _problem(archive_dir, holding)
            if not in_use:
                sound.add(removal.recording_id)
                free, in_use = _count_free(archive_dir, holding, removal.segments)
            if free < removal.segments:
                held_back = True
                holdings[removal.recording_id] = replace(
                    holding, removable=free, is_deletable=False, in_use=in_use
                )
        if not held_back:
            return plan


def _problem(archive_dir: Path, holding: Holding) -> str:
    """Describe the first segment that is too short or misplaced, "" without one.

    The recording is then spared, because its other segments may be damaged as well.
    """
    descriptor = holding.descriptor
    for path, segment in zip(_paths(archive_dir, holding), holding.segments, strict=True):
        head = read_head(path)
        if not is_long_enough(descriptor, head, segment.base_position, holding.end_position):
            return f"{Path(path).name} is damaged"
        if reason := misplaced_head(descriptor, head, segment.base_position):
            return f"{Path(path).name}: {reason}"
    return ""


def _count_free(archive_dir: Path, holding: Holding, count: int) -> tuple[int, str]:
    """Return the number of the first `count` segments that can be deleted, and why not all."""
    for index, path in enumerate(_paths(archive_dir, holding)[:count]):
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
    """Whether a reader has, or may have, a segment file open; False without file locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # unknown
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    finally:
        os.close(descriptor)
    return False
