"""A recording's page that follows a stream of 10,000 messages a second."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from support import browser as browsers
from support.browser import complaints, text
from support.daemon.archives import KINDS, serve
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.steady_publisher import SteadyPublisher
from support.web import WebService

import aerotape

pytestmark = pytest.mark.skipif(not browsers.IS_INSTALLED, reason="chromium is not installed")
CHANNEL = "aeron:ipc?term-length=8m|alias=prices"
STREAM_ID = 7851
RATE = 10_000
FRAME = 160
AT_LEAST = 50_000
"""The messages that are recorded while the page is looked at."""
FOLLOWED, KEPT = 50, 500
"""The most rows that are added at a time, and that the page has."""

# Each call of an observer has what one step of following has added.
OBSERVE = """
    window.steps = [];
    window.most = 0;
    const body = document.querySelector(".messages tbody");
    new MutationObserver((changes) => {
        const added = changes.flatMap((each) => [...each.addedNodes]);
        window.steps.push(added.filter((row) => row.dataset.position !== undefined).length);
        window.most = Math.max(window.most, body.rows.length);
    }).observe(body, { childList: true });
    window.live = { events: 0, errors: 0, stream: new EventSource("/live") };
    live.stream.onmessage = () => { live.events += 1; };
    live.stream.onerror = () => { live.errors += 1; };
"""
NUMBERS = """
    return [...document.querySelectorAll(".messages tr[data-position] .payload > div")].map(
        (each) => Number.parseInt(each.textContent))
"""
TIMES = """
    return [...document.querySelectorAll(".messages [data-label=Recorded]")].map(
        (each) => each.textContent)
"""
DATE = r"20[0-9-]{8} [0-9:]{8}Z"


@pytest.fixture(scope="module", params=KINDS)
def fast(request: pytest.FixtureRequest) -> Iterator[CommandLine]:
    """An archive with segments that hold some seconds of the stream."""
    with serve(request.param, {"aeron.archive.segment.file.length": str(8 << 20)}) as served:
        yield CommandLine(served)


def follow_button(page: Any) -> None:
    page.execute_script("document.getElementById('follow').click()")


def test_it_is_followed(fast: CommandLine, page: Any) -> None:
    """Some messages of each second are shown, until a pause; the page does not grow."""
    archive = fast.archive
    with archive.connect() as client, WebService(fast, archive.archive_dir) as web:
        client.start_recording(CHANNEL, STREAM_ID)
        with SteadyPublisher(archive.aeron_dir, CHANNEL, STREAM_ID, RATE, 100) as publisher:
            recording_id = client.await_signal(aerotape.RecordingSignal.START).recording_id
            await_true(lambda: client.recording_position(recording_id) > FOLLOWED * FRAME)
            web.await_state(recording_id, live=True)
            first = client.recording_position(recording_id)
            page.get(f"{web.url}recordings/{recording_id}")
            page.execute_script(OBSERVE)

            def steps() -> int:
                return int(page.execute_script("return steps.length"))

            begun = page.execute_script(NUMBERS)
            assert len(begun) == len(page.execute_script(TIMES)) == FOLLOWED
            await_true(lambda: steps() >= 3)
            following = text(page, "#following")
            assert re.fullmatch(r".* [KM]iB/s; of each second the newest 50 messages", following)

            follow_button(page)
            assert text(page, "#following") == "paused"
            held = page.execute_script(NUMBERS)
            seen = client.recording_position(recording_id)
            events = page.execute_script("return live.events")
            # Two looks of the page, and as many events of the stream.
            await_true(
                lambda: (
                    client.recording_position(recording_id) > seen + 2 * RATE * FRAME
                    and page.execute_script("return live.events") > events + 2
                )
            )
            assert page.execute_script(NUMBERS) == held

            follow_button(page)
            await_true(lambda: page.execute_script(NUMBERS)[-1] > held[-1] + 2 * RATE)
            await_true(lambda: sum(page.execute_script("return steps")) > KEPT + FOLLOWED)
            await_true(
                lambda: client.recording_position(recording_id) > first + AT_LEAST * FRAME
            )
            sent = publisher.stop()
            await_true(lambda: page.execute_script(NUMBERS)[-1] == sent.messages - 1)
            await_true(lambda: text(page, "#end") == str(sent.position))
            assert sent.messages > AT_LEAST
            assert client.recording_position(recording_id) == sent.position

            numbers = page.execute_script(NUMBERS)
            assert numbers == sorted(set(numbers))
            assert numbers[-FOLLOWED:] == list(range(sent.messages - FOLLOWED, sent.messages))
            assert max(page.execute_script("return steps")) == FOLLOWED
            assert KEPT - FOLLOWED < page.execute_script("return most") <= KEPT
            for time in page.execute_script(TIMES):
                assert re.fullmatch(DATE if archive.kind == "aerotape" else "", time)
            assert text(page, ".gap").endswith(" are not shown")
            live = page.execute_script("return [live.stream.readyState, live.errors]")
            assert live == [1, 0]
            page.execute_script("live.stream.close()")
            assert complaints(page) == []
        client.await_signal(aerotape.RecordingSignal.STOP)
        client.stop_recording(CHANNEL, STREAM_ID)


def test_positions_that_a_browser_would_round(page: Any) -> None:
    """Of a stream that began at 16 PiB: they are followed with all their digits."""
    channel = "aeron:ipc?term-length=16m|init-term-id=0|term-id=1073741824|term-offset=0"
    begin = 1_073_741_824 << 24
    with (
        serve("aerotape", {"aeron.archive.segment.file.length": str(16 << 20)}) as archive,
        archive.connect() as client,
        WebService(CommandLine(archive), archive.archive_dir) as web,
        aerotape.Aeron(archive.aeron_dir) as aeron,
        aeron.add_exclusive_publication(channel, STREAM_ID) as publication,
    ):
        client.start_recording(publication.channel, STREAM_ID, "local")
        publication.send(b"0")
        recording_id = client.await_signal(aerotape.RecordingSignal.START).recording_id
        web.await_state(recording_id, live=True)
        page.get(f"{web.url}recordings/{recording_id}")
        await_true(lambda: text(page, "#following") == "no new message")
        publication.send(b"1")
        await_true(lambda: page.execute_script(NUMBERS) == [0, 1])
        links = page.execute_script(
            "return [...document.querySelectorAll('.messages [data-label=Position] a')].map("
            "(each) => each.getAttribute('href'))"
        )
        assert [link.endswith(f"={begin + 64 * index}") for index, link in enumerate(links)] == [
            True,
            True,
        ], links
        await_true(lambda: text(page, "#end") == str(begin + 128))
        assert text(page, "#following") != ""
        assert complaints(page) == []
