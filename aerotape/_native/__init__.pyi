"""The interface of the native core for Python.

Units are in the names: positions and lengths are bytes, `_ns` nanoseconds, `_ms` milliseconds.
Every call that can wait releases the interpreter. Failures are the classes of `aerotape.errors`.
The modules named here are parts of this stub, not of the native core.
"""

from aerotape._native._aeron import (
    AeronClient as AeronClient,
)
from aerotape._native._aeron import (
    Counter as Counter,
)
from aerotape._native._aeron import (
    CountersReader as CountersReader,
)
from aerotape._native._aeron import (
    Event as Event,
)
from aerotape._native._aeron import (
    ExclusivePublication as ExclusivePublication,
)
from aerotape._native._aeron import (
    Image as Image,
)
from aerotape._native._aeron import (
    Mailbox as Mailbox,
)
from aerotape._native._aeron import (
    MediaDriver as MediaDriver,
)
from aerotape._native._aeron import (
    MessageReader as MessageReader,
)
from aerotape._native._aeron import (
    PendingCounter as PendingCounter,
)
from aerotape._native._aeron import (
    PendingDestination as PendingDestination,
)
from aerotape._native._aeron import (
    PendingExclusivePublication as PendingExclusivePublication,
)
from aerotape._native._aeron import (
    PendingPublication as PendingPublication,
)
from aerotape._native._aeron import (
    PendingSubscription as PendingSubscription,
)
from aerotape._native._aeron import (
    Publication as Publication,
)
from aerotape._native._aeron import (
    Sending as Sending,
)
from aerotape._native._aeron import (
    Subscription as Subscription,
)
from aerotape._native._aeron import (
    _CounterRow as _CounterRow,
)
from aerotape._native._aeron import (
    _Message as _Message,
)
from aerotape._native._aeron import (
    _Pending as _Pending,
)
from aerotape._native._aeron import (
    _PublicationBase as _PublicationBase,
)
from aerotape._native._files import (
    BadFrame as BadFrame,
)
from aerotape._native._files import (
    ChecksumName as ChecksumName,
)
from aerotape._native._files import (
    ReferenceCheck as ReferenceCheck,
)
from aerotape._native._files import (
    RewrittenSegment as RewrittenSegment,
)
from aerotape._native._files import (
    SegmentCheck as SegmentCheck,
)
from aerotape._native._files import (
    SegmentWalk as SegmentWalk,
)
from aerotape._native._files import (
    _RewriteTask as _RewriteTask,
)
from aerotape._native._files import (
    _SegmentTask as _SegmentTask,
)
from aerotape._native._files import (
    check_segments as check_segments,
)
from aerotape._native._files import (
    checksum as checksum,
)
from aerotape._native._files import (
    decode_time_points as decode_time_points,
)
from aerotape._native._files import (
    find_descriptors as find_descriptors,
)
from aerotape._native._files import (
    list_segments as list_segments,
)
from aerotape._native._files import (
    read_segment_heads as read_segment_heads,
)
from aerotape._native._files import (
    reference_check as reference_check,
)
from aerotape._native._files import (
    rewrite_checksums as rewrite_checksums,
)
from aerotape._native._files import (
    running_extremes as running_extremes,
)
from aerotape._native._files import (
    walk_segment as walk_segment,
)
from aerotape._native._raft import (
    RaftRecords as RaftRecords,
)
from aerotape._native._raft import (
    RaftSegmentCheck as RaftSegmentCheck,
)
from aerotape._native._raft import (
    _RaftFinding as _RaftFinding,
)
from aerotape._native._raft import (
    _RaftSegmentTask as _RaftSegmentTask,
)
from aerotape._native._raft import (
    decode_raft_records as decode_raft_records,
)
from aerotape._native._raft import (
    raft_record_schema as raft_record_schema,
)
from aerotape._native._raft import (
    scan_raft_records as scan_raft_records,
)
from aerotape._native._raft import (
    verify_raft_segments as verify_raft_segments,
)
from aerotape._native._recorder import (
    LedgerWriter as LedgerWriter,
)
from aerotape._native._recorder import (
    ReplayProgress as ReplayProgress,
)
from aerotape._native._recorder import (
    SessionWorker as SessionWorker,
)
from aerotape._native._recorder import (
    decode_entry as decode_entry,
)
from aerotape._native._recorder import (
    decode_entry_header as decode_entry_header,
)
from aerotape._native._recorder import (
    encode_entry as encode_entry,
)
from aerotape._native._scan import (
    SCAN_COLUMNS as SCAN_COLUMNS,
)
from aerotape._native._scan import (
    ArrowArray as ArrowArray,
)
from aerotape._native._scan import (
    ArrowRecordBatch as ArrowRecordBatch,
)
from aerotape._native._scan import (
    ArrowSchema as ArrowSchema,
)
from aerotape._native._scan import (
    RecordingCounts as RecordingCounts,
)
from aerotape._native._scan import (
    RecordingPass as RecordingPass,
)
from aerotape._native._scan import (
    SbeDecoder as SbeDecoder,
)
from aerotape._native._scan import (
    SegmentScan as SegmentScan,
)
from aerotape._native._scan import (
    _Range as _Range,
)
from aerotape._native._scan import (
    _RecordedMessage as _RecordedMessage,
)
from aerotape._native._scan import (
    entity_journals as entity_journals,
)
from aerotape._native._scan import (
    single_append as single_append,
)
from aerotape._native._scan import (
    string_hash as string_hash,
)
