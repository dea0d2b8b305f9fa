"""Stub of the native core: recorder, replayer, writer of ledgers."""

from collections.abc import Sequence
from os import PathLike
from typing import Final, Literal, final

from typing_extensions import Buffer

from aerotape._native._aeron import Counter, ExclusivePublication, Image, Mailbox
from aerotape._native._files import ChecksumName

# ---- worker/ (recorder and replayer) -----------------------------------------------------------

@final
class ReplayProgress:
    """The position of a replay; it stays readable when the replay has ended."""

    position: Final[int]
    """Position of the next frame to replay."""

@final
class SessionWorker:
    """One native thread that runs recording sessions, replay sessions, or both.

    SHARED mode has one worker for both; DEDICATED mode one for each kind.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        *,
        name: str,
        archive_dir: str,
        file_io_max_length: int = 1_048_576,
        file_sync_level: int = 0,
        record_checksum: ChecksumName = "none",
        replay_checksum: ChecksumName = "none",
        idle: tuple[int, int, int, int] = (10, 20, 1_000, 1_000_000),
        write_counters: tuple[Counter, Counter, Counter] | None = None,
        read_counters: tuple[Counter, Counter, Counter] | None = None,
        cycle_counters: tuple[Counter, Counter, int] | None = None,
    ) -> None:
        """Start the thread.

        Args:
            idle: spins, yields, min park ns, max park ns.
            write_counters: statistics of what recordings write: longest time for one block
                (ns), total bytes, total time (ns).
            read_counters: the same for what replays read.
            cycle_counters: longest duty cycle (ns), count of cycles longer than a threshold, that
                threshold (ns). Without a session no cycles are counted. Other workers may use the
                same counters.
        """
    def record(
        self,
        image: Image,
        position_counter: Counter,
        *,
        recording_id: int,
        start_position: int,
        segment_length: int,
        events: tuple[bytes, bytes, bytes] | None = None,
        time_index: tuple[str, bytes, bool, int, int] | None = None,
        durability: Literal["pd", "vd"] | None = None,
        confirmed_counter: Counter | None = None,
    ) -> None:
        """Record `image` until it ends or `stop_recording`; then post `RecordingStopped`.

        The worker takes over the image. The counter is set (release) to the position that
        has been written, and at sync levels 1 and 2 made durable. Creating or writing a
        segment that fails stops the recording at its last whole frame, with an error.
        With a `durability` the position counter is at the written position whatever the sync
        level of the worker, and `confirmed_counter` at the durable one: "pd" makes durable all
        that is written, continuously; "vd" only what is written when `request_sync` is called.
        Either is durable to its end before `RecordingStopped` is posted. If making it durable
        fails, any recording stops at its durable position, with an error.
        `start_position` is the recording's; writing begins at the image's join position.
        `events` are the messages RecordingStarted, RecordingProgress and RecordingStopped for
        `publish_events`; the position at the end of the last two is filled in here.
        `time_index` is the path of the file of times and positions, the header of a new file,
        whether an existing file is another recording's and is replaced, and the least distance of
        its points in nanoseconds and in bytes; the bytes do not count after ten times as long. A
        file that cannot be written is reported with `TimeIndexFailed`, once; the recording
        continues.
        """
    def publish_events(self, publication: ExclusivePublication) -> None:
        """Publish events of recordings that begin from now on to `publication`, which the worker
        takes over. Events that it does not accept at once are dropped: progress is published
        again with the next position, start and stop are not.
        """
    def stop_recording(self, recording_id: int) -> None: ...
    def request_sync(self, recording_id: int) -> None:
        """Make durable what has been written of a recording in progress that is synced.

        Then `RecordingSynced` is posted, with a durable position that is not less than the
        written one at this call; if the recording ends before, only `RecordingStopped`.
        """
    def replay(
        self,
        publication: ExclusivePublication,
        *,
        replay_session_id: int,
        recording_id: int,
        replay_position: int,
        replay_length: int,
        start_position: int,
        stop_position: int,
        segment_length: int,
        term_length: int,
        stream_id: int,
        connect_timeout_ns: int,
        limit_counter: Counter | tuple[int, int] | None = None,
        file_io_max_length: int | None = None,
        answer: tuple[ExclusivePublication, bytes] | None = None,
        archive_dir: str | PathLike[str] | None = None,
    ) -> ReplayProgress:
        """Replay into `publication`, which the worker takes over and closes (revokes when the
        replay is aborted, as the reference does).

        `stream_id` is that of the recorded frames. `limit_counter` makes the replay follow: the
        position counter of a live recording, or (counter id, registration id) of a bound.
        `answer` is sent when all checks have passed, where that can be done at once.
        `archive_dir` is the directory of the segment files, the worker's when None.
        """
    def stop_replay(self, replay_session_id: int) -> None: ...
    def close(self) -> None:
        """Stop all sessions (their last events are posted) and join the thread."""

# ---- ledger/entry.rs ---------------------------------------------------------------------------

def encode_entry(
    scope_id: int,
    ledger_id: int,
    entry_id: int,
    last_add_confirmed: int,
    length: int,
    payload: Buffer,
    digest_type: str,
    password: bytes,
) -> bytes:
    """Encode an entry of a ledger (EntryFormatError: unknown digest type)."""

def decode_entry(
    data: Buffer,
    digest_type: str | None,
    password: bytes,
    scope_id: int | None = None,
    ledger_id: int | None = None,
    entry_id: int | None = None,
) -> tuple[int, int, int, int, bytes, str, int]:
    """Decode an entry, check its digest and compare its ids (children of EntryError).

    Returns ledger id, entry id, last add confirmed, length, payload, digest type, scope id.
    """

def decode_entry_header(data: Buffer) -> tuple[int, int, int, int, str | None, int, int]:
    """Decode what an entry has before its digest, which is not checked.

    Returns ledger id, entry id, last add confirmed, length, digest type if the entry names one,
    scope id, offset of the digest. EntryTooShortError, EntryFormatError.
    """

# ---- ledger/writer.rs --------------------------------------------------------------------------

@final
class LedgerWriter:
    """Adds payloads to a ledger: entries with ascending ids on a publication of the ledger's own.

    For one thread at a time, except `confirm` and the properties.
    """

    def __init__(
        self,
        publication: ExclusivePublication,
        scope_id: int,
        ledger_id: int,
        digest_type: str,
        password: bytes,
        next_entry_id: int,
        length: int,
        last_add_confirmed: int,
    ) -> None:
        """Continue a ledger with `next_entry_id`, after `length` bytes of payload.

        Entries of an earlier writer that are not confirmed yet count as confirmed with the
        position at which the publication begins.
        """
    def add(self, payload: Buffer, timeout_ns: int = 0) -> tuple[int, int]:
        """Add an entry, waiting up to `timeout_ns` for a subscriber and for room.

        Returns the entry's id and its position (after the entry). Where it could not be added,
        the last id added and the negative result of the offer. AeronError: payload too long.
        """
    def add_many(self, payloads: Sequence[Buffer], timeout_ns: int = 0) -> tuple[int, int]:
        """Add entries in order, waiting up to `timeout_ns` in total.

        Returns the last entry's id and its position. Where not all could be added, the last id
        that was, and the negative result of the next offer. AeronError: a payload is too long;
        none is added.
        """
    def confirm(self, position: int) -> int:
        """Take entries that end up to `position` as confirmed; return the last add confirmed.

        Entries carry it from then on. It never decreases. With more than a million unconfirmed
        entries it may be lower than that of the position, until all are confirmed.
        """
    last_add_pushed: Final[int]
    """The last entry id added, -1 for none."""
    last_add_confirmed: Final[int]
    position: Final[int]
    """After the last entry, bytes; -1 once the publication is closed."""
    length: Final[int]
    """Payload bytes of the ledger."""
    max_payload_length: Final[int]
    """Bytes."""
