"""The interface by which a feature that Aeron Archive does not have plugs into this archive.

`features.built_in` names them; of the rest of the archive only `archive.archive` imports that. An
extension is, as everywhere in Aeron, a recording that continues.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from aerotape.codecs.runtime import Message, SchemaCodecs

if TYPE_CHECKING:
    from aerotape.archive.agent import Agent
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.catalog.recovery.refresh import Judge
    from aerotape.catalog.recovery.stop_position import RecordingEnd

Handler = Callable[["Services", "ControlSession", Any], None]
Handlers = Mapping[type[Message], Handler]


class Feature:
    """A feature of an archive; each method may be overridden. For the conductor's thread.

    Attributes:
        fragment: contained in each channel that has a meaning for the feature, which is not
            called for others.
        messages: the schema of the requests that it adds.
        capability: the bit of the version in which a client asks for it and the archive responds
            that it has it.
        roles: the requests that users may send who are not administrators, by the role.
        properties: a dataclass with the properties that it adds, as `config.property.define`
            returns them. The archive's configuration has one, `config.of(properties)`.
    """

    fragment: ClassVar[str] = ""
    messages: ClassVar[SchemaCodecs | None] = None
    capability: ClassVar[int] = 0
    roles: ClassVar[Mapping[str, Collection[type[Message]]]] = {}
    properties: ClassVar[type[Any] | None] = None

    def __init__(self, services: Services, config: ArchiveConfig, wake: Callable[[], None]) -> None:
        """Create it when the archive starts.

        Args:
            services: the archive's parts; complete once all features are created.
            wake: makes the conductor call `do_work` of the agents soon; for other threads.
        """

    @property
    def handlers(self) -> Handlers:
        """The requests that it adds."""
        return {}

    @property
    def agents(self) -> Mapping[str, Agent]:
        """Its agents, by their names in errors."""
        return {}

    def check_recording(self, recording_id: int) -> None:
        """Raise ArchiveError if it protects a recording from the requests of Aeron's schema."""

    def check_channel(self, channel: str, stream_id: int) -> None:
        """Raise ArchiveError if no new recording of a channel and stream may begin."""

    def check_change(self, recording: RecordingDescriptor, channel: str) -> None:
        """Raise ArchiveError if a recording may not be extended from, or given, a channel."""

    @staticmethod
    def holds(recording: RecordingDescriptor) -> str:
        """Return the reason not to delete a recording by retention, or "". For any thread."""
        return ""

    @staticmethod
    def recovery(archive_dir: Path) -> Judge:
        """Return what decides about the ends of recordings that a crash has left without one.

        It is called for recordings whose channels contain the fragment, in several threads.
        """
        return lambda _, end: end

    @staticmethod
    def retained(archive_dir: Path) -> set[int]:
        """Return the purged recordings whose ids it still uses (AerotapeError)."""
        return set()


def recovery_of(features: Iterable[type[Feature]], archive_dir: Path) -> Judge:
    """Return `Feature.recovery` of those that a recording concerns."""
    judges = [(each.fragment, each.recovery(archive_dir)) for each in features if each.fragment]

    def judge(recording: RecordingDescriptor, end: RecordingEnd) -> RecordingEnd:
        for fragment, of_feature in judges:
            if fragment in recording.original_channel:
                end = of_feature(recording, end)
        return end

    return judge


def first_hold(
    features: Iterable[Feature | type[Feature]], recording: RecordingDescriptor
) -> str:
    """Return the reason of the first feature that holds a recording, "" if none does."""
    return next((why for each in features if (why := each.holds(recording))), "")


class Features:
    """All features of an archive, as one."""

    def __init__(self) -> None:
        self._features: list[Feature] = []
        self.schemas: dict[int, SchemaCodecs] = {}
        self.capabilities = 0
        self.handlers: dict[type[Message], Handler] = {}
        self.agents: dict[str, Agent] = {}

    def add(self, feature: Feature) -> None:
        """Add a feature."""
        self._features.append(feature)
        if feature.messages is not None:
            self.schemas[feature.messages.SCHEMA_ID] = feature.messages
        self.capabilities |= feature.capability
        self.handlers.update(feature.handlers)
        self.agents.update(feature.agents)

    def _concerned(self, *channels: str) -> list[Feature]:
        return [
            each
            for each in self._features
            if any(each.fragment in channel for channel in channels)
        ]

    def check_recording(self, recording_id: int) -> None:
        """As `Feature.check_recording`, of each."""
        for each in self._features:
            each.check_recording(recording_id)

    def holds(self, recording: RecordingDescriptor) -> str:
        """As `Feature.holds`, of the first that holds it."""
        return first_hold(self._features, recording)

    def check_channel(self, channel: str, stream_id: int) -> None:
        """As `Feature.check_channel`, of those concerned."""
        for each in self._concerned(channel):
            each.check_channel(channel, stream_id)

    def check_change(self, recording: RecordingDescriptor, channel: str) -> None:
        """As `Feature.check_change`, of those concerned by the old or the new channel."""
        for each in self._concerned(recording.original_channel, channel):
            each.check_change(recording, channel)
