"""The asynchronous client: `connect` to an archive from an event loop.

>>> async with aerotape.aio.connect(aeron_dir=directory) as client:
...     await client.start_recording("aeron:ipc", 1001)
"""

from aerotape.archive.client.async_client import AsyncArchiveClient
from aerotape.archive.client.async_client import connect_async as connect
from aerotape.archive.client.asynchronous.replays import AsyncReplay
from aerotape.archive.client.asynchronous.streams import AsyncSignals
from aerotape.archive.client.event_loop import AsyncMessages

__all__ = ["AsyncArchiveClient", "AsyncMessages", "AsyncReplay", "AsyncSignals", "connect"]
