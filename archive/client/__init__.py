"""The archive's client: `connect` to any Aeron archive and ask it everything, from Python."""

from aerotape.archive.client.client import ArchiveClient, connect
from aerotape.archive.client.replay import Replay
from aerotape.archive.protocol import ErrorCode
from aerotape.codecs.archive import RecordingSignal, RecordingSignalEvent, SourceLocation

__all__ = [
    "ArchiveClient",
    "ErrorCode",
    "RecordingSignal",
    "RecordingSignalEvent",
    "Replay",
    "SourceLocation",
    "connect",
]
