"""The subscriptions that clients have asked to be recorded.

One for each channel and stream at a time. A subscription counts references: one for the request,
given back by a stop, and one for each session that records an image of it. It is closed with the
last of them; a client cannot find it any more as soon as it has stopped it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from aerotape.archive.channel_uri import SPY_PREFIX, ChannelUri, recording_key, stripped_channel
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.protocol import ErrorCode
from aerotape.archive.recording.session import RecordingSubscription, Requester
from aerotape.codecs.archive import SourceLocation
from aerotape.errors import AerotapeError, ConfigurationError

if TYPE_CHECKING:
    from aerotape._native import AeronClient, Mailbox


@lru_cache(maxsize=1024)
def _meaning(stream_id: int, channel: str) -> tuple[str, str, bool]:
    """Return key and stripped form of what is to be recorded, and whether it comes over UDP.

    Kept, for the same channels come again and again.

    Raises:
        ConfigurationError: not a channel URI, or a parameter that Aeron would refuse.
    """
    uri = ChannelUri.parse(channel)
    return recording_key(stream_id, uri), stripped_channel(uri), uri.is_udp


class RecordingSubscriptions:
    """All subscriptions of the archive's recordings."""

    def __init__(self, client: AeronClient, mailbox: Mailbox, errors: ErrorLog) -> None:
        """Begin with none; images of those to come are posted to the mailbox."""
        self._client = client
        self._mailbox = mailbox
        self._errors = errors
        # Those that a client can still find and stop.
        self._by_key: dict[str, RecordingSubscription] = {}
        # Besides these, those whose last sessions are ending.
        self._by_id: dict[int, RecordingSubscription] = {}
        self._pending: list[RecordingSubscription] = []

    @property
    def wants_soon(self) -> bool:
        """Whether the driver owes an answer."""
        return bool(self._pending)

    def __len__(self) -> int:
        return len(self._by_key)

    def listed(self) -> list[RecordingSubscription]:
        """Return those that a client can find and stop, oldest first."""
        return list(self._by_key.values())

    def get(self, registration_id: int) -> RecordingSubscription | None:
        """Return the subscription of an image, also when its last sessions are ending."""
        return self._by_id.get(registration_id)

    def find(self, registration_id: int) -> RecordingSubscription | None:
        """Return what a client means by a subscription id."""
        source = self._by_id.get(registration_id)
        return source if source is not None and self._by_key.get(source.key) is source else None

    def find_channel(self, stream_id: int, channel: str) -> RecordingSubscription | None:
        """Return what a client means by a channel and stream.

        Raises:
            ConfigurationError: not a channel URI.
        """
        return self._by_key.get(recording_key(stream_id, ChannelUri.parse(channel)))

    def add(
        self,
        requester: Requester,
        correlation_id: int,
        *,
        stream_id: int,
        channel: str,
        source_location: SourceLocation,
        auto_stop: bool,
        extends: int | None = None,
    ) -> RecordingSubscription | None:
        """Subscribe; answered with the subscription id once the driver has agreed.

        Args:
            extends: as in RecordingSubscription.

        Returns:
            What was added; None when it was refused, which has been answered.
        """
        try:
            key, stripped, is_udp = _meaning(stream_id, channel)
        except ConfigurationError as error:
            self._errors.record("recording not started", error)
            requester.send_error(correlation_id, ErrorCode.GENERIC, str(error))
            return None
        if key in self._by_key:
            requester.send_error(
                correlation_id,
                ErrorCode.ACTIVE_SUBSCRIPTION,
                f"recording exists for streamId={stream_id} channel={channel}",
            )
            return None
        is_spy = source_location is SourceLocation.LOCAL and is_udp
        subscribed = SPY_PREFIX + stripped if is_spy else stripped
        pending = self._client.async_add_subscription(
            subscribed, stream_id, self._mailbox, tells_losses=False
        )
        source = RecordingSubscription(
            requester,
            correlation_id,
            key=key,
            stream_id=stream_id,
            original_channel=channel,
            channel=subscribed,
            stripped=stripped,
            auto_stop=auto_stop,
            extends=extends,
            pending=pending,
        )
        self._by_key[key] = source
        self._by_id[source.registration_id] = source
        self._pending.append(source)
        return source

    def do_work(self) -> None:
        """Take the answers that the driver has given since."""
        for source in list(self._pending):
            self.poll(source)

    def poll(self, source: RecordingSubscription) -> None:
        """Answer the request if the driver has."""
        if source.pending is None:
            return
        try:
            subscription = source.pending.poll()
        except AerotapeError as error:
            source.pending = None
            self.close_one(source)
            what = f"cannot subscribe to {source.original_channel}: {error}"
            self._errors.record("recording not started", what)
            source.requester.send_error(source.correlation_id, ErrorCode.GENERIC, what)
            return
        if subscription is not None:
            source.pending = None
            source.subscription = subscription
            self._pending.remove(source)
            source.requester.send_ok(source.correlation_id, source.registration_id)

    def unlist(self, source: RecordingSubscription) -> None:
        """Have no client find it any more; another may be added for its channel."""
        if self._by_key.get(source.key) is source:
            del self._by_key[source.key]
        if source.pending is not None:
            # Stopped before the driver has answered: the start is answered all the same.
            self._pending.remove(source)
            source.requester.send_ok(source.correlation_id, source.registration_id)

    def release(self, source: RecordingSubscription) -> None:
        """Give a reference back."""
        source.references -= 1
        if source.references <= 0:
            self.close_one(source)

    def close_one(self, source: RecordingSubscription) -> None:
        """Close it, whatever refers to it."""
        if self._by_key.get(source.key) is source:
            del self._by_key[source.key]
        if source in self._pending:
            self._pending.remove(source)
        self._by_id.pop(source.registration_id, None)
        source.close()

    def close(self) -> None:
        """Close all."""
        for source in list(self._by_id.values()):
            self.close_one(source)
