"""Arguments of the native recorder and replayer, which read them by the names of the attributes.

Positions and lengths are bytes, `_ns` nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from os import PathLike

    from aerotape._native import Counter, ExclusivePublication
    from aerotape.frame_header import ChecksumName


@dataclass(slots=True)
class WorkerOptions:
    """Options of a `SessionWorker`.

    Attributes:
        name: of the thread.
        idle: spins, yields, min park ns, max park ns.
        write_counters: statistics of what recordings write: longest time for one block (ns), total
            bytes, total time (ns).
        read_counters: the same for what replays read.
        sync_counters: total time of syncs (ns), and counts of those that took no longer than a
            bound (ns) and longer than the one before.
        cycle_counters: longest duty cycle (ns), count of cycles longer than a threshold, that
            threshold (ns). Without a session no cycles are counted. Other workers may use the same
            counters.
    """

    name: str
    archive_dir: str | PathLike[str]
    file_io_max_length: int = 1_048_576
    file_sync_level: int = 0
    record_checksum: ChecksumName = "none"
    replay_checksum: ChecksumName = "none"
    idle: tuple[int, int, int, int] = (10, 0, 40_000, 1_000_000)
    write_counters: tuple[Counter, Counter, Counter] | None = None
    read_counters: tuple[Counter, Counter, Counter] | None = None
    sync_counters: tuple[Counter, list[tuple[int, Counter]]] | None = None
    cycle_counters: tuple[Counter, Counter, int] | None = None


@dataclass(slots=True)
class TimeIndexArguments:
    """The file of times and positions of a recording.

    Attributes:
        header: of a new file.
        is_new: whether an existing file is another recording's and is replaced.
        interval_ns: least distance of points.
        min_length: likewise; it does not count after ten intervals.
    """

    path: str
    header: bytes
    is_new: bool
    interval_ns: int
    min_length: int


@dataclass(slots=True)
class RecordArguments:
    """The arguments of `SessionWorker.record`.

    Attributes:
        start_position: the recording's; writing begins at the image's join position.
        events: the messages RecordingStarted, RecordingProgress and RecordingStopped for
            `publish_events`; the position at the end of the last two is filled in.
        durability: with one, the position counter is at the written position whatever the sync
            level of the worker. "pd" makes durable all that is written, continuously; "vd" only
            what is written when `request_sync` is called. Either is durable to its end before
            `RecordingStopped` is posted.
        confirmed_counter: of a recording with a durability, set to the durable position.
    """

    recording_id: int
    start_position: int
    segment_length: int
    events: tuple[bytes, bytes, bytes] | None = None
    time_index: TimeIndexArguments | None = None
    durability: Literal["pd", "vd"] | None = None
    confirmed_counter: Counter | None = None


@dataclass(slots=True)
class ReplayArguments:
    """The arguments of `SessionWorker.replay`.

    Attributes:
        stream_id: of the recorded frames.
        channel: of the publication, as errors name it.
        limit_counter: makes the replay follow: the position counter of a live recording, or
            (counter id, registration id) of a bound.
        file_io_max_length: longest read, if it is less than the worker's.
        answer: a publication and the OK that is sent on it when all checks have passed; None:
            the conductor sends it.
        archive_dir: of the segment files; the worker's when None.
    """

    replay_session_id: int
    recording_id: int
    replay_position: int
    replay_length: int
    start_position: int
    stop_position: int
    segment_length: int
    term_length: int
    stream_id: int
    channel: str
    connect_timeout_ns: int
    limit_counter: Counter | tuple[int, int] | None = None
    file_io_max_length: int | None = None
    answer: tuple[ExclusivePublication, bytes] | None = None
    archive_dir: str | PathLike[str] | None = None
