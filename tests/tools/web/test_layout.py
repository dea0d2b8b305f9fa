"""Pages stay still while live values arrive, and are small and complete in themselves."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import browser as browsers
from support.beside import working
from support.browser import complaints, text
from support.daemon.archives import ServedArchive, serve
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.steady_publisher import SteadyPublisher
from support.web import WebService

import aerotape
from aerotape.codecs.entity.actions import Event
from aerotape.tools._web.pages import routes

needs_browser = pytest.mark.skipif(not browsers.IS_INSTALLED, reason="chromium is not installed")
CHANNEL = "aeron:ipc?term-length=8m|alias=prices"
STREAM_ID = 7861
SCOPE = 6
MOST_SHIFT = 0.05
MOST_SCRIPT = 60_000
FOLDER = Path(routes.__file__).parent
CHANGES = 3
"""So many times a page has changed since it was shown."""
PAGES = {
    "": "#live-recordings .rate",
    "recordings": "tbody tr",
    "recordings/0": ".messages tbody tr",
    "replays": "tbody tr",
    "sessions": "tbody tr",
    f"ledgers?scope={SCOPE}": "tbody tr",
    "entities": "tbody tr",
    "counters": "tbody tr",
}
WATCH = """
    window.shift = 0;
    window.changes = 0;
    new PerformanceObserver((list) => {
        for (const each of list.getEntries()) {
            shift += each.hadRecentInput ? 0 : each.value;
        }
    }).observe({ type: "layout-shift", buffered: true });
    new MutationObserver(() => { changes += 1; }).observe(document.querySelector("main"),
        { subtree: true, childList: true, characterData: true });
"""
# Two frames later the observer has what was drawn.
DRAWN = """
    const done = arguments[0];
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(shift), 0)));
"""


@contextmanager
def stirred(served: ServedArchive) -> Iterator[None]:
    """Add ledgers, and clients that come and go, until the end."""

    def run(done: threading.Event) -> None:
        for number in itertools.count(2):
            with served.connect(client_name=f"client {number}") as client:
                ledger = aerotape.QualifiedId(SCOPE, number)
                with client.create_ledger("VD_JOURNAL", ledger) as writer:
                    writer.add_many([b"zero"])
                with client.entities(f"topic-{number}") as entities:
                    entities.append("key", [Event(1, b"{}", "json")])
                if done.wait(1):
                    return

    with working(run):
        yield


@pytest.fixture(scope="module")
def busy() -> Iterator[WebService]:
    """A service beside an archive with a recording, a replay, ledgers and clients in progress."""
    with ExitStack() as exits:
        properties = {"aeron.archive.segment.file.length": str(8 << 20)}
        served = exits.enter_context(serve("aerotape", properties))
        client = exits.enter_context(served.connect(client_name="nightly job"))
        client.start_recording(CHANNEL, STREAM_ID)
        publisher = SteadyPublisher(served.aeron_dir, CHANNEL, STREAM_ID, 1_000, 1_000)
        exits.enter_context(publisher)
        recording_id = client.await_signal(aerotape.RecordingSignal.START).recording_id
        await_true(lambda: client.recording_position(recording_id) > 1 << 20)
        replay = exits.enter_context(client.replay(recording_id, 0, follow=True))
        next(replay)
        ledger = aerotape.QualifiedId(SCOPE, 1)
        writer = exits.enter_context(client.create_ledger("VD_JOURNAL", ledger))
        writer.add_many([b"zero", b"one"])
        exits.enter_context(stirred(served))
        yield exits.enter_context(WebService(CommandLine(served), served.archive_dir))


@needs_browser
@pytest.mark.parametrize("path", PAGES)
def test_nothing_moves(busy: WebService, page: Any, path: str) -> None:
    """While figures and rows change."""
    page.get(busy.url + path)
    page.execute_script(WATCH)
    await_true(lambda: text(page, PAGES[path]) != "None")
    await_true(lambda: page.execute_script("return changes") >= CHANGES)
    assert page.execute_async_script(DRAWN) < MOST_SHIFT
    assert complaints(page) == []


@needs_browser
def test_what_moves_is_noticed(busy: WebService, page: Any) -> None:
    """A line that appears above the rest."""
    page.get(f"{busy.url}recordings")
    page.execute_script(WATCH)
    page.execute_async_script(DRAWN)
    page.execute_script(
        "const line = document.createElement('h1'); line.style.height = '20rem';"
        "document.querySelector('main').prepend(line)"
    )
    assert page.execute_async_script(DRAWN) > MOST_SHIFT


def test_scripts_are_small() -> None:
    """Besides the library that draws plots, which is served whole."""
    static = {path.name: path for path in (FOLDER / "static").iterdir()}
    scripts = {name: path.stat().st_size for name, path in static.items() if name.endswith(".js")}
    assert set(scripts) == {"aerotape.js", "uPlot.js"}
    assert scripts["aerotape.js"] < MOST_SCRIPT
    assert {name for name in static if name.endswith(".css")} == {"aerotape.css", "uPlot.css"}


def test_nothing_comes_from_elsewhere() -> None:
    """Nor is there a style or a script in a page itself."""
    names = ("http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot")
    for path in (*(FOLDER / "static").iterdir(), *(FOLDER / "templates").iterdir()):
        content = path.read_text()
        if path.suffix in (".html", ".css", ".js", ".svg"):
            found = re.findall(r"""(?:https?:)?//[\w-]+(?:\.[\w-]+)+[^\s"'`)]*""", content)
            assert [each for each in found if each not in names] == [], path.name
            assert "@import" not in content and "url(" not in content, path.name
        if path.suffix == ".html":
            for inline in ("<style", " style=", "<script>", " onclick=", "javascript:"):
                assert inline not in content, path.name


@needs_browser
@pytest.mark.parametrize("path", ["", "recordings/0", "api"])
def test_a_browser_asks_only_the_service(busy: WebService, page: Any, path: str) -> None:
    """All that a page has loaded has the address of the service."""
    page.get(busy.url + path)
    script = "return performance.getEntriesByType('resource').map((each) => each.name)"
    await_true(lambda: any(".js" in each for each in page.execute_script(script)))
    assert all(each.startswith(busy.url) for each in page.execute_script(script))
