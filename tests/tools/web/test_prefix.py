"""`aerotape web --root-path`: the service behind a reverse proxy, under a prefix."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from support import browser as browsers
from support.browser import text
from support.builders.held_recordings import add_recording
from support.builders.offline_directory import build
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.proxy import PrefixProxy
from support.web import WebService

PREFIX = "/ops/tape"
ATTRIBUTES = ("href", "src", "action", "data-rates", "data-statistics", "data-messages")


class Links(HTMLParser):
    """Collects what a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, _tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.update(value for name, value in attributes if name in ATTRIBUTES and value)


def fetch(url: str, method: str = "GET") -> tuple[int, http.client.HTTPMessage, str]:
    """Return status, headers and body, without following redirects."""
    parts = urlsplit(url)
    made = http.client.HTTPConnection(parts.netloc, timeout=60)
    made.request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path)
    response = made.getresponse()
    body = response.read().decode(errors="replace")  # Parquet is no text
    made.close()
    return response.status, response.msg, body


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An archive directory with more than a page of recordings."""
    folder = build(tmp_path / "archive")
    for number in range(101):
        add_recording(folder, [], now_ns=1, channel=f"aeron:ipc?alias={number}")
    return folder


@pytest.fixture
def proxy(own: CommandLine, directory: Path) -> Iterator[PrefixProxy]:
    with (
        WebService(own, directory, "--root-path", f"{PREFIX}/") as web,
        PrefixProxy(web.url, PREFIX) as started,
    ):
        yield started


def test_every_link_of_every_page(proxy: PrefixProxy) -> None:
    """Leads to something under the prefix; nothing is asked for outside, and nothing redirects."""
    begin = f"{proxy.url}{PREFIX}/"
    waiting, seen = [begin], {begin}
    while waiting:
        url = waiting.pop()
        status, headers, body = fetch(url)
        assert status in (200, 503), url  # ledgers need the archive
        assert headers["set-cookie"] is None
        if not headers["content-type"].startswith("text/html"):
            continue
        links = Links()
        links.feed(body)
        for link in links.found:
            target = urljoin(url, link).partition("#")[0]
            assert target.startswith(begin), (url, link)
            # Positions of messages lead to further ones without end.
            key = re.sub(r"(position|before)=\d+", r"\1", target)
            if key not in seen:
                seen.add(key)
                waiting.append(target)
    assert proxy.outside == []
    paths = {urlsplit(url).path.removeprefix(PREFIX) for url in seen}
    wanted = {"/", "/api", "/openapi.json", "/replays", "/recordings/0", "/static/aerotape.js"}
    assert wanted <= paths
    assert len(seen) > 100


def test_a_redirect_stays_under_the_prefix(proxy: PrefixProxy) -> None:
    """It has no host and no scheme: the proxy may be reached by others."""
    status, headers, _ = fetch(f"{proxy.url}{PREFIX}/recordings/?live=true")
    assert (status, headers["location"]) == (307, f"{PREFIX}/recordings?live=true")
    status, headers, _ = fetch(f"{proxy.url}{PREFIX}//evil.example/")
    assert (status, headers["location"]) == (404, None)


def test_the_openapi_document_has_the_prefix(proxy: PrefixProxy) -> None:
    _, _, body = fetch(f"{proxy.url}{PREFIX}/openapi.json")
    assert json.loads(body)["servers"] == [{"url": PREFIX}]


def test_the_service_itself_has_no_prefix(own: CommandLine, directory: Path) -> None:
    """Monitoring that reaches it without the proxy uses the paths that it always has."""
    with WebService(own, directory, "--root-path", PREFIX) as web:
        for path in ("/healthz", "/metrics", "/api/v1/recordings"):
            assert web.get(path).status == 200
        assert f'href="{PREFIX}/recordings"' in web.get("/").text


def test_a_prefix_that_a_trusted_proxy_states(own: CommandLine, directory: Path) -> None:
    """It replaces the one of the option, and must be a path."""
    options = ("--root-path", PREFIX, "--trusted-proxy", "127.0.0.0/8")
    with WebService(own, directory, *options) as web:
        assert 'href="/a/b/recordings"' in web.get("/", X_Forwarded_Prefix="/a/b/").text
        assert 'href="/recordings"' in web.get("/", X_Forwarded_Prefix="/").text
        assert f'href="{PREFIX}/recordings"' in web.get("/").text
        for wrong in (
            "//evil.example",
            '/"><script>',
            "a",
            "/a,/b",
            "/..",
            "/a/./b",
            "/" + "a" * 300,
        ):
            answer = web.get("/", X_Forwarded_Prefix=wrong)
            assert answer.status == 400, wrong
            assert "X-Forwarded-Prefix" in answer.json["detail"]


def test_a_prefix_of_others_is_ignored(own: CommandLine, directory: Path) -> None:
    with WebService(own, directory, "--trusted-proxy", "10.1.0.0/16") as web:
        answer = web.get("/", X_Forwarded_Prefix="//evil.example")
        assert answer.status == 200
        assert "evil" not in answer.text
        assert 'href="/recordings"' in answer.text


@pytest.mark.parametrize("prefix", ["tape", "//evil.example", "/a//b", "/a b", "/..", "/é", "/a?b"])
def test_prefixes_that_are_none(own: CommandLine, directory: Path, prefix: str) -> None:
    err = own.error("web", directory, "--root-path", prefix, code=2)
    assert "expected a path such as /tape" in err


@pytest.mark.parametrize("address", ["x", "127.0.0.1/8", "1.2.3", "proxy.example"])
def test_proxies_that_are_none(own: CommandLine, directory: Path, address: str) -> None:
    err = own.error("web", directory, "--trusted-proxy", address, code=2)
    assert "expected an IP address, or a network" in err


@pytest.mark.skipif(not browsers.IS_INSTALLED, reason="chromium is not installed")
def test_scripts_find_their_paths(proxy: PrefixProxy, page: Any) -> None:
    """The event stream, plots, and requests to try, with changes that a page asks for."""
    page.get(f"{proxy.url}{PREFIX}/")
    await_true(lambda: text(page, "#bytes-per-s") == "0 B")
    page.get(f"{proxy.url}{PREFIX}/recordings/0")
    await_true(lambda: text(page, "#lengths canvas") == "")
    page.get(f"{proxy.url}{PREFIX}/api")
    wanted = {"GET": '"recording_id":0', "DELETE": "without --allow-changes"}
    for method in wanted:
        page.execute_script(
            """
            const path = "/api/v1/recordings/{recording_id}";
            const form = document.querySelector(
              `form[data-method=${arguments[0]}][data-path="${path}"]`);
            window.prompt = () => arguments[0];  // what is to be typed to send a change
            document.querySelector("details[open]")?.removeAttribute("open");
            form.closest("details").open = true;
            form.querySelector("input").value = "0";
            form.requestSubmit();
            """,
            method,
        )
        await_true(lambda: wanted[method] in text(page, "details[open] output"))  # noqa: B023
        assert f"{method} {PREFIX}/api/v1" in text(page, "details[open] output")
    assert proxy.outside == []
