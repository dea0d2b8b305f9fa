"""Record Aeron streams, store them, replay them, and read them in Spark.

    with aerotape.Archive.launch(dir="archive") as archive: ...     the archive itself
    with aerotape.connect() as client: ...                          a client of any Aeron archive
    aerotape.open_directory("archive").recordings()                 offline, read-only

Names are loaded on first use, so that a tool that only reads files does not load an Aeron client.
"""

# ruff: noqa: I001  # `X as X` makes a name public for type checkers

from __future__ import annotations

import importlib
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from aerotape.errors import (
    ActiveListingError as ActiveListingError,
    ActiveRecordingError as ActiveRecordingError,
    ActiveSubscriptionError as ActiveSubscriptionError,
    AeronError as AeronError,
    AeronTimeoutError as AeronTimeoutError,
    AerotapeError as AerotapeError,
    ArchiveError as ArchiveError,
    ArchiveInUseError as ArchiveInUseError,
    AuthenticationError as AuthenticationError,
    CatalogError as CatalogError,
    ClosedError as ClosedError,
    CodecError as CodecError,
    ConfigurationError as ConfigurationError,
    EmptyRecordingError as EmptyRecordingError,
    EntityError as EntityError,
    EntryDigestError as EntryDigestError,
    EntryError as EntryError,
    EntryFormatError as EntryFormatError,
    EntryMismatchError as EntryMismatchError,
    EntryTooShortError as EntryTooShortError,
    IllegalOperationError as IllegalOperationError,
    InvalidExtensionError as InvalidExtensionError,
    InvalidPositionError as InvalidPositionError,
    JournalError as JournalError,
    LedgerClosedError as LedgerClosedError,
    LedgerError as LedgerError,
    LedgerExistsError as LedgerExistsError,
    LedgerInUseError as LedgerInUseError,
    LedgerPasswordError as LedgerPasswordError,
    LimitError as LimitError,
    MarkFileError as MarkFileError,
    PersistentSubscriptionError as PersistentSubscriptionError,
    QualifiedIdError as QualifiedIdError,
    ReplayError as ReplayError,
    ReplicationConnectionError as ReplicationConnectionError,
    SegmentError as SegmentError,
    StorageError as StorageError,
    StorageSpaceError as StorageSpaceError,
    UnauthorisedError as UnauthorisedError,
    UnconfirmedEntryError as UnconfirmedEntryError,
    UnknownLedgerError as UnknownLedgerError,
    UnknownRecordingError as UnknownRecordingError,
    UnknownReplayError as UnknownReplayError,
    UnknownReplicationError as UnknownReplicationError,
    UnknownSubscriptionError as UnknownSubscriptionError,
)

if TYPE_CHECKING:
    from aerotape.aeron import (
        Aeron as Aeron,
        ExclusivePublication as ExclusivePublication,
        Publication as Publication,
        Subscription as Subscription,
    )
    from aerotape.archive.archive import Archive as Archive
    from aerotape.archive.client.async_client import (
        AsyncArchiveClient as AsyncArchiveClient,
        connect_async as connect_async,
    )
    from aerotape.archive.client.asynchronous.replays import AsyncReplay as AsyncReplay
    from aerotape.archive.client.asynchronous.streams import AsyncSignals as AsyncSignals
    from aerotape.archive.client.blocking.ledgers import (
        LedgerReader as LedgerReader,
        LedgerWriter as LedgerWriter,
    )
    from aerotape.archive.client.blocking.replays import Replay as Replay
    from aerotape.archive.client.blocking.streams import Signals as Signals
    from aerotape.archive.client.channels import extension_channel as extension_channel
    from aerotape.archive.client.client import (
        ArchiveClient as ArchiveClient,
        connect as connect,
    )
    from aerotape.archive.client.credentials import (
        Credentials as Credentials,
        UserSecret as UserSecret,
    )
    from aerotape.archive.client.event_loop import AsyncMessages as AsyncMessages
    from aerotape.archive.client.ledger.requests import LedgerInfo as LedgerInfo
    from aerotape.archive.client.live.persistent_subscription import (
        PersistentSubscription as PersistentSubscription,
        persistent_subscription as persistent_subscription,
    )
    from aerotape.archive.client.live.persistent_types import (
        PersistentEvent as PersistentEvent,
        PersistentState as PersistentState,
    )
    from aerotape.archive.client.live.replay_merge import (
        MergeState as MergeState,
        ReplayMerge as ReplayMerge,
    )
    from aerotape.archive.client.session.signals import RecordingSignalEvent as RecordingSignalEvent
    from aerotape.archive.client.requests.queries import (
        RecordingSubscription as RecordingSubscription,
    )
    from aerotape.catalog.descriptor import RecordingDescriptor as RecordingDescriptor
    from aerotape.codecs.generated.archive import (
        RecordingSignal as RecordingSignal,
        SourceLocation as SourceLocation,
    )
    from aerotape.media_driver import MediaDriver as MediaDriver
    from aerotape.message import Message as Message
    from aerotape.protocol import ErrorCode as ErrorCode
    from aerotape.qualified_id import QualifiedId as QualifiedId
    from aerotape.replay.offline.directory import (
        ArchiveDirectory as ArchiveDirectory,
        Recording as Recording,
        open_directory as open_directory,
    )
    from aerotape.replay.offline.polars_source import scan_polars as scan_polars
    from aerotape.replay.statistics.model import RecordingStatistics as RecordingStatistics

__version__ = "0.1.0"

# Where the extension is missing, Python takes the folder of its stubs for an empty package.
_extension = PathFinder.find_spec(f"{__name__}._native", __path__)
if _extension is None or _extension.origin is None:
    raise ImportError(
        f"aerotape's native extension is missing in {__path__[0]}: run `make setup` in the checkout"
    )

# The public names of each module that is loaded on first use.
_LAZY = {
    "aerotape.aeron": ("Aeron", "ExclusivePublication", "Publication", "Subscription"),
    "aerotape.archive.archive": ("Archive",),
    "aerotape.archive.client.async_client": ("AsyncArchiveClient", "connect_async"),
    "aerotape.archive.client.asynchronous.replays": ("AsyncReplay",),
    "aerotape.archive.client.asynchronous.streams": ("AsyncSignals",),
    "aerotape.archive.client.blocking.ledgers": ("LedgerReader", "LedgerWriter"),
    "aerotape.archive.client.blocking.replays": ("Replay",),
    "aerotape.archive.client.blocking.streams": ("Signals",),
    "aerotape.archive.client.channels": ("extension_channel",),
    "aerotape.archive.client.client": ("ArchiveClient", "connect"),
    "aerotape.archive.client.credentials": ("Credentials", "UserSecret"),
    "aerotape.archive.client.event_loop": ("AsyncMessages",),
    "aerotape.archive.client.live.persistent_subscription": (
        "PersistentSubscription",
        "persistent_subscription",
    ),
    "aerotape.archive.client.live.persistent_types": ("PersistentEvent", "PersistentState"),
    "aerotape.archive.client.live.replay_merge": ("MergeState", "ReplayMerge"),
    "aerotape.archive.client.ledger.requests": ("LedgerInfo",),
    "aerotape.archive.client.session.signals": ("RecordingSignalEvent",),
    "aerotape.archive.client.requests.queries": ("RecordingSubscription",),
    "aerotape.catalog.descriptor": ("RecordingDescriptor",),
    "aerotape.codecs.generated.archive": ("RecordingSignal", "SourceLocation"),
    "aerotape.media_driver": ("MediaDriver",),
    "aerotape.message": ("Message",),
    "aerotape.protocol": ("ErrorCode",),
    "aerotape.qualified_id": ("QualifiedId",),
    "aerotape.replay.offline.directory": ("ArchiveDirectory", "Recording", "open_directory"),
    "aerotape.replay.offline.polars_source": ("scan_polars",),
    "aerotape.replay.statistics.model": ("RecordingStatistics",),
}
_MODULES = {name: module for module, names in _LAZY.items() for name in names}

if not TYPE_CHECKING:  # type checkers read the imports, and no computed list
    __all__ = sorted(
        {"__version__", *_MODULES, *(each for each in globals() if each.endswith("Error"))}
    )


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'aerotape' has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
