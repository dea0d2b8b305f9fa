"""The pages in a real browser, beside a running archive of ours and the Java archive."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support import browser as browsers
from support.browser import complaints, text
from support.builders.held_recordings import add_recording
from support.daemon.archives import serve
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.processes import FAST_ARCHIVE, FAST_DRIVER
from support.proxy import PrefixProxy
from support.web import WebService

import aerotape
from aerotape.formatting import printable

pytestmark = pytest.mark.skipif(not browsers.IS_INSTALLED, reason="chromium is not installed")
PATHS = (
    *("", "recordings", "ledgers", "entities", "replays", "sessions", "retention", "counters"),
    *("errors", "api"),
)
MESSAGE = b'{"instrument": "ESZ6", "price": 5120.25, "size": 3}'.ljust(200)
HOSTILE = b"<script>document.title='hostile'</script><img src=x onerror=alert(1)>\x1b[2J\0\n"


@pytest.fixture
def web(cli: CommandLine) -> Iterator[WebService]:
    """The service beside a running archive."""
    with WebService(cli, cli.archive.archive_dir) as service:
        yield service


@contextmanager
def published(
    cli: CommandLine, client: aerotape.ArchiveClient, stream_id: int, channel: str = "aeron:ipc"
) -> Iterator[int]:
    """Record a stream with a hostile message and many others; yield the recording id."""
    stop = threading.Event()
    with aerotape.Aeron(cli.archive.aeron_dir) as aeron:
        client.start_recording(channel, stream_id)
        publication = aeron.add_publication(channel, stream_id)
        publication.send(HOSTILE)

        def publish() -> None:
            while not stop.wait(0.01):
                publication.send(MESSAGE)

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            yield client.await_signal(aerotape.RecordingSignal.START).recording_id
        finally:
            stop.set()
            thread.join()
            publication.close()
            client.await_signal(aerotape.RecordingSignal.STOP)


def test_live_figures(
    cli: CommandLine, client: aerotape.ArchiveClient, web: WebService, page: Any
) -> None:
    """Positions and rates move without a reload, and recordings come and go."""
    page.get(web.url)
    with published(cli, client, 7201) as recording_id:
        row = f"#live-recordings [data-id='{recording_id}']"
        await_true(lambda: text(page, f"{row} .rate").endswith("/s"))
        position = int(text(page, f"{row} .position"))
        await_true(lambda: int(text(page, f"{row} .position")) > position)
        assert text(page, "#live") == "1"
        none = "return getComputedStyle(document.querySelector('table + .none')).display"
        assert page.execute_script(none) == "none"
    await_true(lambda: text(page, row) == "None")
    assert page.execute_script(none) == "block"
    assert complaints(page) == []


def test_live_figures_of_a_busy_service(own: CommandLine, page: Any) -> None:
    """The page says that others have all event streams, and has one once there is room."""
    with WebService(own, own.archive.archive_dir) as web:
        url = urlsplit(web.url)
        with ExitStack() as others:
            streams = []
            for _ in range(100):
                made = others.enter_context(closing(http.client.HTTPConnection(url.netloc)))
                made.request("GET", "/live")
                streams.append(others.enter_context(made.getresponse()))
            assert all(each.status == 200 for each in streams)
            page.get(web.url)
            await_true(lambda: "the service is busy" in text(page, "#stale"))
            time.sleep(1)
            assert "the service is busy, 100 event streams are open" in text(page, "#stale")
        hidden = "return document.getElementById('stale').hidden"
        await_true(lambda: page.execute_script(hidden))


def test_live_figures_behind_a_proxy(own: CommandLine, page: Any) -> None:
    """They go on after the service was away, for which the proxy refuses requests."""
    with (
        WebService(own, own.archive.archive_dir) as web,
        PrefixProxy(web.url, "") as proxy,
    ):
        page.get(proxy.url)
        hidden = "return document.getElementById('stale').hidden"
        proxy.is_away = True
        await_true(lambda: text(page, "#stale").endswith("does not respond; trying again."))
        time.sleep(5)  # longer than between two tries
        proxy.is_away = False
        await_true(lambda: page.execute_script(hidden))
        assert text(page, "#stale").endswith("trying again.")


def test_a_recording_and_a_hostile_payload(
    cli: CommandLine, client: aerotape.ArchiveClient, web: WebService, page: Any
) -> None:
    """What a stream has is text; the plot is drawn; each view has a URL."""
    with published(cli, client, 7202) as recording_id:
        # A plot of rates needs two seconds, and there are at most 100 messages a second.
        await_true(lambda: client.recording_position(recording_id) > 80_000)
    web.await_state(recording_id, live=False)
    page.get(f"{web.url}recordings/{recording_id}")
    assert page.title == f"Recording {recording_id} · aerotape"
    assert text(page, ".payload > div") == printable(HOSTILE.decode())
    assert page.execute_script("return document.querySelectorAll('.payload div *').length") == 0
    if cli.archive.kind == "aerotape":
        await_true(lambda: text(page, "#rates canvas") == "")
    else:
        await_true(lambda: text(page, "#rates") == "There is no time index.")
    await_true(
        lambda: text(page, "#lengths canvas") == "" and "median 200 B" in text(page, "#gaps")
    )
    assert f"longest {max(len(HOSTILE), 200)} B; no gap." in text(page, "#gaps")
    page.execute_script("document.querySelector('#newer').click()")
    await_true(lambda: "position=" in page.current_url)
    await_true(lambda: text(page, ".messages td a") not in ("None", "0"))
    page.get(f"{web.url}recordings/{recording_id}?format=hex")
    assert text(page, ".payload > div") == HOSTILE.hex()
    assert complaints(page) == []


def test_pictures(
    own: CommandLine, page: Any, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    """`pytest tests/tools/web/test_pages.py --screenshots docs/images` writes those of the docs.

    They are light on a desk and dark on a telephone.
    """
    folder = pytestconfig.getoption("--screenshots") or tmp_path
    names = ("market-data", "orders", "positions")
    with ExitStack() as exits:
        client = exits.enter_context(own.archive.connect())
        ids = [
            exits.enter_context(published(own, client, 7210 + n, f"aeron:ipc?alias={names[n]}"))
            for n in range(len(names))
        ]
        web = exits.enter_context(WebService(own, own.archive.archive_dir))
        for width, height, dark, end in ((1280, 900, False, ""), (400, 860, True, "-narrow")):
            browsers.set_dark(page, dark=dark)
            browsers.resize(page, width, height)
            page.get(web.url)
            rate = f"[data-id='{ids[0]}'] .rate"
            await_true(lambda: text(page, rate).endswith("/s"))  # noqa: B023
            await_true(lambda: text(page, "#messages-per-s") not in ("\u2013", "0"))
            page.save_screenshot(str(folder / f"web-overview{end}.png"))
            page.get(f"{web.url}recordings/{ids[1]}")
            await_true(lambda: text(page, "#rates") != "" or text(page, "#rates canvas") == "")
            await_true(lambda: text(page, "#following") != "")
            page.save_screenshot(str(folder / f"web-recording{end}.png"))
            assert complaints(page) == []
    browsers.set_dark(page, dark=False)
    browsers.resize(page, 1200, 900)
    assert (folder / "web-recording-narrow.png").stat().st_size > 10_000


def test_search_and_pages(tmp_path: Path, own: CommandLine, page: Any) -> None:
    """All recordings are found page by page, and by channel."""
    for number in range(120):
        add_recording(tmp_path, [], now_ns=1, channel=f"aeron:ipc?alias=<b>{number}")
    with WebService(own, tmp_path) as web:
        page.get(f"{web.url}recordings")
        rows = "return document.querySelectorAll('tbody tr').length"
        assert page.execute_script(rows) == 100
        page.execute_script("document.querySelector('a[rel=next]').click()")
        await_true(lambda: "after=20" in page.current_url and page.execute_script(rows) == 20)
        page.get(f"{web.url}recordings?channel=%3Cb%3E77")
        assert text(page, "tbody .channel b") == "<b>77"
        assert text(page, "tbody .channel .detail") == "aeron:ipc?alias=<b>77"
        assert page.execute_script(rows) == 1


def test_every_page_in_every_look(
    cli: CommandLine, web: WebService, page: Any, tmp_path: Path
) -> None:
    """Without complaints of the browser, in light and dark, also at 400 pixels."""
    backgrounds = set()
    for path in PATHS:
        for dark in (False, True):
            browsers.set_dark(page, dark=dark)
            browsers.resize(page, 400, 800)
            page.get(web.url + path)
            script = "return getComputedStyle(document.body).backgroundColor"
            backgrounds.add((dark, page.execute_script(script)))
            width = page.execute_script("return document.documentElement.scrollWidth")
            assert width <= 400, path
        assert text(page, "h1")
    assert len(backgrounds) == 2
    browsers.set_dark(page, dark=False)
    browsers.resize(page, 1200, 900)
    assert complaints(page) == []
    page.get(f"{web.url}recordings/4711")
    assert "4711" in text(page, ".failed")


def test_failed_checks_are_red(own: CommandLine, page: Any, tmp_path: Path) -> None:
    """The mark before them, too; bytes have a unit."""
    add_recording(tmp_path, [], now_ns=1)
    with WebService(own, tmp_path) as web:
        page.get(web.url)
        script = "return getComputedStyle(document.querySelector(arguments[0]), '::before')"
        colours = {
            page.execute_script(f"{script}.color", f"[data-check={check}]")
            for check in ("archive", "storage")
        }
        assert len(colours) == 2
        failed = page.execute_script(f"{script}.color", "[data-check=archive]")
        text_colour = "return getComputedStyle(document.querySelector('.checks .failed')).color"
        assert failed == page.execute_script(text_colour)
        assert page.execute_script(f"{script}.content", "[data-check=archive]") == '"✗"'
        assert re.fullmatch(
            r"[0-9.]+ [KMGTP]iB of .* are free", text(page, "[data-check=storage] span")
        )


def test_many_tabs(own: CommandLine, page: Any) -> None:
    """A browser has six connections for all of them: those that are not seen have no stream."""
    with WebService(own, own.archive.archive_dir) as web:
        first = page.current_window_handle
        page.set_page_load_timeout(30)
        for _ in range(8):
            page.switch_to.new_window("tab")
            page.get(web.url)
            await_true(lambda: text(page, "#live") != "None")
        for handle in page.window_handles:
            if handle != first:
                page.switch_to.window(handle)
                page.close()
        page.switch_to.window(first)


def test_a_page_of_what_is_gone(own: CommandLine, page: Any) -> None:
    """It says so, and leads back; what is not a page at all, too; programs get a problem."""
    with WebService(own, own.archive.archive_dir) as web:
        for path, back in (
            ("recordings/4711", "recordings"),
            ("recordings/x", "recordings"),
            ("recordings?chanel=x", "recordings"),
            ("nothing", ""),
        ):
            page.get(web.url + path)
            assert text(page, ".failed") != "None"
            link = page.execute_script("return document.querySelector('#back').href")
            assert link == web.url + back
            assert web.get(f"/{path}").headers["content-type"] != "text/html"
        html = {"Accept": "text/html"}
        assert web.get("/recordings/x", **html).status == 400
        assert web.get("/api/v1/recordings/x", **html).json["status"] == 400
        assert web.get("/nothing", **html).status == 404
        assert web.get("/api", "PUT", **html).headers["allow"] == "GET"


def test_rows_are_cards_on_a_telephone(own: CommandLine, page: Any, tmp_path: Path) -> None:
    """The channel has the whole width, and each value its title."""
    channel = "aeron:udp?endpoint=224.0.1.1:40456|interface=192.168.0.0/16|alias=" + "a" * 60
    add_recording(tmp_path, [1], now_ns=10**18, channel=channel)
    with WebService(own, tmp_path) as web:
        browsers.resize(page, 400, 800)
        try:
            page.get(f"{web.url}recordings")
            width = "return document.querySelector('td.channel').clientWidth"
            assert page.execute_script(width) > 300
            title = "return getComputedStyle(document.querySelector('td.channel'), '::before')"
            assert "Name" in page.execute_script(f"{title}.content")
            page.get(f"{web.url}recordings/0")
            await_true(lambda: text(page, "#lengths canvas") == "")
            wide = "return document.documentElement.scrollWidth"
            assert page.execute_script(wide) <= 400
        finally:
            browsers.resize(page, 1200, 900)
    assert complaints(page) == []


def test_no_page_has_control_characters(
    cli: CommandLine, client: aerotape.ArchiveClient, web: WebService
) -> None:
    """HTML does not have them, however a payload does."""
    with published(cli, client, 7206) as recording_id:
        await_true(lambda: client.recording_position(recording_id) > 1_000)
    web.await_state(recording_id, live=False)
    shown = web.get(f"/recordings/{recording_id}").text
    assert "\\x1b[2J\\x00\\n" in shown
    assert set(re.findall(r"[\x00-\x1f\x7f-\x9f]", shown)) <= {"\n"}


def test_requests_can_be_tried(web: WebService, page: Any) -> None:
    """The response is shown as text, errors too."""
    page.get(f"{web.url}api")
    for recording_id in ("4711", "<b>"):
        page.execute_script(
            """
            const path = "/api/v1/recordings/{recording_id}";
            const form = document.querySelector(`form[data-path="${path}"]`);
            form.closest("details").open = true;
            form.querySelector("input").value = arguments[0];
            form.requestSubmit();
            """,
            recording_id,
        )
        status = "404" if recording_id == "4711" else "400"
        await_true(lambda: status in text(page, "details[open] output"))  # noqa: B023
    assert "ConfigurationError" in text(page, "details[open] output")
    operations = "return document.querySelectorAll('.operation').length"
    assert page.execute_script(operations) == sum(
        len(methods) for methods in web.get("/openapi.json").json["paths"].values()
    )


def test_replays(page: Any) -> None:
    """One that is not read has not reached the end of its recording."""
    with ExitStack() as exits:
        served = exits.enter_context(serve("aerotape"))
        own = CommandLine(served)
        web = exits.enter_context(WebService(own, served.archive_dir))
        client = exits.enter_context(served.connect())
        recording_id = exits.enter_context(published(own, client, 7205))
        messages = exits.enter_context(client.replay(recording_id, 0, follow=True))
        next(messages)
        page.get(f"{web.url}replays")
        await_true(lambda: text(page, "tbody td a") == str(recording_id))
        lag = "tbody td:last-child"
        before = text(page, lag)
        await_true(lambda: text(page, lag) != before)  # without a reload
        page.get(f"{web.url}retention")
        assert "--retention" in text(page, "main")


def test_ledgers(page: Any) -> None:
    with serve("aerotape") as served, served.connect() as client:
        with client.create_ledger("VD_JOURNAL", aerotape.QualifiedId(6, 78)) as writer:
            writer.add_many([b"zero", b"one"])
        with WebService(CommandLine(served), served.archive_dir) as web:
            page.get(f"{web.url}ledgers?scope=6")
            assert text(page, "tbody td") == "78"
            cells = page.execute_script(
                "return [...document.querySelectorAll('tbody td')].map(each => each.textContent)"
            )
            assert cells[1:6] == ["VD_JOURNAL", "CLOSED", "no", "1", "1"]
            page.execute_script("document.querySelector('tbody a').click()")
            await_true(lambda: page.title.startswith("Ledger 78"))
            await_true(lambda: text(page, "tbody tr:last-child .payload") == "one")
            page.get(f"{web.url}ledgers/6/78?entry=0")
            assert text(page, "tbody .payload") == "zero"
            page.get(f"{web.url}ledgers/6/79")
            assert "unknown ledger" in text(page, ".failed:not(#stale)")
            page.get(f"{web.url}ledgers?scope=6")
            with client.create_ledger("VD_JOURNAL", aerotape.QualifiedId(6, 80)):
                await_true(lambda: text(page, "tbody tr:last-child td") == "80")
            page.get(f"{web.url}ledgers?scope=x")
            assert "scope='x'" in text(page, ".failed:not(#stale)")


def test_an_archive_that_restarts_under_the_page(
    cli: CommandLine, page: Any, tmp_path: Path, aeron_dir: Path
) -> None:
    """The page stays, shows that the archive is away, and goes on with the next one."""
    properties = {
        **FAST_DRIVER,
        **FAST_ARCHIVE,
        "aeron.archive.control.channel": "aeron:udp?endpoint=localhost:0",
    }

    def launch() -> aerotape.Archive:
        return aerotape.Archive.launch(tmp_path / "archive", aeron_dir, properties=properties)

    with launch():
        web = WebService(cli, tmp_path / "archive")
        page.get(web.url)
    with web:
        check = "[data-check=archive]"
        await_true(lambda: text(page, f"{check}.failed span") == "the archive was stopped")
        with launch() as archive, aerotape.connect(aeron_dir=archive.aeron_dir) as client:
            own = CommandLine(replace(cli.archive, aeron_dir=Path(archive.aeron_dir)))
            with published(own, client, 7203):
                await_true(lambda: text(page, "#live") == "1")
                assert "sign of life" in text(page, f"{check}.ok span")
