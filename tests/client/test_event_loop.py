"""The asynchronous client: the same requests, many at once, cancelled at any moment."""

from __future__ import annotations

import asyncio
import gc
import inspect
import random
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from support.daemon.archives import KINDS, Kind, ServedArchive, serve
from support.daemon.live import Live
from support.daemon.recording import new_stream_id, recorded, start_recording, stop, wait_until

import aerotape
from aerotape import RecordingSignal, aio
from aerotape.client.queries import Pages
from aerotape.errors import AeronTimeoutError, ClosedError, ConfigurationError

T = TypeVar("T")


def connected(archive: ServedArchive) -> Any:
    """An asynchronous client of the archive, to be entered."""
    return aerotape.connect_async(
        aeron_dir=archive.aeron_dir, control_request_channel=archive.control_channel
    )


def run(main: Callable[[], Coroutine[Any, Any, T]], timeout_s: float = 30.0) -> T:
    """Run a test's coroutine in a new event loop."""

    async def limited() -> T:
        async with asyncio.timeout(timeout_s):
            return await main()

    return asyncio.run(limited())


def test_same_requests() -> None:
    """Both clients have the same methods, with the same parameters and their own results."""
    sync, other = aerotape.ArchiveClient, aerotape.AsyncArchiveClient
    names = {name for name in dir(sync) if not name.startswith("_")}
    assert names == {name for name in dir(other) if not name.startswith("_")}
    for name in names:
        one, two = getattr(sync, name), getattr(other, name)
        if callable(one):
            shown, expected = inspect.signature(two), inspect.signature(one)
            assert list(shown.parameters) == list(expected.parameters), name
    for name, returns in (
        ("list_recordings", "AsyncIterator[RecordingDescriptor]"),
        ("replay_merge", "Opening[AsyncMessages[ReplayMerge]]"),
        (
            "persistent_subscription",
            "Opening[AsyncMessages[PersistentSubscription]]",
        ),
        ("entities", "Opening[AsyncEntities]"),
    ):
        assert inspect.signature(getattr(other, name)).return_annotation == returns
    assert aio.AsyncArchiveClient is other


def test_persistent_subscriptions_are_kept_alive(archive: ServedArchive) -> None:
    """Their sessions are read at the interval of the asynchronous client."""

    async def main() -> None:
        opening = aerotape.connect_async(
            aeron_dir=archive.aeron_dir,
            control_request_channel=archive.control_channel,
            keep_alive_interval_ns=50_000_000,
        )
        async with opening as asynchronous:
            subscription = asynchronous.persistent_subscription(0, "aeron:ipc", 1)
            async with subscription as messages:
                assert messages.stream._connection._keep_alive_interval_ns == 50_000_000

    run(main)


def test_requests(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """Requests and listings return the same results as with the synchronous client."""
    made = recorded(client, 10)

    async def main() -> None:
        async with connected(archive) as asynchronous:
            assert asynchronous.archive_id == client.archive_id
            assert await asynchronous.get_archive_id() == client.archive_id
            assert await asynchronous.ping() > 0
            await asynchronous.keep_alive()
            assert await asynchronous.stop_position(made.recording_id) == made.end
            found = await asynchronous.list_recording(made.recording_id)
            assert found == client.list_recording(made.recording_id)
            assert await asynchronous.list_recording(9999) is None
            listed = [each async for each in asynchronous.list_recordings()]
            assert listed == list(client.list_recordings())
            with pytest.raises(aerotape.errors.UnknownRecordingError, match="recording 9999"):
                await asynchronous.stop_position(9999)
            with pytest.raises(ConfigurationError, match="recording_id"):
                await asynchronous.stop_position(-1)
            stream_id = new_stream_id()
            publication = await asynchronous.add_recorded_publication("aeron:ipc", stream_id)
            await asynchronous.stop_recording_session(
                "aeron:ipc", stream_id, publication.session_id
            )
            assert await asynchronous.try_stop_recording("aeron:ipc", stream_id) is False
            publication.close()
        assert asynchronous.is_closed
        with pytest.raises(ClosedError, match="the client is closed"):
            await asynchronous.get_archive_id()
        await asynchronous.close()

    run(main)


def test_many_at_once(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """Concurrent requests and listings each receive their own responses."""
    made = [recorded(client, count) for count in (1, 2, 3)]

    async def main() -> None:
        async with connected(archive) as asynchronous:

            async def listed() -> list[int]:
                return [each.recording_id async for each in asynchronous.list_recordings()]

            ends = [asynchronous.stop_position(m.recording_id) for m in made for _ in range(50)]
            results = await asyncio.gather(*ends, *(listed() for _ in range(5)))
            assert results[:150] == [each.end for each in made for _ in range(50)]
            assert results[150:] == [[each.recording_id for each in client.list_recordings()]] * 5

    run(main)


def test_cancelled_requests(
    archive: ServedArchive, client: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelling requests and listings does not affect concurrent and later ones."""
    made = [recorded(client, 1) for _ in range(5)]
    everything = [each.recording_id for each in client.list_recordings()]
    monkeypatch.setattr(Pages, "page_length", 3)
    moments = random.Random(4)

    async def main() -> None:
        async with connected(archive) as asynchronous:

            async def listed() -> list[int]:
                return [each.recording_id async for each in asynchronous.list_recordings()]

            for turn in range(60):
                cancelled = [
                    asyncio.ensure_future(listed()),
                    asyncio.ensure_future(asynchronous.stop_position(made[0].recording_id)),
                ]
                beside = asyncio.ensure_future(asynchronous.stop_position(made[1].recording_id))
                if turn % 2:
                    await asyncio.sleep(moments.random() * 0.002)
                for task in cancelled:
                    task.cancel()
                await asyncio.gather(*cancelled, return_exceptions=True)
                assert await beside == made[1].end
                assert await listed() == everything
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await asynchronous.get_archive_id()
            assert await asynchronous.get_archive_id() == client.archive_id
            assert await asynchronous.poll_for_errors() == []

    run(main)


@pytest.mark.parametrize("channel", ["aeron:ipc", None])
def test_replays_and_concurrent_requests(
    archive: ServedArchive, client: aerotape.ArchiveClient, channel: str | None
) -> None:
    """Waiting replays block neither requests nor other replays; no message is lost."""
    live = start_recording(client, count=3)
    made = recorded(client, 100)

    async def main() -> None:
        async with connected(archive) as asynchronous:
            seen: list[bytes] = []

            async def follow() -> None:
                async with asynchronous.replay(live.recording_id, channel=channel) as replay:
                    assert replay.expected_length is None
                    async for message in replay:
                        seen.append(message.payload)

            following = asyncio.ensure_future(follow())
            whole = await asynchronous.replay(
                made.recording_id, channel=channel, stream_id=new_stream_id()
            )
            messages = [message async for message in whole]
            assert [message.payload for message in messages] == [sent[0] for sent in made.sent]
            of_messages = {(message.session_id, message.stream_id) for message in messages}
            assert of_messages == {(made.session_id, made.stream_id)}
            assert whole.position == made.end
            assert whole.is_closed
            assert await asynchronous.stop_position(live.recording_id) == -1
            await asyncio.to_thread(live.send, [b"one", b"two"])
            await asyncio.to_thread(
                wait_until,
                lambda: client.recording_position(live.recording_id) == live.end,
                "the recording",
            )
            await asyncio.to_thread(stop, client, live)
            await following
            assert seen == [payload for payload, _, _ in live.sent]

    run(main)


def test_cancelled_reading_loses_nothing(
    archive: ServedArchive, client: aerotape.ArchiveClient
) -> None:
    """A replay whose reader is cancelled repeatedly returns every message once."""
    made = recorded(client, 300)
    moments = random.Random(5)

    async def main() -> None:
        async with (
            connected(archive) as asynchronous,
            asynchronous.replay(made.recording_id) as replay,
        ):
            seen: list[bytes] = []
            cancellations = 0

            async def read() -> None:
                async for message in replay:
                    seen.append(message.payload)
                    if len(seen) % 10 == 0:
                        await asyncio.sleep(0)

            while True:
                reading = asyncio.ensure_future(read())
                await asyncio.sleep(moments.random() * 0.001)
                if not reading.cancel():
                    break
                await asyncio.gather(reading, return_exceptions=True)
                if not reading.cancelled():
                    break
                cancellations += 1
            assert cancellations > 0
            assert seen == [payload for payload, _, _ in made.sent]

    run(main)


def test_cancelled_opening_is_stopped(
    archive: ServedArchive, client: aerotape.ArchiveClient
) -> None:
    """A replay whose opening is cancelled is stopped: the archive may run 20 at once."""
    made = recorded(client, 3)
    moments = random.Random(6)

    async def main() -> None:
        async with connected(archive) as asynchronous:
            for _ in range(60):
                opening = asyncio.ensure_future(
                    _open(asynchronous, made.recording_id, new_stream_id())
                )
                await asyncio.sleep(moments.random() * 0.01)
                opening.cancel()
                for replay in await asyncio.gather(opening, return_exceptions=True):
                    if isinstance(replay, aio.AsyncReplay):
                        await replay.close()
            async with asynchronous.replay(made.recording_id) as replay:
                assert len([message async for message in replay]) == 3

    run(main)


async def _open(client: aerotape.AsyncArchiveClient, recording_id: int, stream: int) -> Any:
    return await client.replay(recording_id, channel="aeron:ipc", stream_id=stream)


def test_signals(archive: ServedArchive) -> None:
    """Signals can be awaited and iterated; closing an iterator ends a wait for it."""

    async def main() -> None:
        async with connected(archive) as asynchronous:
            stream_id = new_stream_id()
            signals = asynchronous.signals()
            subscription_id = await asynchronous.start_recording("aeron:ipc", stream_id)
            with asynchronous.aeron.add_publication("aeron:ipc", stream_id):
                started = await asynchronous.await_signal(RecordingSignal.START)
                assert started.subscription_id == subscription_id
                await asynchronous.stop_recording_subscription(subscription_id)
            stopped = await asynchronous.await_signal(
                RecordingSignal.STOP, recording_id=started.recording_id
            )
            assert [await anext(signals), await anext(signals)] == [started, stopped]
            assert await asynchronous.poll_for_recording_signals() == []
            with pytest.raises(AeronTimeoutError, match=r"none within 0\.05 s"):
                await asynchronous.await_signal(timeout_ns=50_000_000)
            waiting = asyncio.ensure_future(_rest(signals))
            await asyncio.sleep(0.01)
            await signals.close()
            assert await waiting == []
            another = asyncio.ensure_future(_rest(asynchronous.signals()))
            await asyncio.sleep(0.01)
        assert await another == []

    run(main)


async def _rest(signals: aio.AsyncSignals) -> list[aerotape.RecordingSignalEvent]:
    return [each async for each in signals]


@pytest.mark.parametrize("kind", KINDS)
def test_the_archive_stops(kind: Kind) -> None:
    """When the archive stops, pending waits raise ClosedError, and closing still works."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        served = serve(kind)
        archive = await loop.run_in_executor(None, served.__enter__)
        client = await connected(archive)
        waiting = asyncio.ensure_future(client.await_signal(timeout_ns=20_000_000_000))
        await asyncio.sleep(0.05)
        await loop.run_in_executor(None, served.__exit__, None, None, None)
        with pytest.raises(ClosedError):
            await waiting
        with pytest.raises((ClosedError, AeronTimeoutError)):
            await client.get_archive_id()
        await client.close()

    run(main, 60.0)


def test_connect(archive: ServedArchive) -> None:
    """A connect that fails raises as the synchronous one; a cancelled one is closed."""

    async def main() -> None:
        with pytest.raises(AeronTimeoutError, match="stream 4711"):
            await aerotape.connect_async(
                aeron_dir=archive.aeron_dir, control_request_stream_id=4711, timeout_ns=200_000_000
            )
        opening = asyncio.ensure_future(_enter(archive))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        async with connected(archive) as client:
            assert await client.get_archive_id() == client.archive_id

    run(main)


@pytest.mark.parametrize("kind", ["merge", "persistent"])
def test_from_a_recording_into_the_live_stream(
    archive: ServedArchive, client: aerotape.ArchiveClient, kind: str
) -> None:
    """A recording and then its live stream are iterated during requests, without a gap."""
    live = Live(client, 200)

    async def main() -> None:
        async with connected(archive) as asynchronous:
            ask: Callable[[], Any] = {
                "merge": lambda: asynchronous.replay_merge(
                    live.made.recording_id, live.subscriber_channel
                ),
                "persistent": lambda: asynchronous.persistent_subscription(
                    live.made.recording_id, live.subscriber_channel, start="start"
                ),
            }[kind]
            async with ask() as messages:
                received: list[aerotape.Message] = []
                live_ones = 0
                async for each in messages:
                    received.append(each)
                    if len(received) % 10 == 0:
                        assert await asynchronous.start_position(live.made.recording_id) == 0
                    stream = messages.stream
                    live_ones += stream.is_merged if kind == "merge" else stream.is_live
                    if live_ones == 50:
                        break
                live.check(received)
                assert len(received) > 200
            assert messages.stream.has_ended
            await messages.close()

    with live.sending():
        run(main)
    stop(client, live.made)


async def _enter(archive: ServedArchive) -> None:
    async with connected(archive):
        pass


def test_an_unreferenced_client_is_collected(archive: ServedArchive) -> None:
    """An unreferenced client is garbage collected, as a synchronous client is."""

    async def main() -> weakref.ref[object]:
        client = await connected(archive)
        await client.ping()
        return weakref.ref(client)

    reference = run(main)
    # The reading thread may hold the session for another moment.
    wait_until(lambda: gc.collect() >= 0 and reference() is None, "the end of the client")
