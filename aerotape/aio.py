"""The asynchronous client: `connect` to an archive from an event loop.

>>> async with aerotape.aio.connect(aeron_dir=directory) as client:
...     await client.start_recording("aeron:ipc", 1001)
"""

from aerotape.archive.client.async_client import AsyncArchiveClient
from aerotape.archive.client.async_client import connect_async as connect
from aerotape.archive.client.replay.async_streams import AsyncMessages, AsyncReplay, AsyncSignals

__all__ = ["AsyncArchiveClient", "AsyncMessages", "AsyncReplay", "AsyncSignals", "connect"]
