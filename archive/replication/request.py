"""What a client asks for when it has a recording replicated, and the channels that come of it."""

from __future__ import annotations

from dataclasses import dataclass

from aerotape.channel_uri import ChannelUri
from aerotape.protocol import NULL_POSITION, NULL_VALUE


@dataclass(frozen=True, slots=True)
class ReplicationRequest:
    """A ReplicateRequest, TaggedReplicateRequest or ReplicateRequest2 (message ids 50, 62, 66).

    Attributes:
        src_recording_id: the recording in the source archive.
        src_control_channel: control channel of the source archive.
        src_control_stream_id: control stream of the source archive.
        dst_recording_id: recording of this archive to be continued; -1 makes a new one.
        stop_position: where to stop, bytes; -1 at the end of the source recording.
        channel_tag_id: tag of the channel to record from; -1 is this archive's choice.
        subscription_tag_id: tag of the subscription, likewise.
        live_destination: the live stream to join once caught up with it; "" joins none.
        replication_channel: where the source is to replay to.
        file_io_max_length: the most that the source is to read at once, bytes; -1 is its choice.
        replication_session_id: session id of the replay; -1 is that of the recording.
        encoded_credentials: what the source archive is shown; b"" is nothing.
        src_response_channel: where the source archive is to answer; "" is this archive's choice.
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

    @property
    def is_tagged(self) -> bool:
        """Whether the client has a subscription of its own to what is being replicated."""
        return self.channel_tag_id != NULL_VALUE or self.subscription_tag_id != NULL_VALUE

    @property
    def has_destinations(self) -> bool:
        """Whether the recording subscription gets its streams through destinations."""
        return self.is_tagged or bool(self.live_destination)

    @property
    def uses_response_channel(self) -> bool:
        """Whether the source finds the way for its replay back by our request's."""
        return ChannelUri.parse(self.replication_channel).has_control_mode_response


def recording_channel(
    request: ReplicationRequest, replication_id: int, replay_session_id: int
) -> str:
    """Return the channel that is recorded.

    Raises:
        ChannelUriError: the replication channel cannot be used.
    """
    uri = ChannelUri.parse(request.replication_channel)
    # A stream that has come to its end must not be taken up again.
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
    """Return what is added to a recording subscription with destinations for the replay."""
    uri = ChannelUri.parse(request.replication_channel)
    kept = {name: uri.get(name) for name in ("endpoint", "interface")}
    given = {name: value for name, value in kept.items() if value is not None}
    return str(ChannelUri(uri.media, given))


def replay_channel(
    request: ReplicationRequest,
    *,
    resolved_endpoint: str | None,
    replay_session_id: int,
    subscription_id: int,
) -> str:
    """Return the channel that the source is asked to replay to.

    Args:
        resolved_endpoint: host and port that the recording subscription has really got; None
            where the replication channel has no endpoint.
        subscription_id: registration id of the recording subscription.
    """
    uri = ChannelUri.parse(request.replication_channel)
    if resolved_endpoint is not None:
        uri.resolve_wildcard_port(resolved_endpoint)
    if request.live_destination:
        # The live stream goes on where the replay is cut off.
        uri.put("linger", "0")
        uri.put("eos", "false")
    if uri.has_control_mode_response:
        uri.put("response-correlation-id", str(subscription_id))
    else:
        uri.put("session-id", str(replay_session_id))
    return str(uri)
