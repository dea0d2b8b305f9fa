"""Who is connected to an archive, from where, since when, and what they read and publish."""

from __future__ import annotations

from typing import Any

import pytest
from support import browser as browsers
from support.browser import complaints
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.web import WebService

import aerotape
from aerotape import counter_keys
from aerotape.cnc import CounterRecord
from aerotape.counter_keys import CounterType
from aerotape.tools._web.sessions import SessionLog

NAME = "nightly <b>job</b>"
ARCHIVE = 1


def session_of(web: WebService, name: str) -> dict[str, Any]:
    """Return the row of the client with a name; empty without one."""
    rows = web.get("/api/v1/sessions").json
    return next((each for each in rows if each["client"] == name), {})


def test_a_session(cli: CommandLine) -> None:
    """Its name, address, responses, replays and streams; it goes with its client."""
    with WebService(cli, cli.archive.archive_dir) as web:
        with cli.archive.connect(client_name=NAME) as client:
            client.start_recording("aeron:ipc?alias=prices", 7801)
            publication = client.aeron.add_publication("aeron:ipc?alias=prices", 7801)
            publication.send(b"one")
            recording_id = client.await_signal(aerotape.RecordingSignal.START).recording_id
            with client.replay(recording_id, 0, follow=True) as messages:
                next(messages)
                await_true(lambda: session_of(web, NAME).get("published") == [recording_id])
                if cli.archive.kind == "aerotape":
                    await_true(lambda: session_of(web, NAME).get("replays") == [recording_id])
            found = session_of(web, NAME)
            assert found["version"] == aerotape.__version__
            assert found["source"].startswith(("aeron:ipc", "127.0.0.1:"))
            assert found["is_local"] is True
            assert found["response_channel"].startswith("aeron:")
            assert found["first_seen_ms"] > 0
            await_true(lambda: session_of(web, NAME)["replays"] == [])
            publication.close()
            client.await_signal(aerotape.RecordingSignal.STOP)
            client.stop_recording("aeron:ipc?alias=prices", 7801)
        await_true(lambda: session_of(web, NAME) == {})


@pytest.mark.skipif(not browsers.IS_INSTALLED, reason="chromium is not installed")
def test_the_page(own: CommandLine, page: Any) -> None:
    """In words; recordings are links with their names, and what a client says is text."""
    with own.archive.connect(client_name=NAME) as client:
        client.start_recording("aeron:ipc?alias=prices", 7802)
        publication = client.aeron.add_publication("aeron:ipc?alias=prices", 7802)
        publication.send(b"one")
        recording_id = client.await_signal(aerotape.RecordingSignal.START).recording_id
        with WebService(own, own.archive.archive_dir) as web:
            page.get(f"{web.url}sessions")
            links = "return [...document.querySelectorAll('tbody a')].map(each => each.textContent)"
            await_true(lambda: page.execute_script(links) == [f"{recording_id} prices"])
            rows = "return [...document.querySelectorAll('tbody tr')].map(each => each.textContent)"
            [row] = [each for each in page.execute_script(rows) if NAME in each]
            assert f"{NAME} {aerotape.__version__}" in row
            assert "before 20" in row
            assert page.execute_script("return document.querySelectorAll('tbody b').length") == 0
            page.execute_script("document.querySelector('tbody a').click()")
            await_true(lambda: page.title.startswith(f"Recording {recording_id} "))
            assert complaints(page) == []
        publication.close()
        client.await_signal(aerotape.RecordingSignal.STOP)
        client.stop_recording("aeron:ipc?alias=prices", 7802)


def counter(label: str, control_session_id: int = 5) -> CounterRecord:
    """Return the counter of a control session."""
    key = counter_keys.control_session_key(ARCHIVE, control_session_id).ljust(112, b"\0")
    return CounterRecord(9, CounterType.CONTROL_SESSION, 0, label, key, 1, 2, 3)


@pytest.mark.parametrize(
    ("info", "wanted"),
    [
        ("name=a b version=1 sourceIdentity=10.0.0.1:9 sessionId=-7", ("a b", "1", "10.0.0.1:9")),
        (
            "name=x version=1.47 commit=ab sourceIdentity=aeron:ipc sessionId=7",
            ("x", "1.47", "aeron:ipc"),
        ),
        ("name= version=1 sourceIdentity=aeron:ipc sessionId=7", ("", "1", "aeron:ipc")),
        ("sourceIdentity=aeron:ipc sessionId=7", ("", "", "aeron:ipc")),
        ("something else sourceIdentity=[::1]:9 sessionId=7", ("something else", "", "[::1]:9")),
        ("cut off sourceIden", ("cut off sourceIden", "", "")),
        # What a client says of itself does not hide where it is.
        (
            "name=x sourceIdentity=liar sessionId=1 sourceIdentity=10.0.0.1:9 sessionId=7",
            ("x sourceIdentity=liar sessionId=1", "", "10.0.0.1:9"),
        ),
        ("", ("", "", "")),
    ],
)
def test_labels(info: str, wanted: tuple[str, str, str]) -> None:
    """Of both archives, also those that are cut off."""
    label = f"control-session: {info} - archiveId={ARCHIVE}"
    own = [counter(label)]
    [found] = SessionLog().sessions(own, own, {}, 10)
    assert (found.client, found.version, found.source) == wanted
    assert (found.is_local, found.response_channel) == (False, "")


def test_since_when() -> None:
    """Those of the first look are older than it; a look at nothing is not one."""
    log = SessionLog()
    first, second = (counter("control-session: x", number) for number in (1, 2))
    assert log.sessions([], [], {}, 10) == []
    log.sessions([first], [first], {}, 20)
    both = log.sessions([first, second], [first, second], {}, 30)
    assert [(each.first_seen_ms, each.is_older) for each in both] == [(20, True), (30, False)]
    again = log.sessions([second], [second], {}, 40)
    assert [each.first_seen_ms for each in again] == [30]
