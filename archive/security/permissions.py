"""The requests that each role of a users file may send."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from aerotape.archive.security.users_file import Role
from aerotape.codecs.generated import archive as codecs

if TYPE_CHECKING:
    from aerotape.codecs.runtime import Message, SchemaCodecs

# Of Aeron's schema: what each session needs, what reads, and what records.
_SESSION: Final = (
    codecs.ArchiveIdRequest,
    codecs.KeepAliveRequest,
    codecs.CloseSessionRequest,
)
_READ: Final = (
    codecs.ListRecordingsRequest,
    codecs.ListRecordingsForUriRequest,
    codecs.ListRecordingRequest,
    codecs.ListRecordingSubscriptionsRequest,
    codecs.FindLastMatchingRecordingRequest,
    codecs.StartPositionRequest,
    codecs.StopPositionRequest,
    codecs.RecordingPositionRequest,
    codecs.MaxRecordedPositionRequest,
    codecs.ReplayRequest,
    codecs.BoundedReplayRequest,
    codecs.ReplayTokenRequest,
    codecs.StopReplayRequest,
)
_RECORD: Final = (
    codecs.StartRecordingRequest,
    codecs.StartRecordingRequest2,
    codecs.ExtendRecordingRequest,
    codecs.ExtendRecordingRequest2,
    codecs.StopRecordingRequest,
    codecs.StopRecordingSubscriptionRequest,
    codecs.StopRecordingByIdentityRequest,
    codecs.StopAllReplaysRequest,
)


class AddedRequests(Protocol):
    """What a feature adds to the requests (`archive.control.feature.Feature`)."""

    @property
    def messages(self) -> SchemaCodecs | None: ...
    @property
    def roles(self) -> Mapping[str, Collection[type[Message]]]: ...


class Permissions:
    """The requests of each role: of Aeron's schema, and of an archive's features."""

    def __init__(self, features: Iterable[AddedRequests] = ()) -> None:
        """Collect the requests of features."""
        features = tuple(features)
        self._schemas = {codecs.SCHEMA_ID}
        self._schemas.update(each.messages.SCHEMA_ID for each in features if each.messages)

        def permitted(messages: Iterable[type[Message]], role: Role) -> frozenset[tuple[int, int]]:
            added = (each.roles.get(role.value, ()) for each in features)
            return frozenset(
                (message.SCHEMA_ID, message.TEMPLATE_ID)
                for some in (_SESSION, messages, *added)
                for message in some
            )

        read = permitted(_READ, Role.READ)
        self._permitted = {
            Role.READ: read,
            Role.RECORD: read | permitted(_RECORD, Role.RECORD),
            Role.MIRROR: permitted((), Role.MIRROR),
        }

    def allow(self, role: Role, template_id: int, schema_id: int = codecs.SCHEMA_ID) -> bool:
        """Return whether a request of a schema may be made in a role."""
        if role is Role.ADMIN:
            return schema_id in self._schemas
        return (schema_id, template_id) in self._permitted[role]
