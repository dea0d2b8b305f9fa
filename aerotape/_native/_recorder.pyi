"""Stub of the native core: recorder, replayer, writer of ledgers."""

from collections.abc import Sequence
from typing import Final, final

from typing_extensions import Buffer

from aerotape._native._aeron import Counter, ExclusivePublication, Image, Mailbox
from aerotape.worker_arguments import RecordArguments, ReplayArguments, WorkerOptions

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

    def __init__(self, mailbox: Mailbox, options: WorkerOptions) -> None:
        """Start the thread."""
    def record(self, image: Image, position_counter: Counter, arguments: RecordArguments) -> None:
        """Record `image` until it ends or `stop_recording`; then post `RecordingStopped`.

        The worker takes over the image, and discards what follows the end of the recording. The
        counter is set (release) to the position that has been written, and at sync levels 1 and 2
        made durable. Creating or writing a segment that fails stops the recording at its last whole
        frame, with an error; if making it durable fails, any recording stops at its durable
        position. A time index that cannot be written is reported with `TimeIndexFailed`, once; the
        recording continues.
        """
    def publish_events(self, publication: ExclusivePublication) -> None:
        """Publish events of recordings that begin from now on to `publication`, which the worker
        takes over. Events that it does not accept at once are dropped: progress is published
        again with the next position, start and stop are not.
        """
    def stop_recording(self, recording_id: int, position: int = 0, timeout_ns: int = 0) -> None:
        """Stop a recording when it has reached `position`, bytes, or after the timeout.

        By default it stops at once. Of its image, what follows is discarded.
        """
    def discard(self, image: Image) -> None:
        """Read `image` without recording it, so that its publisher does not wait for it, until it
        ends or its subscription is closed. The worker takes over the image.
        """
    def request_sync(self, recording_id: int) -> None:
        """Make durable what has been written of a recording in progress that is synced.

        Then `RecordingSynced` is posted, with a durable position that is not less than the
        written one at this call; if the recording ends before, only `RecordingStopped`.
        """
    def replay(
        self, publication: ExclusivePublication, arguments: ReplayArguments
    ) -> ReplayProgress:
        """Replay into `publication`, which the worker takes over and closes (revokes when the
        replay is aborted, as the reference does).
        """
    def stop_replay(self, replay_session_id: int) -> None: ...
    def close(self) -> None:
        """Stop all sessions (their last events are posted) and join the thread."""

# ---- ledger/entry.rs ---------------------------------------------------------------------------

def encode_entry(
    header: tuple[int, int, int, int, int],
    payload: Buffer,
    digest_type: str,
    password: bytes,
) -> bytes:
    """Encode an entry of a ledger (EntryFormatError: unknown digest type).

    The header: scope id, ledger id, entry id, last add confirmed, length.
    """

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
        id: tuple[int, int],
        digest_type: str,
        password: bytes,
        next_entry_id: int,
        length: int,
        last_add_confirmed: int,
    ) -> None:
        """Continue a ledger with `next_entry_id`, after `length` bytes of payload.

        `id` is the scope and the id of the ledger.
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
