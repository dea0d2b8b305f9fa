"""Pages for everyone: axe-core finds nothing serious on any, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import accessibility
from support import browser as browsers
from support.accessibility import violations
from support.browser import complaints, text
from support.daemon.archives import serve
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.web import WebService

import aerotape
from aerotape.catalog.recovery.suspect_marks import SuspectNote, add_notes
from aerotape.codecs.entity.actions import Event

pytestmark = [
    pytest.mark.skipif(not browsers.IS_INSTALLED, reason="chromium is not installed"),
    pytest.mark.skipif(not accessibility.IS_FETCHED, reason="`make jars` fetches axe-core"),
]
PAGES = {
    "": "h1, #live-recordings",
    "recordings": "tbody tr",
    "recordings/0": "#lengths canvas",
    "recordings/1": "#damage",
    "recordings/2": "#following",
    "recordings/0?text=x&format=hex": "tbody tr",
    "recordings/4711": ".failed",
    "ledgers": "tbody tr",
    "ledgers/0/78": "tbody tr",
    "entities": "tbody tr",
    "entities/orders": "tbody tr",
    "entities/orders/journal?key=order-7": "#state",
    "replays": "tbody tr",
    "sessions": "tbody tr",
    "retention": "[data-retention]",
    "counters": "tbody tr",
    "errors": "h1",
    "api": ".operation",
}
SMALL = {
    "aeron.archive.segment.file.length": "65536",
    "aeron.ipc.term.buffer.length": "65536",
}


@dataclass(frozen=True)
class Shown:
    """A service beside an archive.

    Attributes:
        web: the service.
        client: connected to the archive.
        live: the id of a recording in progress.
    """

    web: WebService
    client: aerotape.ArchiveClient
    live: int


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """A service whose pages have something to show, with all actions that there are."""
    policy = tmp_path_factory.mktemp("policy") / "policy.toml"
    policy.write_text("[[rule]]\nmax_recordings = 1\n")
    with ExitStack() as exits:
        served = exits.enter_context(serve("aerotape", SMALL))
        client = exits.enter_context(served.connect(client_name="nightly job"))
        for stream_id in (7950, 7950, 7951):
            live, publication = _published(client, stream_id)
            if stream_id == 7950:
                publication.close()
                client.await_signal(aerotape.RecordingSignal.STOP)
                client.stop_recording("aeron:ipc?alias=prices", stream_id)
        assert live == 2
        with client.create_ledger("VD_JOURNAL", aerotape.QualifiedId(0, 78)) as writer:
            writer.add_many([b"zero", b"one"])
        with client.entities("orders") as orders:
            orders.append("order-7", [Event(1, b'{"price": 2.50}', "json", ("buy",))])
            orders.save_snapshot("order-7", 1, b'{"open": 5}', "json")
        add_notes(served.archive_dir, 1, [SuspectNote("torn frames", "64 bytes", 64, 1)])
        options = ("--allow-changes", "--retention", policy)
        service = WebService(CommandLine(served), served.archive_dir, *options)
        yield Shown(exits.enter_context(service), client, live)


def _published(client: aerotape.ArchiveClient, stream_id: int) -> tuple[int, Any]:
    """Record a stream with some messages; return the recording id and the publication."""
    client.start_recording("aeron:ipc?alias=prices", stream_id)
    publication = client.aeron.add_publication("aeron:ipc?alias=prices", stream_id)
    recording_id = client.await_signal(aerotape.RecordingSignal.START).recording_id
    for _ in range(300):
        end = publication.send(b"x" * 1_000)
    await_true(lambda: client.recording_position(recording_id) == end)
    return recording_id, publication


@pytest.mark.parametrize("path", PAGES)
def test_a_page(shown: Shown, page: Any, path: str) -> None:
    """At 1,280 and 400 pixels, whose rows are cards."""
    with shown.client.replay(shown.live, 0, follow=True) as replay:
        next(replay)
        page.get(shown.web.url + path)
        await_true(lambda: text(page, PAGES[path]) != "None")
        _check(page, path)


@pytest.mark.parametrize(
    ("path", "button"),
    [("recordings/0", "[data-action=truncate]"), ("retention", "[data-retention] button")],
)
def test_a_dialog(shown: Shown, page: Any, path: str, button: str) -> None:
    """Where a change is confirmed."""
    page.get(shown.web.url + path)
    page.execute_script("document.querySelector(arguments[0]).click()", button)
    assert page.execute_script("return document.querySelector('dialog').open")
    _check(page, path)


def test_what_is_found(page: Any, tmp_path: Path) -> None:
    """The check itself finds a field without a label, and text that one cannot see."""
    file = tmp_path / "bad.html"
    file.write_text(
        "<!doctype html><html lang=en><title>x</title><main><input>"
        "<p style='color: #ddd; background: #fff'>pale</p></main>"
    )
    page.get(file.as_uri())
    found = " ".join(violations(page))
    assert "critical: label" in found and "serious: color-contrast" in found


def _check(page: Any, path: str) -> None:
    try:
        for width in (1_280, 400):
            browsers.resize(page, width, 900)
            for dark in (False, True):
                browsers.set_dark(page, dark=dark)
                assert violations(page) == [], (path, width, dark)
    finally:
        browsers.set_dark(page, dark=False)
        browsers.resize(page, 1_200, 900)
    assert [each for each in complaints(page) if "4711" not in each] == []
