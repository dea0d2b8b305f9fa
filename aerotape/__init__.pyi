"""The public names of the package, for type checkers; `__init__.py` has the same."""

# ruff: noqa: E501, I001
# fmt: off

from aerotape.aeron import Aeron as Aeron
from aerotape.aeron import ExclusivePublication as ExclusivePublication
from aerotape.aeron import Publication as Publication
from aerotape.aeron import Subscription as Subscription
from aerotape.archive.archive import Archive as Archive
from aerotape.clients import AsyncArchiveClient as AsyncArchiveClient
from aerotape.clients import connect_async as connect_async
from aerotape.client.asynchronous.replays import AsyncReplay as AsyncReplay
from aerotape.client.asynchronous.streams import AsyncSignals as AsyncSignals
from aerotape.client.blocking.ledgers import LedgerReader as LedgerReader
from aerotape.client.blocking.ledgers import LedgerWriter as LedgerWriter
from aerotape.client.blocking.replays import Replay as Replay
from aerotape.client.blocking.streams import Signals as Signals
from aerotape.catalog.descriptor import extension_channel as extension_channel
from aerotape.clients import ArchiveClient as ArchiveClient
from aerotape.clients import connect as connect
from aerotape.client.credentials import Credentials as Credentials
from aerotape.client.credentials import UserSecret as UserSecret
from aerotape.client.event_loop import AsyncMessages as AsyncMessages
from aerotape.client.ledger.requests import LedgerInfo as LedgerInfo
from aerotape.client.ledger.requests import LedgerMirror as LedgerMirror
from aerotape.client.live.persistent_subscription import PersistentSubscription as PersistentSubscription
from aerotape.client.live.persistent_subscription import persistent_subscription as persistent_subscription
from aerotape.client.live.persistent_types import PersistentEvent as PersistentEvent
from aerotape.client.live.persistent_types import PersistentState as PersistentState
from aerotape.client.live.replay_merge import MergeState as MergeState
from aerotape.client.live.replay_merge import ReplayMerge as ReplayMerge
from aerotape.client.queries import RecordingSubscription as RecordingSubscription
from aerotape.client.session.signals import RecordingSignalEvent as RecordingSignalEvent
from aerotape.catalog.descriptor import RecordingDescriptor as RecordingDescriptor
from aerotape.codecs.generated.archive import RecordingSignal as RecordingSignal
from aerotape.codecs.generated.archive import SourceLocation as SourceLocation
from aerotape.errors import AeronError as AeronError
from aerotape.errors import AeronTimeoutError as AeronTimeoutError
from aerotape.errors import AerotapeError as AerotapeError
from aerotape.errors import ArchiveError as ArchiveError
from aerotape.errors import ClosedError as ClosedError
from aerotape.errors import CodecError as CodecError
from aerotape.errors import ConfigurationError as ConfigurationError
from aerotape.errors import EntityError as EntityError
from aerotape.errors import JournalError as JournalError
from aerotape.errors import LedgerError as LedgerError
from aerotape.errors import StorageError as StorageError
from aerotape.media_driver import MediaDriver as MediaDriver
from aerotape.message import Message as Message
from aerotape.protocol import ErrorCode as ErrorCode
from aerotape.qualified_id import QualifiedId as QualifiedId
from aerotape.replay.offline.directory import ArchiveDirectory as ArchiveDirectory
from aerotape.replay.offline.directory import Recording as Recording
from aerotape.replay.offline.directory import open_directory as open_directory
from aerotape.replay.offline.polars_source import scan_polars as scan_polars
from aerotape.replay.statistics.model import RecordingStatistics as RecordingStatistics

__all__: list[str]
__version__: str
