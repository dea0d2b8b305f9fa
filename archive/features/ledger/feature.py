"""The ledgers of an archive, as a feature: their requests, and what protects recordings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from aerotape.archive.control.feature import Feature, Handlers
from aerotape.archive.features.ledger.alias import ALIAS_FRAGMENT, ledger_of_channel
from aerotape.archive.features.ledger.metadata import FILE_NAME
from aerotape.archive.features.ledger.properties import LedgerProperties
from aerotape.archive.features.ledger.requests import handlers_of
from aerotape.archive.features.ledger.service import LedgerService
from aerotape.codecs.generated import archive, ledger_control
from aerotape.codecs.runtime import Message, SchemaCodecs
from aerotape.errors import ArchiveError
from aerotape.protocol import KNOWS_LEDGERS

if TYPE_CHECKING:
    from aerotape.archive.agent import Agent
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.control.services import Services
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.catalog.recovery.refresh import Judge


class LedgerFeature(Feature):
    """Ledgers and their mirrors. Only requests for ledgers change their recordings."""

    fragment = ALIAS_FRAGMENT.decode()
    messages: ClassVar[SchemaCodecs | None] = ledger_control
    capability = KNOWS_LEDGERS
    properties = LedgerProperties
    roles: ClassVar[Mapping[str, Collection[type[Message]]]] = {
        "read": (
            ledger_control.LedgerInfoRequest,
            ledger_control.ListLedgersRequest,
            ledger_control.LocateEntryRequest,
            ledger_control.NextScopeRequest,
        ),
        "record": (
            ledger_control.CreateLedgerRequest,
            ledger_control.PrepareWriterRequest,
            ledger_control.AttachWriterRequest,
            ledger_control.SyncLedgerRequest,
            ledger_control.AwaitLedgerRequest,
            ledger_control.CloseLedgerRequest,
            ledger_control.RecoverLedgerRequest,
        ),
        "mirror": (
            # Of the leading archive to the mirror.
            ledger_control.MirrorLedgerRequest,
            ledger_control.AwaitLedgerRequest,
            ledger_control.SyncLedgerRequest,
            ledger_control.CloseLedgerRequest,
            # Of the mirror to the leading archive: it replicates the recording, with a token if
            # that is sent over a response channel.
            archive.ListRecordingRequest,
            archive.ReplayRequest,
            archive.ReplayTokenRequest,
            archive.StopReplayRequest,
        ),
    }

    def __init__(self, services: Services, config: ArchiveConfig, wake: Callable[[], None]) -> None:
        properties = config.of(LedgerProperties)
        if properties.mirror_secret_file is not None:
            # An archive without mirrors starts without the client.
            from aerotape.client.credentials import user_of_file

            # Read again for each connection; a file that is unusable now is an error of the start.
            user_of_file(properties.mirror_secret_file)
        self._ledgers = LedgerService(
            archive_dir=services.archive_dir,
            catalog=services.catalog,
            recordings=services.recordings,
            replications=services.replications,
            purge=partial(services.removals.purge, is_forced=True),
            truncate=services.removals.truncate,
            config=config,
            properties=properties,
            archive_id=services.archive_id,
            errors=services.errors,
            wake=wake,
        )
        self._handlers = handlers_of(self._ledgers, frozenset(properties.mirror_channels))

    @property
    def handlers(self) -> Handlers:
        return self._handlers

    @property
    def agents(self) -> Mapping[str, Agent]:
        return {"ledgers": self._ledgers}

    def check_recording(self, recording_id: int) -> None:
        ledger = self._ledgers.ledger_of(recording_id)
        if ledger is not None:
            raise ArchiveError(
                f"recording {recording_id} is that of ledger {ledger}: use the requests for ledgers"
            )

    def check_channel(self, channel: str, stream_id: int) -> None:
        if ledger_of_channel(channel) is not None:
            raise ArchiveError(
                f"the alias in channel={channel} is reserved for the recordings of ledgers: use"
                " another alias, or the requests for ledgers"
            )

    def check_change(self, recording: RecordingDescriptor, channel: str) -> None:
        self.check_channel(channel, recording.stream_id)

    @staticmethod
    def holds(recording: RecordingDescriptor) -> str:
        # By the alias: the metadata may be unreadable, or have to be built again from a copy.
        ledger = ledger_of_channel(recording.original_channel)
        if ledger is None:
            return ""
        return f"it has the alias of ledger {ledger.id}, which retention does not delete"

    @staticmethod
    def recovery(archive_dir: Path) -> Judge:
        from aerotape.archive.features.ledger.recovered_end import recovery

        return recovery(archive_dir)

    @staticmethod
    def retained(archive_dir: Path) -> set[int]:
        if not (archive_dir / FILE_NAME).exists():
            return set()
        # An archive without ledgers starts without SQLite.
        from aerotape.archive.features.ledger.metadata_store import MetadataStore

        with closing(MetadataStore.open(archive_dir)) as store:
            return set(store.recordings())
