"""No request makes the web service fail: random routes, parameters and headers."""

from __future__ import annotations

import base64
import http.client
import random
import re
import socket
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

import pytest
from support.daemon.archives import serve
from support.daemon.command_line import CommandLine
from support.web import WebService

import aerotape as package
from aerotape.codecs.entity.actions import Event

REQUESTS = 300
PROBLEM, HTML = "application/problem+json", "text/html; charset=utf-8"
HUGE = "9" * 5_000
VALUES = (
    *("", "0", "1", "-1", "7", "00", "+1", "1_0", " 1", "1.5", "1e9", "1e999", "nan", "true", "x"),
    *map(str, (2**31, 2**32, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 2**200)),
    *(HUGE, f"-{HUGE}", f"{HUGE}s", f"{HUGE}ms", "9" * 4_300, "1" * 19, "1" * 32, "f" * 32),
    *("٣", "é", "\0", "\x1b[2J", "\udcff", "\U0010ffff", "a" * 10_000, "..", "../../etc/passwd"),
    *("2026-01-01T00:00Z", "9999-12-31T23:59Z", "0001-01-01T00:00+23:59", "text", "hex", "base64"),
    *("aeron:ipc", "aeron:udp?endpoint=x", "aeron:", "aeron:ipc?alias=\xff", "orders", "a/b", "[]"),
    *("local", "remote", "recording_id", "start_timestamp_ms", "recorded_bytes", "market-data"),
)
HEADERS = {
    "Host": ("localhost", "", "[", "[::1", "[::1]", "evil.example", "localhost:x", "\xff", "a@b"),
    "Origin": ("http://[", "http://localhost", "null", "http://evil.example", "\xff", "//", ":"),
    "Authorization": ("Basic \xe9", "Basic", "Basic YTpi", "Basic !", "Bearer x", "\xff"),
    "Accept": ("*/*", "\xff", ";q=,;", "application/openmetrics-text; version=1.0.0", "a" * 9_000),
    "Accept-Encoding": ("gzip", "\xff", "identity;q=0"),
    "Range": ("bytes=0-", "bytes=-1", "bytes=9-1", "bytes=" + "0-1," * 999, "x", f"bytes=0-{HUGE}"),
    "If-None-Match": ("*", "\xff"),
    "If-Modified-Since": ("x", "\xff", "Thu, 01 Jan 1970 00:00:00 GMT"),
    "Content-Length": ("0", "1", "-1", "x", HUGE[:4_000]),
    "Transfer-Encoding": ("chunked", "x", "gzip, chunked"),
    "Content-Type": ("application/json", "multipart/form-data; boundary=\xff", "x"),
    "X-Forwarded-Prefix": ("/tape", "//evil.example", '/"><script>', "/" + "a" * 9_000, "\xff"),
    "X-Forwarded-For": ("1.2.3.4", "\xff", "x" * 9_000),
    "X-Forwarded-Proto": ("https", "\xff"),
    "Expect": ("100-continue", "x"),
    "Connection": ("close", "Upgrade", "keep-alive, Upgrade, \xff"),
    "Upgrade": ("websocket", "h2c"),
    "Cookie": ("a=\xff", "=" * 9_000),
}
PAGES = (
    *("", "recordings", "recordings/{recording_id}", "ledgers", "entities", "replays", "sessions"),
    *("entities/{topic}", "entities/{topic}/journal"),
    *("retention", "counters", "errors", "api", "live", "static/{path}", "none", "openapi.json"),
)
NAMES = (
    *("channel", "stream_id", "position", "format", "schema", "from_time", "topic", "key"),
    *("scope", "tag", "before"),
)


@pytest.fixture(scope="module")
def web() -> Iterator[WebService]:
    """A service that may change its archive, which has a recording and a journal."""
    with serve("aerotape") as served, served.connect() as client:
        client.start_recording("aeron:ipc", 7)
        with package.Aeron(served.aeron_dir) as aeron:
            publication = aeron.add_publication("aeron:ipc", 7)
            publication.send(b"\xff" * 5_000)
            publication.send(b"text")
            client.await_signal(package.RecordingSignal.START)
            publication.close()
        with client.entities("orders") as entities:
            entities.append("a", [Event(1, b"{}", "json")])
        options = ["--allow-changes", "--allowed-host", "tape.example"]
        options += ["--trusted-proxy", "127.0.0.1"]
        with WebService(CommandLine(served), served.archive_dir, *options) as service:
            yield service


def operations(web: WebService) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return method, path and names of the query's parameters of what the service has."""
    document = web.get("/openapi.json").json
    found = [
        (
            method.upper(),
            path,
            tuple(
                each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"
            ),
        )
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return found + [("GET", f"/{page}", NAMES) for page in PAGES]


def request_of(generator: random.Random, known: list[tuple[str, str, tuple[str, ...]]]) -> bytes:
    """Return a random request."""
    method, path, names = generator.choice(known)
    if generator.random() < 0.1:
        method = generator.choice(("GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH", "X"))

    def value() -> str:
        text = "0" if generator.random() < 0.3 else generator.choice(VALUES)
        return quote(text, safe="", errors="surrogateescape")

    path = re.sub(r"\{[^}]*\}", lambda _: value(), path)
    chosen = [name for name in names if generator.random() < 0.4]
    if generator.random() < 0.05:
        chosen.append("unknown")
    query = "&".join(f"{name}={value()}" for name in chosen)
    headers = {"Host": "localhost"}
    for name in generator.sample(list(HEADERS), k=generator.choice((0, 0, 0, 1, 1, 2))):
        headers[name] = generator.choice(HEADERS[name])
    version = generator.choice(("1.1", "1.1", "1.1", "1.0"))
    lines = [f"{method} {path}{'?' if query else ''}{query} HTTP/{version}"]
    lines += [f"{name}: {text}" for name, text in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def response_to(web: WebService, request: bytes) -> http.client.HTTPResponse:
    """Send a request, and return the response with what of its body arrives at once."""
    url = urlsplit(web.url)
    with socket.create_connection((url.hostname, url.port), timeout=30) as connection:
        connection.sendall(request)
        response = http.client.HTTPResponse(connection, method=request.partition(b" ")[0].decode())
        response.begin()
        if response.getheader("content-type", "").startswith("text/event-stream"):
            return response
        response.read()
        return response


def test_no_request_makes_it_fail(web: WebService, request: pytest.FixtureRequest) -> None:
    """Each has a status that says whose mistake it is, and errors are problems."""
    known = operations(web)
    seed = request.config.getoption("--seed")
    generator = random.Random(seed)
    for _ in range(REQUESTS):
        sent = request_of(generator, known)
        response = response_to(web, sent)
        shown = (seed, sent[:1_000], response.status)
        assert response.status < 500 or response.status in (503, 504), shown
        if response.status >= 400 and response.getheader("connection") != "close":
            # Pages are for people, also when they say what is wrong.
            is_page = b" /api/" not in sent and response.getheader("content-type") == HTML
            assert is_page or response.getheader("content-type") == PROBLEM, shown
    assert web.get("/healthz").status == 200


@pytest.mark.parametrize(
    "line",
    [
        "GET /api/v1/recordings?stream_id={huge}",
        "GET /api/v1/recordings/{huge}",
        "GET /api/v1/recordings/{large}",
        "GET /api/v1/recordings/0/rates?to={large}",
        "GET /api/v1/recordings/0/rates?from=5&to=4",
        "GET /api/v1/recordings/0/messages?from_time={huge}s",
        "GET /api/v1/recordings/0/messages?position={large}",
        "GET /api/v1/recordings/0/statistics?position={large}",
        "GET /api/v1/recordings/0/segments?position={large}",
        "GET /api/v1/ledger/list?ledger_scope_id={huge}",
        "GET /api/v1/ledger/list?after={huge}",
        "GET /api/v1/ledger/read?ledger_id=1&start_entry_id={large}",
        "GET /api/v1/entities/orders/a?from={large}",
        "POST /api/v1/recordings?channel=aeron:ipc&stream_id={large}",
        "POST /api/v1/recordings/{large}/stop",
        "POST /api/v1/recordings/0/truncate?position={large}",
        "DELETE /api/v1/recordings/{large}",
    ],
)
def test_numbers_out_of_range(web: WebService, line: str) -> None:
    """They are mistakes of the client."""
    text = line.format(huge=HUGE, large=2**64 + 1)
    answer = response_to(web, f"{text} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert answer.status in (400, 404)
    assert answer.getheader("content-type") == PROBLEM


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Authorization: Basic \xe9", 200),
        ("Origin: http://[", 405),
        ("Accept: \xff", 200),
        ("Content-Length: 3", 400),
        ("Transfer-Encoding: chunked", 400),
    ],
)
def test_hostile_headers(web: WebService, header: str, status: int) -> None:
    """Also where they do not count."""
    web.await_metrics()
    method = "POST" if status == 405 else "GET"
    text = f"{method} /metrics HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n"
    answer = response_to(web, text.encode("latin-1"))
    assert answer.status in ((403, 405) if method == "POST" else (status,))


def test_parameters_that_are_given_twice(web: WebService) -> None:
    """Only one of them would count."""
    answer = web.get("/api/v1/recordings?stream_id=7&stream_id=8")
    assert answer.status == 400 and "given 2 times" in answer.text


def test_files_are_sent_whole(web: WebService) -> None:
    """Whatever part of them is asked for, however often."""
    whole = web.get("/static/aerotape.css")
    for ranges in ("0-3", "9-1", ",".join(f"{at}-{at}" for at in range(0, 9_000, 2))):
        answer = web.get("/static/aerotape.css", Range=f"bytes={ranges}")
        assert (answer.status, answer.body) == (200, whole.body)


def test_credentials_that_are_none() -> None:
    """Bytes above 127, no base64, too long: no user."""
    from aerotape.tools._web.safety.users import parse_credentials

    none = ["", "Basic", "Basic \xe9", "Basic ?", "Bearer YTpi", "Basic " + "A" * 9_999]
    none.append("Basic " + base64.b64encode(b"without a colon").decode())
    assert [parse_credentials(each) for each in none] == [None] * len(none)
    given = base64.b64encode(b"alice:wonder:land").decode()
    assert parse_credentials(f"bAsIc {given}") == ("alice", b"wonder:land")
