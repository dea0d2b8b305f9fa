"""Every exception that aerotape raises on purpose, in one place.

All of them derive from `AerotapeError` and carry what a program needs to act on them: ids,
positions, paths, error codes. The native core raises the same classes
(`native/format/src/errors.rs`).
"""

from __future__ import annotations

import enum
import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from aerotape.url_path import named_path

if TYPE_CHECKING:
    from aerotape.qualified_id import QualifiedId

# ArchiveException.UNKNOWN_RECORDING
_UNKNOWN_RECORDING = 5


class AerotapeError(Exception):
    """Base of all errors of this package.

    Attributes:
        arguments: the arguments of Python functions that the message names, as it names them; a
            command names its options instead (`tools/_cli/option_names.py`).
    """

    arguments: tuple[str, ...] = ()

    def naming(self, *arguments: str) -> Self:
        """Set `arguments` and return this error."""
        self.arguments = arguments
        return self


class ConfigurationError(AerotapeError):
    """A property, option or argument has a value that cannot be used.

    Attributes:
        name: the property or option, for example ``aeron.archive.segment.file.length``.
    """

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class AeronError(AerotapeError):
    """The Aeron client or media driver refused a command.

    Attributes:
        code: Aeron's error code (errno values positive, Aeron's own negative).
    """

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class AeronTimeoutError(AerotapeError, TimeoutError):
    """An operation timed out."""


class ClosedError(AerotapeError):
    """The object was closed, or its driver or archive went away."""


class CodecError(AerotapeError):
    """Bytes are not a valid SBE message (too short, unknown template or schema)."""


class SchemaError(CodecError):
    """An SBE schema in XML has mistakes.

    Attributes:
        problems: each mistake, with its file, line and element.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        more = ""
        if len(problems) > 1:
            more = f" (and {len(problems) - 1} more: aerotape schema --check lists them)"
        super().__init__(f"{self.problems[0]}{more}")

    def __reduce__(self) -> tuple[type[SchemaError], tuple[tuple[str, ...]]]:
        return type(self), (self.problems,)


class QualifiedIdError(AerotapeError, ValueError):
    """A number or text is not the qualified id of a ledger."""


class EntryError(CodecError):
    """Bytes are not a valid, or not the expected, entry of a ledger."""


class EntryTooShortError(EntryError):
    """An entry is shorter than its header and digest."""


class EntryDigestError(EntryError):
    """An entry's digest does not fit its bytes, or is not of the ledger's digest type."""


class EntryMismatchError(EntryError):
    """An entry has another scope, ledger or entry id than the one that was asked for."""


class EntryFormatError(EntryError):
    """An entry has a version, digest type or flags that are not supported."""


class ArchiveError(AerotapeError):
    """An archive responded to a request with an error.

    Attributes:
        error_code: the archive's error code (`relevantId` of a ControlResponse with code ERROR).
        correlation_id: correlation id of the request.
    """

    def __init__(self, message: str, error_code: int = 0, correlation_id: int = -1) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.correlation_id = correlation_id


class ActiveListingError(ArchiveError):
    """The session already has an active listing (ACTIVE_LISTING)."""


class ActiveRecordingError(ArchiveError):
    """The recording is live, and the request needs a stopped one (ACTIVE_RECORDING)."""


class ActiveSubscriptionError(ArchiveError):
    """The channel and stream are being recorded already (ACTIVE_SUBSCRIPTION)."""


class UnknownSubscriptionError(ArchiveError):
    """There is no such recording subscription (UNKNOWN_SUBSCRIPTION)."""


class UnknownRecordingError(ArchiveError):
    """No valid recording has this id (UNKNOWN_RECORDING); raised for directories too.

    Attributes:
        recording_id: the requested id; -1 if the archive's response does not contain it.
    """

    def __init__(self, message: str, recording_id: int = -1, correlation_id: int = -1) -> None:
        super().__init__(message, _UNKNOWN_RECORDING, correlation_id)
        self.recording_id = recording_id


class UnknownReplayError(ArchiveError):
    """There is no such replay (UNKNOWN_REPLAY)."""


class UnknownReplicationError(ArchiveError):
    """There is no such replication (UNKNOWN_REPLICATION)."""


class LimitError(ArchiveError):
    """The maximum number of recordings or replays is reached (MAX_RECORDINGS, MAX_REPLAYS)."""


class InvalidExtensionError(ArchiveError):
    """The stream does not continue the recording to extend (INVALID_EXTENSION)."""


class AuthenticationError(ArchiveError):
    """The archive does not accept the credentials (AUTHENTICATION_REJECTED)."""


class UnauthorisedError(ArchiveError):
    """The client is not authorised for the request (UNAUTHORISED_ACTION)."""


class StorageSpaceError(ArchiveError):
    """The archive's storage is too full to record more (STORAGE_SPACE)."""


class ReplicationConnectionError(ArchiveError):
    """The archive cannot reach the source of a replication (REPLICATION_CONNECTION_FAILURE)."""


class EmptyRecordingError(ArchiveError):
    """The recording has no data to replay (EMPTY_RECORDING)."""


class InvalidPositionError(ArchiveError):
    """The recording cannot be used at this position (INVALID_POSITION)."""


class LedgerError(ArchiveError):
    """An archive refused a request for a ledger, or an add to it failed.

    Attributes:
        ledger: the ledger; None if unknown.
    """

    code = 0

    def __init__(
        self, message: str, ledger: QualifiedId | None = None, correlation_id: int = -1
    ) -> None:
        super().__init__(message, self.code, correlation_id)
        self.ledger = ledger

    @classmethod
    def lost_recording(cls, ledger: QualifiedId, recording_id: int) -> LedgerError:
        """Return the error of a ledger whose recording is not in the catalog."""
        return cls(
            f"ledger {ledger} has lost recording {recording_id}, which is not in the catalog:"
            " delete the ledger, or restore the recording",
            ledger,
        )


class IllegalOperationError(LedgerError):
    """The archive does not know scopes other than its own, nor ledgers (ILLEGAL_OP)."""

    code = 1_000


class UnknownLedgerError(LedgerError):
    """There is no such ledger (UNKNOWN_LEDGER)."""

    code = 1_001


class LedgerExistsError(LedgerError):
    """There is a ledger with this id already (LEDGER_EXISTS)."""

    code = 1_002


class LedgerClosedError(LedgerError):
    """Nothing can be added: the ledger was closed, or recovered by a client (LEDGER_CLOSED)."""

    code = 1_003


class LedgerFencedError(LedgerClosedError):
    """Another writer or another archive continues the ledger, which is closed for this writer.

    Adds that were not acknowledged may be lost (LEDGER_FENCED).
    """

    code = 1_007


class LedgerInUseError(LedgerError):
    """The ledger has a writer (LEDGER_IN_USE)."""

    code = 1_004

    @classmethod
    def of_ledger(cls, ledger: QualifiedId) -> LedgerInUseError:
        """Return the error for a request that needs a ledger without a writer."""
        return cls(f"ledger {ledger} has a writer: wait for its end, or recover the ledger", ledger)


class LedgerPasswordError(LedgerError):
    """The password of the ledger is wrong, or lost (LEDGER_PASSWORD)."""

    code = 1_005


class UnconfirmedEntryError(LedgerError):
    """The entry is not confirmed, so only `read_unconfirmed` may read it (UNCONFIRMED_ENTRY)."""

    code = 1_006


class DamagedEntryError(LedgerError, EntryDigestError):
    """An entry is damaged so that the archive cannot send it (DAMAGED_ENTRY).

    Attributes:
        begin: where the damaged part of the recording begins, bytes; -1: not known.
        end: where it ends, bytes.
    """

    code = 1_008
    begin = end = -1


class DataLossError(AerotapeError):
    """Data that a streaming query has not read was purged, or truncated and replaced.

    Attributes:
        recording_id: the recording.
        position: where the missing data begins, bytes.
    """

    def __init__(self, message: str, recording_id: int = -1, position: int = -1) -> None:
        super().__init__(message)
        self.recording_id = recording_id
        self.position = position


class PersistentSubscriptionError(AerotapeError):
    """A persistent subscription cannot continue.

    Attributes:
        reason: the kind of error.
        recording_id: its recording.
        position: how far the stream has been read, bytes; negative before.
    """

    class Reason(enum.Enum):
        """The reason why a persistent subscription cannot continue."""

        GENERIC = "generic"
        RECORDING_NOT_FOUND = "recording not found"
        STREAM_ID_MISMATCH = "stream id mismatch"
        INVALID_START_POSITION = "invalid start position"

    def __init__(
        self,
        message: str,
        reason: Reason = Reason.GENERIC,
        recording_id: int = -1,
        position: int = -1,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.recording_id = recording_id
        self.position = position


class ReplayError(ArchiveError):
    """A replay ended early: the archive aborted it, or a client stopped it.

    Attributes:
        error_code: the archive's error code, 0 (GENERIC) if it sent none.
        correlation_id: correlation id of the replay request.
        recording_id: the recording.
        replay_session_id: the replay.
        position: how far it was read, bytes.
    """

    def __init__(
        self,
        message: str,
        error_code: int = 0,
        correlation_id: int = -1,
        recording_id: int = -1,
        replay_session_id: int = -1,
        position: int = -1,
    ) -> None:
        super().__init__(message, error_code, correlation_id)
        self.recording_id = recording_id
        self.replay_session_id = replay_session_id
        self.position = position


class StorageError(AerotapeError):
    """A file of the archive directory could not be read or written.

    Attributes:
        path: the file.
    """

    def __init__(self, message: str, path: str | Path = "") -> None:
        super().__init__(message)
        self.path = named_path(path)


def reason_of(error: OSError) -> str:
    """Return the reason of a failed call; of too many open files with the limit, and what to do."""
    reason = str(error.strerror)
    if error.errno == errno.EMFILE:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        reason += (
            f": the process may have {limit}; raise its limit (`ulimit -n`, systemd's LimitNOFILE)"
        )
    return reason


class StorageErrors:
    """A context in which an OSError becomes a StorageError, or one of another kind."""

    def __init__(
        self,
        what: str,
        path: str | Path,
        kind: Callable[[str, str | Path], AerotapeError] = StorageError,
        *,
        names_file: bool = False,
    ) -> None:
        """Prepare the error: its message is `what` and the reason.

        Args:
            path: the file, or with `names_file` the directory.
            names_file: put the file of the OSError into the message and the error, if it has one.
        """
        self._what = what
        self._path = path
        self._kind = kind
        self._names_file = names_file

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, OSError):
            what, path = self._what, self._path
            if self._names_file:
                path = error.filename or path
                what = f"{what}: {path}"
            raise self._kind(f"{what}: {reason_of(error)}", path) from error


class SegmentError(StorageError):
    """A segment file has unexpected contents.

    Attributes:
        path: the segment file.
        offset: where in the file, bytes.
        position: where in the recording, bytes.
    """

    def __init__(
        self, message: str, path: str | Path = "", offset: int = -1, position: int = -1
    ) -> None:
        super().__init__(message, path)
        self.offset = offset
        self.position = position


class TableInUseError(StorageError):
    """Another job is writing to the table.

    Attributes:
        path: the table's folder.
        pid: process id of that job on its machine, or 0 if unknown.
    """

    def __init__(self, message: str, path: str | Path = "", pid: int = 0) -> None:
        super().__init__(message, path)
        self.pid = pid


class CatalogError(StorageError):
    """`archive.catalog` is missing, damaged or of a version that cannot be read."""


class MarkFileError(StorageError):
    """`archive-mark.dat` cannot be used."""


class ArchiveInUseError(MarkFileError):
    """Another archive is using the directory.

    Attributes:
        pid: process id of that archive, or 0 if the mark file has none.
    """

    def __init__(self, message: str, path: str | Path = "", pid: int = 0) -> None:
        super().__init__(message, path)
        self.pid = pid


class JournalError(StorageError):
    """A raft journal, or a record of one, is not as it must be.

    Attributes:
        path: the segment file or the directory; empty for a record outside a file.
        offset: where in the file, bytes; -1 if it is not about a place.
        index: the index of the record; -1 if it is not about a record.
    """

    def __init__(
        self, message: str, path: str | Path = "", offset: int = -1, index: int = -1
    ) -> None:
        super().__init__(message, path)
        self.offset = offset
        self.index = index


class UnknownVersionError(JournalError):
    """A record's frame, or a segment descriptor, has a version that is not known."""


class InvalidChecksumError(JournalError):
    """The checksum of a record or of a segment descriptor does not match its bytes."""


class InvalidIndexError(JournalError):
    """A record does not have the index that follows the previous record's."""


class InvalidAsqnError(JournalError):
    """A record's application sequence number is not above the last one."""


class InvalidTermError(JournalError):
    """A replicated record has a term that its journal cannot accept."""


class CorruptJournalError(JournalError):
    """Bytes of a journal are not what the format requires."""


class EntityError(AerotapeError):
    """A journal of an entity cannot be written or read.

    Attributes:
        topic: the journal's topic.
    """

    def __init__(self, message: str, topic: str = "") -> None:
        super().__init__(message)
        self.topic = topic


class UnknownTopicError(EntityError):
    """There is no such topic: no recording is one of its partitions."""


class SequenceConflictError(EntityError):
    """An append expected another last sequence number than the journal has; it added nothing.

    Attributes:
        id: the entity's id.
        expected: the last sequence number that was expected; 0: no journal.
        actual: the last one directly before the append in the log; 0: no journal.
    """

    def __init__(
        self, message: str, topic: str = "", id: str = "", expected: int = 0, actual: int = 0
    ) -> None:
        super().__init__(message, topic)
        self.id = id
        self.expected = expected
        self.actual = actual


class JournalChangedError(EntityError):
    """A journal was purged or shortened while it was read from a store; what was read has a gap."""


class EntityStoreError(AerotapeError):
    """An entity store is gone, refuses a statement, or has another schema version.

    Attributes:
        url: the store, without a password.
    """

    def __init__(self, message: str, url: str = "") -> None:
        super().__init__(message)
        self.url = url


class StoreLockedError(EntityStoreError):
    """Another replicator has the lock of the namespace of an entity store."""
