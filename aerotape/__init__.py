"""Record Aeron streams, keep them, replay them, and take them to Spark.

    with aerotape.Archive.launch(dir="archive") as archive: ...     the archive itself
    with aerotape.connect() as client: ...                          a client of any Aeron archive
    aerotape.open_directory("archive").recordings()                 offline, read-only

What is named here is loaded when it is first used, so that a tool that only reads files does not
start with an Aeron client.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from aerotape.errors import (
    ActiveListingError,
    ActiveRecordingError,
    ActiveSubscriptionError,
    AeronError,
    AeronTimeoutError,
    AerotapeError,
    ArchiveError,
    ArchiveInUseError,
    AuthenticationError,
    CatalogError,
    ClosedError,
    CodecError,
    ConfigurationError,
    EmptyRecordingError,
    InvalidExtensionError,
    InvalidPositionError,
    LimitError,
    MarkFileError,
    PersistentSubscriptionError,
    ReplayError,
    ReplicationConnectionError,
    SegmentError,
    StorageError,
    StorageSpaceError,
    UnauthorisedError,
    UnknownRecordingError,
    UnknownReplayError,
    UnknownReplicationError,
    UnknownSubscriptionError,
)

if TYPE_CHECKING:
    from aerotape.aeron import (
        Aeron,
        ExclusivePublication,
        MediaDriver,
        Publication,
        Subscription,
    )
    from aerotape.archive.archive import Archive
    from aerotape.archive.client import (
        ArchiveClient,
        AsyncArchiveClient,
        AsyncMessages,
        AsyncReplay,
        AsyncSignals,
        Credentials,
        ErrorCode,
        MergeState,
        PersistentEvent,
        PersistentState,
        PersistentSubscription,
        RecordingSignal,
        RecordingSignalEvent,
        RecordingSubscription,
        Replay,
        ReplayMerge,
        Signals,
        SourceLocation,
        UserSecret,
        connect,
        connect_async,
        extension_channel,
        persistent_subscription,
    )
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.catalog.directory import ArchiveDirectory, Recording, open_directory
    from aerotape.message import Message
    from aerotape.replay.statistics import RecordingStatistics

__version__ = "0.1.0"

_LAZY = {
    "Aeron": "aerotape.aeron",
    "Archive": "aerotape.archive.archive",
    "ArchiveClient": "aerotape.archive.client",
    "ArchiveDirectory": "aerotape.catalog.directory",
    "AsyncArchiveClient": "aerotape.archive.client",
    "AsyncMessages": "aerotape.archive.client",
    "AsyncReplay": "aerotape.archive.client",
    "AsyncSignals": "aerotape.archive.client",
    "Credentials": "aerotape.archive.client",
    "ErrorCode": "aerotape.archive.client",
    "ExclusivePublication": "aerotape.aeron",
    "MediaDriver": "aerotape.aeron",
    "MergeState": "aerotape.archive.client",
    "Message": "aerotape.message",
    "PersistentEvent": "aerotape.archive.client",
    "PersistentState": "aerotape.archive.client",
    "PersistentSubscription": "aerotape.archive.client",
    "Publication": "aerotape.aeron",
    "Recording": "aerotape.catalog.directory",
    "RecordingDescriptor": "aerotape.catalog.descriptor",
    "RecordingSignal": "aerotape.archive.client",
    "RecordingSignalEvent": "aerotape.archive.client",
    "RecordingStatistics": "aerotape.replay.statistics",
    "RecordingSubscription": "aerotape.archive.client",
    "Replay": "aerotape.archive.client",
    "ReplayMerge": "aerotape.archive.client",
    "Signals": "aerotape.archive.client",
    "SourceLocation": "aerotape.archive.client",
    "Subscription": "aerotape.aeron",
    "UserSecret": "aerotape.archive.client",
    "connect": "aerotape.archive.client",
    "connect_async": "aerotape.archive.client",
    "extension_channel": "aerotape.archive.client",
    "open_directory": "aerotape.catalog.directory",
    "persistent_subscription": "aerotape.archive.client",
}

__all__ = [
    "ActiveListingError",
    "ActiveRecordingError",
    "ActiveSubscriptionError",
    "Aeron",
    "AeronError",
    "AeronTimeoutError",
    "AerotapeError",
    "Archive",
    "ArchiveClient",
    "ArchiveDirectory",
    "ArchiveError",
    "ArchiveInUseError",
    "AsyncArchiveClient",
    "AsyncMessages",
    "AsyncReplay",
    "AsyncSignals",
    "AuthenticationError",
    "CatalogError",
    "ClosedError",
    "CodecError",
    "ConfigurationError",
    "Credentials",
    "EmptyRecordingError",
    "ErrorCode",
    "ExclusivePublication",
    "InvalidExtensionError",
    "InvalidPositionError",
    "LimitError",
    "MarkFileError",
    "MediaDriver",
    "MergeState",
    "Message",
    "PersistentEvent",
    "PersistentState",
    "PersistentSubscription",
    "PersistentSubscriptionError",
    "Publication",
    "Recording",
    "RecordingDescriptor",
    "RecordingSignal",
    "RecordingSignalEvent",
    "RecordingStatistics",
    "RecordingSubscription",
    "Replay",
    "ReplayError",
    "ReplayMerge",
    "ReplicationConnectionError",
    "SegmentError",
    "Signals",
    "SourceLocation",
    "StorageError",
    "StorageSpaceError",
    "Subscription",
    "UnauthorisedError",
    "UnknownRecordingError",
    "UnknownReplayError",
    "UnknownReplicationError",
    "UnknownSubscriptionError",
    "UserSecret",
    "__version__",
    "connect",
    "connect_async",
    "extension_channel",
    "open_directory",
    "persistent_subscription",
]


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'aerotape' has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
