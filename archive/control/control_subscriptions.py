"""The subscriptions on which the archive receives requests."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from aerotape.aeron import RESOURCE_TEMPORARILY_UNAVAILABLE
from aerotape.channel_uri import ChannelUri
from aerotape.driver_tasks import add
from aerotape.errors import AeronError, AeronTimeoutError
from aerotape.waiting import run

if TYPE_CHECKING:
    from aerotape._native import AeronClient, Mailbox, Subscription
    from aerotape.archive.config.archive_config import ArchiveConfig


def add_control_subscriptions(
    client: AeronClient, mailbox: Mailbox, config: ArchiveConfig
) -> dict[int, Subscription]:
    """Subscribe to the control channels; waits for the driver.

    Returns:
        The subscriptions by their registration ids.

    Raises:
        AeronError: the driver refuses a control channel, or does not add it in time.
    """

    def subscribe(channel: str, stream_id: int) -> Subscription:
        # The driver may still be releasing the channel of an archive that has just stopped.
        begin = partial(client.async_add_subscription, channel, stream_id, mailbox)
        what = f"a subscription to {channel} stream {stream_id}"
        return run(add(begin, what, config.driver_timeout_ms * 1_000_000))

    subscriptions = []
    if config.control_channel_enabled:
        uri = ChannelUri.parse(config.control_channel)
        uri.put("sparse", str(config.control_term_buffer_sparse).lower())
        try:
            subscriptions.append(subscribe(str(uri), config.control_stream_id))
        except (AeronError, AeronTimeoutError) as error:
            raise AeronError(
                f"cannot listen on aeron.archive.control.channel={config.control_channel}: is "
                f"its port free, and its address one of this machine? {error}",
                getattr(error, "code", RESOURCE_TEMPORARILY_UNAVAILABLE),
            ) from error
    subscriptions.append(subscribe(config.local_control_channel, config.local_control_stream_id))
    return {subscription.registration_id: subscription for subscription in subscriptions}
