"""The options of a replication, and the channels that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aerotape.channel_uri import ChannelUri
from aerotape.durability import Durability
from aerotape.protocol import NULL_POSITION, NULL_VALUE

if TYPE_CHECKING:
    from aerotape.client.credentials import Login


@dataclass(frozen=True, slots=True)
class ReplicationRequest:
    """A ReplicateRequest, TaggedReplicateRequest or ReplicateRequest2 (message ids 50, 62, 66).

    Attributes:
        src_recording_id: the recording in the source archive.
        src_control_channel: control channel of the source archive.
        src_control_stream_id: control stream of the source archive.
        replication_channel: where the source replays to.
        dst_recording_id: recording of this archive to extend; -1: a new one.
        stop_position: where to stop, bytes; -1: at the end of the source recording.
        channel_tag_id: tag of the recorded channel; -1: chosen by this archive.
        subscription_tag_id: tag of the subscription; -1: chosen by this archive.
        live_destination: the live stream to join after the catch-up; "": none.
        file_io_max_length: the longest single read of the source, bytes; -1: its default.
        replication_session_id: session id of the replay; -1: that of the recording.
        encoded_credentials: for the connect request to the source archive; b"": none.
        src_response_channel: for the source's responses; "": chosen by this archive.
        durability: of the recording of this archive; None: as configured.
        login: returns how this archive connects to the source; None: with `encoded_credentials`,
            and without a response to a challenge.
    """

    src_recording_id: int
    src_control_channel: str
    src_control_stream_id: int
    replication_channel: str = ""
    dst_recording_id: int = NULL_VALUE
    stop_position: int = NULL_POSITION
    channel_tag_id: int = NULL_VALUE
    subscription_tag_id: int = NULL_VALUE
    live_destination: str = ""
    file_io_max_length: int = NULL_VALUE
    replication_session_id: int = NULL_VALUE
    encoded_credentials: bytes = b""
    src_response_channel: str = ""
    durability: Durability | None = None
    login: Callable[[], Login] | None = None

    @property
    def is_tagged(self) -> bool:
        """Whether the client's own subscription shares the replicated stream by tags."""
        return self.channel_tag_id != NULL_VALUE or self.subscription_tag_id != NULL_VALUE

    @property
    def has_destinations(self) -> bool:
        """Whether the recording subscription receives through destinations."""
        return self.is_tagged or bool(self.live_destination)

    @property
    def uses_response_channel(self) -> bool:
        """Whether the source replays back along the stream of the request."""
        return ChannelUri.parse(self.replication_channel).has_control_mode_response


def recording_channel(
    request: ReplicationRequest, replication_id: int, replay_session_id: int
) -> str:
    """Return the channel that is recorded.

    Raises:
        ChannelUriError: the replication channel cannot be used.
    """
    uri = ChannelUri.parse(request.replication_channel)
    # A stream that has ended must not be joined again.
    uri.put("rejoin", "false")
    if not uri.has_control_mode_response:
        uri.put("session-id", str(replay_session_id))
    if request.has_destinations:
        uri.parameters.pop("endpoint", None)
        tags = (request.channel_tag_id, request.subscription_tag_id)
        uri.put("tags", ",".join(str(replication_id if t == NULL_VALUE else t) for t in tags))
        uri.put("control-mode", "manual")
    return str(uri)


def replay_destination(request: ReplicationRequest) -> str:
    """Return the destination of the recording subscription that receives the replay."""
    uri = ChannelUri.parse(request.replication_channel)
    names = ("endpoint", "interface")
    given = {name: value for name in names if (value := uri.get(name)) is not None}
    return str(ChannelUri(uri.media, given))


def replay_channel(
    request: ReplicationRequest,
    *,
    resolved_endpoint: str | None,
    replay_session_id: int,
    subscription_id: int,
) -> str:
    """Return the channel that the source replays to.

    Args:
        resolved_endpoint: host and port that the driver bound for the recording subscription;
            None if the replication channel has no endpoint.
        subscription_id: registration id of the recording subscription.
    """
    uri = ChannelUri.parse(request.replication_channel)
    if resolved_endpoint is not None:
        uri.resolve_wildcard_port(resolved_endpoint)
    if request.live_destination:
        # The live stream continues where the replay is dropped.
        uri.put("linger", "0")
        uri.put("eos", "false")
    if uri.has_control_mode_response:
        uri.put("response-correlation-id", str(subscription_id))
    else:
        uri.put("session-id", str(replay_session_id))
    return str(uri)
