"""The asynchronous client: `connect` to an archive from an event loop.

>>> async with aerotape.aio.connect(aeron_dir=directory) as client:
...     await client.start_recording("aeron:ipc", 1001)
"""

from aerotape.client.asynchronous.replays import AsyncReplay
from aerotape.client.asynchronous.streams import AsyncSignals
from aerotape.client.event_loop import AsyncMessages
from aerotape.clients import AsyncArchiveClient
from aerotape.clients import connect_async as connect

__all__ = ["AsyncArchiveClient", "AsyncMessages", "AsyncReplay", "AsyncSignals", "connect"]
