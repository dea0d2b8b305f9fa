"""Record Aeron streams, store them, replay them, and read them from Python and Spark.

An archive, and a client of it (of Aeron's Java archive, too):

    with aerotape.Archive.launch(dir="recordings") as archive:
        with aerotape.connect(aeron_dir=archive.aeron_dir) as client:
            client.start_recording("aeron:ipc", 1001)
            client.aeron.add_publication("aeron:ipc", 1001).send(b"hello")
            ...

The recordings of a directory, of this archive or a Java archive, which need not run:

    for recording in aerotape.open_directory("recordings").recordings():
        for message in recording.messages():
            print(message.position, message.payload)
        table = recording.to_arrow()          # also to_batches, stats, plot

`connect_async` is `connect` for asyncio, `Aeron` publishes and subscribes, `MediaDriver` runs a
driver alone. Errors are subclasses of `AerotapeError`; those of one situation are in
`aerotape.errors`. `aerotape.spark` has the Spark source. Names are loaded on first use, so that a
tool that only reads files does not load an Aeron client.
"""

from __future__ import annotations

import importlib as _importlib
from importlib.machinery import PathFinder as _PathFinder

from aerotape import errors as errors

__version__ = "0.1.0"

# Where the extension is missing, Python takes the folder of its stubs for an empty package.
_extension = _PathFinder.find_spec(f"{__name__}._native", __path__)
if _extension is None or _extension.origin is None:
    raise ImportError(
        f"aerotape's native extension is missing in {__path__[0]}: run `make setup` in the "
        "checkout, or leave it to import an installed aerotape"
    )

# The public names by the module that is loaded with the first of them; the stub has the same.
_NAMES = {
    "aerotape.aeron": ("Aeron", "ExclusivePublication", "Publication", "Subscription"),
    "aerotape.archive.archive": ("Archive",),
    "aerotape.catalog.descriptor": ("RecordingDescriptor", "extension_channel"),
    "aerotape.client.asynchronous.replays": ("AsyncReplay",),
    "aerotape.client.asynchronous.streams": ("AsyncSignals",),
    "aerotape.client.blocking.ledgers": ("LedgerReader", "LedgerWriter"),
    "aerotape.client.blocking.replays": ("Replay",),
    "aerotape.client.blocking.streams": ("Signals",),
    "aerotape.client.credentials": ("Credentials", "UserSecret"),
    "aerotape.client.event_loop": ("AsyncMessages",),
    "aerotape.client.ledger.requests": ("LedgerInfo", "LedgerMirror"),
    "aerotape.client.live.persistent_subscription": (
        "PersistentSubscription",
        "persistent_subscription",
    ),
    "aerotape.client.live.persistent_types": ("PersistentEvent", "PersistentState"),
    "aerotape.client.live.replay_merge": ("MergeState", "ReplayMerge"),
    "aerotape.client.queries": ("RecordingSubscription",),
    "aerotape.client.session.signals": ("RecordingSignalEvent",),
    "aerotape.clients": ("ArchiveClient", "AsyncArchiveClient", "connect", "connect_async"),
    "aerotape.codecs.generated.archive": ("RecordingSignal", "SourceLocation"),
    "aerotape.errors": (
        "AeronError",
        "AeronTimeoutError",
        "AerotapeError",
        "ArchiveError",
        "ClosedError",
        "CodecError",
        "ConfigurationError",
        "EntityError",
        "JournalError",
        "LedgerError",
        "StorageError",
    ),
    "aerotape.media_driver": ("MediaDriver",),
    "aerotape.message": ("Message",),
    "aerotape.protocol": ("ErrorCode",),
    "aerotape.qualified_id": ("QualifiedId",),
    "aerotape.replay.offline.directory": ("ArchiveDirectory", "Recording", "open_directory"),
    "aerotape.replay.offline.polars_source": ("scan_polars",),
    "aerotape.replay.statistics.model": ("RecordingStatistics",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted({"__version__", *_MODULES})


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'aerotape' has no attribute {name!r}")
    value = getattr(_importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "errors"})
