"""The archive's client: `connect` to any Aeron archive and ask it everything, from Python."""

from aerotape.archive.client.async_client import AsyncArchiveClient, connect_async
from aerotape.archive.client.channels import extension_channel
from aerotape.archive.client.client import ArchiveClient, connect
from aerotape.archive.client.credentials import Credentials, UserSecret
from aerotape.archive.client.persistent import (
    PersistentSubscription,
    persistent_subscription,
)
from aerotape.archive.client.persistent_terms import PersistentEvent, PersistentState
from aerotape.archive.client.query_requests import RecordingSubscription
from aerotape.archive.client.replay import Replay
from aerotape.archive.client.replay_merge import ReplayMerge
from aerotape.archive.client.signals import RecordingSignalEvent
from aerotape.archive.protocol import ErrorCode
from aerotape.codecs.archive import RecordingSignal, SourceLocation

__all__ = [
    "ArchiveClient",
    "AsyncArchiveClient",
    "Credentials",
    "ErrorCode",
    "PersistentEvent",
    "PersistentState",
    "PersistentSubscription",
    "RecordingSignal",
    "RecordingSignalEvent",
    "RecordingSubscription",
    "Replay",
    "ReplayMerge",
    "SourceLocation",
    "UserSecret",
    "connect",
    "connect_async",
    "extension_channel",
    "persistent_subscription",
]
