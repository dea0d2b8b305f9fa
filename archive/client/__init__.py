"""The archive's client: `connect` to any Aeron archive and ask it everything, from Python.

What is named here is loaded when it is first used: an archive needs parts of this package, too,
and not asyncio for them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aerotape.archive.client.async_client import AsyncArchiveClient, connect_async
    from aerotape.archive.client.async_streams import AsyncMessages, AsyncReplay, AsyncSignals
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
    from aerotape.archive.client.replay_merge import MergeState, ReplayMerge
    from aerotape.archive.client.signal_stream import Signals
    from aerotape.archive.client.signals import RecordingSignalEvent
    from aerotape.archive.protocol import ErrorCode
    from aerotape.codecs.archive import RecordingSignal, SourceLocation

_LAZY = {
    "ArchiveClient": "aerotape.archive.client.client",
    "AsyncArchiveClient": "aerotape.archive.client.async_client",
    "AsyncMessages": "aerotape.archive.client.async_streams",
    "AsyncReplay": "aerotape.archive.client.async_streams",
    "AsyncSignals": "aerotape.archive.client.async_streams",
    "Credentials": "aerotape.archive.client.credentials",
    "ErrorCode": "aerotape.archive.protocol",
    "MergeState": "aerotape.archive.client.replay_merge",
    "PersistentEvent": "aerotape.archive.client.persistent_terms",
    "PersistentState": "aerotape.archive.client.persistent_terms",
    "PersistentSubscription": "aerotape.archive.client.persistent",
    "RecordingSignal": "aerotape.codecs.archive",
    "RecordingSignalEvent": "aerotape.archive.client.signals",
    "RecordingSubscription": "aerotape.archive.client.query_requests",
    "Replay": "aerotape.archive.client.replay",
    "ReplayMerge": "aerotape.archive.client.replay_merge",
    "Signals": "aerotape.archive.client.signal_stream",
    "SourceLocation": "aerotape.codecs.archive",
    "UserSecret": "aerotape.archive.client.credentials",
    "connect": "aerotape.archive.client.client",
    "connect_async": "aerotape.archive.client.async_client",
    "extension_channel": "aerotape.archive.client.channels",
    "persistent_subscription": "aerotape.archive.client.persistent",
}

__all__ = [
    "ArchiveClient",
    "AsyncArchiveClient",
    "AsyncMessages",
    "AsyncReplay",
    "AsyncSignals",
    "Credentials",
    "ErrorCode",
    "MergeState",
    "PersistentEvent",
    "PersistentState",
    "PersistentSubscription",
    "RecordingSignal",
    "RecordingSignalEvent",
    "RecordingSubscription",
    "Replay",
    "ReplayMerge",
    "Signals",
    "SourceLocation",
    "UserSecret",
    "connect",
    "connect_async",
    "extension_channel",
    "persistent_subscription",
]


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
