"""The subscriptions on which the archive receives requests."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from aerotape.archive.retrying import Retrying
from aerotape.channel_uri import ChannelUri
from aerotape.errors import AeronError

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

    def add(channel: str, stream_id: int) -> Subscription:
        # The driver may still be releasing the channel of an archive that has just stopped.
        retrying = Retrying(
            partial(client.async_add_subscription, channel, stream_id, mailbox),
            time.monotonic_ns() + config.driver_timeout_ms * 1_000_000,
        )
        while (added := retrying.poll()) is None:
            time.sleep(0.001)
        return added

    subscriptions = []
    if config.control_channel_enabled:
        uri = ChannelUri.parse(config.control_channel)
        uri.put("sparse", str(config.control_term_buffer_sparse).lower())
        try:
            subscriptions.append(add(str(uri), config.control_stream_id))
        except AeronError as error:
            raise AeronError(
                f"cannot listen on aeron.archive.control.channel={config.control_channel}: is "
                f"its port free, and its address one of this machine? {error}",
                error.code,
            ) from error
    subscriptions.append(add(config.local_control_channel, config.local_control_stream_id))
    return {subscription.registration_id: subscription for subscription in subscriptions}
