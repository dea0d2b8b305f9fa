"""The entities of an archive, as its extension: which recordings may be partitions of topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aerotape.archive.entity.admission import check_change, check_start
from aerotape.archive.entity.partition import ALIAS_FRAGMENT, durability_without_parameter
from aerotape.archive.extensions import Extension

if TYPE_CHECKING:
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.control.services import Services
    from aerotape.archive.recording.durability import Durability
    from aerotape.catalog.descriptor import RecordingDescriptor


class EntityExtension(Extension):
    """Refuses what would make a topic unusable, and syncs those of type PD_JOURNAL."""

    fragment = ALIAS_FRAGMENT

    def __init__(self, services: Services, config: ArchiveConfig, wake: Callable[[], None]) -> None:
        self._catalog = services.catalog
        self._recordings = services.recordings

    def check_channel(self, channel: str, stream_id: int) -> None:
        check_start(self._catalog, self._recordings, channel, stream_id)

    def check_change(self, recording: RecordingDescriptor, channel: str) -> None:
        check_change(recording, channel)

    def durability(self, channel: str, stream_id: int) -> Durability | None:
        return durability_without_parameter(channel, stream_id)
