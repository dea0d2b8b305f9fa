"""The subscriptions that are recorded: at most one for each channel and stream.

A subscription counts references: one for the request, released by a stop, and one for each image
that is recorded, from its announcement to the end of its session. It is closed with the last of
them; clients can no longer find it once it is stopped.

The driver connects a publication before the archive is notified of the image. So after a stop the
request's reference is released only when all images are announced that the driver had at the stop.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from aerotape.archive.error_log import ErrorLog
from aerotape.channel_uri import SPY_PREFIX, ChannelUri, recording_key, stripped_channel
from aerotape.codecs.generated.archive import SourceLocation
from aerotape.driver_tasks import add
from aerotape.errors import AerotapeError, ArchiveError
from aerotape.protocol import NULL_VALUE, ErrorCode
from aerotape.waiting import SOON_NS, Running

if TYPE_CHECKING:
    from concurrent.futures import Future

    from aerotape._native import AeronClient, Image, Mailbox, PendingSubscription, Subscription
    from aerotape.archive.recording.driver_streams import DriverStreams, StopPoint
    from aerotape.archive.recording.observer import RecordingObserver
    from aerotape.durability import Durability

_MANY_ANNOUNCED: Final = 256


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
        references: one for the request and one for each image that is recorded.
        is_stopping: set by a stop: images that the driver did not have then are not recorded.
        unrecorded: why a publication is not recorded, or no longer; empty when there was none.
        is_confirmed: whether the observer was notified of the subscription.
        is_requested: whether the request holds its reference.
        announced: correlation ids of the images that the archive was notified of. At the limit,
            those are forgotten that the driver no longer has.
        awaited: those that the driver had at the stop and of which it was not.
        awaited_until_ns: how long for, of `time.monotonic_ns`.
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
    unrecorded: str = ""
    is_confirmed: bool = False
    is_requested: bool = True
    announced: set[int] = field(default_factory=set)
    announced_limit: int = _MANY_ANNOUNCED
    awaited: set[int] = field(default_factory=set)
    awaited_until_ns: int = 0

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
class Arrival:
    """An image whose session has not begun. It has a reference of its subscription.

    Attributes:
        stop_point: where its recording ends; None unless the subscription was stopped.
        prepared: for an extension, once the files of the recording are being prepared.
        is_waiting: for an extension, until an image that has nothing is over.
    """

    subscription: RecordedSubscription
    image: Image
    stop_point: StopPoint | None = None
    is_waiting: bool = False
    prepared: Future[None] | None = None

    def is_over(self, streams: DriverStreams) -> bool:
        """Whether the image need not be recorded, as its stream has no message.

        It was stopped before one, or would extend a recording by a publication that is closed.
        """
        if self.subscription.extends is not None and streams.has_nothing(self.image):
            return True
        end = None if self.stop_point is None else self.stop_point.position
        return end is not None and end <= self.image.join_position


@dataclass(eq=False)
class RecordedSubscriptions:
    """All subscriptions of the archive's recordings.

    Attributes:
        mailbox: the images of the subscriptions are posted to it.
        retry_timeout_ns: how long a temporary refusal of the driver is retried.
        announce_timeout_ns: how long a stop waits for images that the driver has.
    """

    client: AeronClient
    mailbox: Mailbox
    errors: ErrorLog
    streams: DriverStreams
    retry_timeout_ns: int
    announce_timeout_ns: int
    # Those that clients can find and stop, by channel and stream.
    _by_key: dict[str, RecordedSubscription] = field(default_factory=dict, init=False)
    # By the driver's id: those, and stopped ones whose sessions have not ended.
    _by_id: dict[int, RecordedSubscription] = field(default_factory=dict, init=False)
    _pending: list[RecordedSubscription] = field(default_factory=list, init=False)
    _awaiting: list[RecordedSubscription] = field(default_factory=list, init=False)

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: responses of the driver are pending."""
        return SOON_NS if self._pending or self._awaiting else None

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[RecordedSubscription]:
        """Return all, also those whose last sessions are ending."""
        return iter(list(self._by_id.values()))

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
            message = (
                f"recording exists for streamId={subscription.stream_id}"
                f" channel={subscription.original_channel}"
            )
            if unrecorded := self._by_key[subscription.key].unrecorded:
                message += (
                    ", but not of all its publications: stop it, then record again. Not recorded:"
                    f" {unrecorded}"
                )
            else:
                message += (
                    ": new publications on it are recorded too; to record it with other options,"
                    " stop it first"
                )
            raise ArchiveError(message, ErrorCode.ACTIVE_SUBSCRIPTION)
        what = f"a subscription to {subscription.channel} stream {subscription.stream_id}"
        begin = partial(self._subscribe, subscription)
        subscription.pending = Running(add(begin, what, self.retry_timeout_ns))
        subscription.pending.advance()
        self._by_key[subscription.key] = subscription
        self._pending.append(subscription)

    def _subscribe(self, subscription: RecordedSubscription) -> PendingSubscription:
        pending = self.client.async_add_subscription(
            subscription.channel, subscription.stream_id, self.mailbox, report_unavailable=False
        )
        self._by_id.pop(subscription.registration_id, None)
        subscription.registration_id = pending.registration_id
        self._by_id[subscription.registration_id] = subscription
        return pending

    def do_work(self) -> None:
        """Poll the driver for the pending subscriptions, and for the images that stops wait for."""
        for subscription in list(self._pending):
            self.poll(subscription)
        for subscription in list(self._awaiting):
            subscription.awaited &= self.streams.images(subscription.registration_id)
            if time.monotonic_ns() >= subscription.awaited_until_ns:
                subscription.awaited.clear()
            self._release_stopped(subscription)

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
            if not subscription.is_confirmed:
                subscription.observer.on_failed(ErrorCode.GENERIC, what)
            return
        if subscription.pending.is_done:
            subscription.subscription = subscription.pending.result
            subscription.pending = None
            self._pending.remove(subscription)
            self._confirm(subscription)

    def _confirm(self, subscription: RecordedSubscription) -> None:
        if not subscription.is_confirmed:
            subscription.is_confirmed = True
            subscription.observer.on_subscribed(subscription.registration_id)

    def announce(self, subscription: RecordedSubscription, image_id: int) -> bool:
        """Refer to an image that the archive is notified of; False when it is not recorded.

        Args:
            image_id: the correlation id.
        """
        self.poll(subscription)
        if subscription.is_stopping and image_id not in subscription.awaited:
            return False
        if len(subscription.announced) >= subscription.announced_limit:
            subscription.announced &= self.streams.images(subscription.registration_id)
            subscription.announced_limit = max(_MANY_ANNOUNCED, 2 * len(subscription.announced))
        subscription.announced.add(image_id)
        subscription.references += 1
        subscription.awaited.discard(image_id)
        self._release_stopped(subscription)
        return True

    def unlist(self, subscription: RecordedSubscription) -> None:
        """Remove it from the lookup tables, so that its channel can be recorded again."""
        if self._by_key.get(subscription.key) is subscription:
            del self._by_key[subscription.key]
        # Stopped before the driver has responded: the start is confirmed nevertheless.
        self._confirm(subscription)

    def stop(self, subscription: RecordedSubscription) -> None:
        """Unlist it, and release the request's reference once the driver's images are announced.

        Idempotent.
        """
        self.unlist(subscription)
        if subscription.is_stopping:
            return
        subscription.is_stopping = True
        existing = self.streams.images(subscription.registration_id)
        subscription.awaited = existing - subscription.announced
        subscription.awaited_until_ns = time.monotonic_ns() + self.announce_timeout_ns
        self._awaiting.append(subscription)
        self._release_stopped(subscription)

    def _release_stopped(self, subscription: RecordedSubscription) -> None:
        if not subscription.awaited and subscription in self._awaiting:
            self._awaiting.remove(subscription)
            self.release_request(subscription)

    def release_request(self, subscription: RecordedSubscription) -> None:
        """Release the reference of the request. Idempotent."""
        if subscription.is_requested:
            subscription.is_requested = False
            self.release(subscription)

    def release(self, subscription: RecordedSubscription) -> None:
        """Release a reference; the last one closes the subscription."""
        subscription.references -= 1
        if subscription.references <= 0:
            self.close_one(subscription)

    def close_one(self, subscription: RecordedSubscription) -> None:
        """Close it, whatever its references."""
        if self._by_key.get(subscription.key) is subscription:
            del self._by_key[subscription.key]
        for others in (self._pending, self._awaiting):
            if subscription in others:
                others.remove(subscription)
        self._by_id.pop(subscription.registration_id, None)
        subscription.close()

    def close(self) -> None:
        """Close all."""
        for subscription in list(self._by_id.values()):
            self.close_one(subscription)
