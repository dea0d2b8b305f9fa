"""The subscriptions that are recorded: at most one for each channel and stream.

A subscription counts references: one for the request, released by a stop, and one for each session
that records an image of it. It is closed with the last of them; clients can no longer find it once
it is stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from aerotape.archive.agent import SOON_NS
from aerotape.archive.driver_tasks import add
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.waiting import Running
from aerotape.channel_uri import SPY_PREFIX, ChannelUri, recording_key, stripped_channel
from aerotape.codecs.generated.archive import SourceLocation
from aerotape.errors import AerotapeError, ArchiveError
from aerotape.protocol import NULL_VALUE, ErrorCode

if TYPE_CHECKING:
    from aerotape._native import AeronClient, Mailbox, PendingSubscription, Subscription
    from aerotape.archive.recording.durability import Durability
    from aerotape.archive.recording.observer import RecordingObserver


@dataclass(slots=True, eq=False, kw_only=True)
class RecordedSubscription:
    """One request to record that is in force.

    Attributes:
        observer: is notified of its progress and of that of its recordings.
        original_channel: as requested (ConfigurationError: not a channel URI).
        key: identifies what is recorded: one subscription for each channel and stream.
        channel: as subscribed to, with the prefix of a spy.
        extends: the recording that its image extends; None when each image is a new recording.
        durability: of its recordings; None for the archive's sync level.
        registration_id: the driver's, another one after each retry.
        references: one for the request and one for each session.
        is_stopping: set by a stop: further images are not recorded.
    """

    observer: RecordingObserver
    stream_id: int
    original_channel: str
    source_location: SourceLocation
    auto_stop: bool
    extends: int | None = None
    durability: Durability | None = None
    key: str = field(init=False)
    channel: str = field(init=False)
    stripped_channel: str = field(init=False)
    registration_id: int = NULL_VALUE
    pending: Running[Subscription] | None = None
    subscription: Subscription | None = None
    references: int = 1
    is_stopping: bool = False

    def __post_init__(self) -> None:
        uri = ChannelUri.parse(self.original_channel)
        self.key, self.stripped_channel = recording_key(self.stream_id, uri), stripped_channel(uri)
        is_spy = self.source_location is SourceLocation.LOCAL and uri.is_udp
        self.channel = SPY_PREFIX + self.stripped_channel if is_spy else self.stripped_channel

    def close(self) -> None:
        """Close the Aeron subscription, or cancel its request."""
        self.is_stopping = True
        if self.pending is not None:
            self.pending.close()
            self.pending = None
        if self.subscription is not None:
            self.subscription.close()
            self.subscription = None


@dataclass(eq=False)
class RecordedSubscriptions:
    """All subscriptions of the archive's recordings.

    Attributes:
        mailbox: the images of the subscriptions are posted to it.
        retry_timeout_ns: how long a temporary refusal of the driver is retried.
    """

    client: AeronClient
    mailbox: Mailbox
    errors: ErrorLog
    retry_timeout_ns: int
    # Those that clients can find and stop.
    _by_key: dict[str, RecordedSubscription] = field(default_factory=dict, init=False)
    # Besides those, the ones whose last sessions are ending.
    _by_id: dict[int, RecordedSubscription] = field(default_factory=dict, init=False)
    _pending: list[RecordedSubscription] = field(default_factory=list, init=False)

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: responses of the driver are pending."""
        return SOON_NS if self._pending else None

    def __len__(self) -> int:
        return len(self._by_key)

    def listed(self) -> list[RecordedSubscription]:
        """Return those that clients can find and stop, oldest first."""
        return list(self._by_key.values())

    def get(self, registration_id: int) -> RecordedSubscription | None:
        """Return the subscription of an image, also when its last sessions are ending."""
        return self._by_id.get(registration_id)

    def find(self, registration_id: int) -> RecordedSubscription | None:
        """Return the subscription with an id, if a client can find it."""
        subscription = self._by_id.get(registration_id)
        if subscription is None or self._by_key.get(subscription.key) is not subscription:
            return None
        return subscription

    def find_channel(self, stream_id: int, channel: str) -> RecordedSubscription | None:
        """Return the subscription to a channel and stream.

        Raises:
            ConfigurationError: not a channel URI.
        """
        return self._by_key.get(recording_key(stream_id, ChannelUri.parse(channel)))

    def add(self, subscription: RecordedSubscription) -> None:
        """Subscribe; the observer is notified once the driver has added the subscription.

        Raises:
            ArchiveError: the channel and stream are being recorded (ACTIVE_SUBSCRIPTION).
        """
        if subscription.key in self._by_key:
            raise ArchiveError(
                f"recording exists for streamId={subscription.stream_id}"
                f" channel={subscription.original_channel}",
                ErrorCode.ACTIVE_SUBSCRIPTION,
            )
        what = f"a subscription to {subscription.channel} stream {subscription.stream_id}"
        begin = partial(self._subscribe, subscription)
        subscription.pending = Running(add(begin, what, self.retry_timeout_ns))
        subscription.pending.advance()
        self._by_key[subscription.key] = subscription
        self._pending.append(subscription)

    def _subscribe(self, subscription: RecordedSubscription) -> PendingSubscription:
        pending = self.client.async_add_subscription(
            subscription.channel, subscription.stream_id, self.mailbox, tells_losses=False
        )
        self._by_id.pop(subscription.registration_id, None)
        subscription.registration_id = pending.registration_id
        self._by_id[subscription.registration_id] = subscription
        return pending

    def do_work(self) -> None:
        """Poll the driver for the pending subscriptions."""
        for subscription in list(self._pending):
            self.poll(subscription)

    def poll(self, subscription: RecordedSubscription) -> None:
        """Notify the observer if the driver has responded."""
        if subscription.pending is None:
            return
        try:
            subscription.pending.advance()
        except AerotapeError as error:
            subscription.pending = None
            self.close_one(subscription)
            what = f"cannot subscribe to {subscription.original_channel}: {error}"
            self.errors.record("recording not started", what)
            subscription.observer.on_failed(ErrorCode.GENERIC, what)
            return
        if subscription.pending.is_done:
            subscription.subscription = subscription.pending.result
            subscription.pending = None
            self._pending.remove(subscription)
            subscription.observer.on_subscribed(subscription.registration_id)

    def unlist(self, subscription: RecordedSubscription) -> None:
        """Remove it from the lookup tables, so that its channel can be recorded again."""
        if self._by_key.get(subscription.key) is subscription:
            del self._by_key[subscription.key]
        if subscription.pending is not None:
            # Stopped before the driver has responded: the start is confirmed nevertheless.
            self._pending.remove(subscription)
            subscription.observer.on_subscribed(subscription.registration_id)

    def release(self, subscription: RecordedSubscription) -> None:
        """Release a reference; the last one closes the subscription."""
        subscription.references -= 1
        if subscription.references <= 0:
            self.close_one(subscription)

    def close_one(self, subscription: RecordedSubscription) -> None:
        """Close it, whatever its references."""
        if self._by_key.get(subscription.key) is subscription:
            del self._by_key[subscription.key]
        if subscription in self._pending:
            self._pending.remove(subscription)
        self._by_id.pop(subscription.registration_id, None)
        subscription.close()

    def close(self) -> None:
        """Close all."""
        for subscription in list(self._by_id.values()):
            self.close_one(subscription)
