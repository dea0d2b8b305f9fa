"""`aerotape web`: health, and who is refused."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.builders.offline_directory import build
from support.daemon.command_line import CommandLine, aerotape
from support.daemon.control_rig import await_true
from support.web import MAX_BYTES, WebService, basic, certificate, peak_bytes

from aerotape.tools._web.observed import ObservedArchive


def test_health_of_a_running_archive(cli: CommandLine) -> None:
    with WebService(cli, cli.archive.archive_dir) as web:
        assert web.get("/healthz").json == {"status": "ok"}
        # 503 while reading the files takes long, as it may on a busy machine.
        await_true(lambda: web.get("/readyz").status == 200)
        answer = web.get("/readyz")
        assert [check["check"] for check in answer.json["checks"]] == [
            "archive",
            "driver",
            "storage",
            "files",
        ]


def test_health_of_a_stopped_archive(cli: CommandLine, tmp_path: Path) -> None:
    """The service runs, the archive is not ready, and the reasons are given."""
    directory = build(tmp_path / "archive")
    with WebService(cli, directory) as web:
        assert web.get("/healthz").status == 200
        await_true(lambda: len(web.get("/readyz").json["checks"]) > 1)  # the files were read
        answer = web.get("/readyz")
        assert answer.status == 503
        reasons = {check["check"]: check["found"] for check in answer.json["checks"]}
        assert reasons["archive"] == "the archive was stopped"
        assert "cannot be read" in reasons["driver"]


def test_it_ends_at_sigterm(own: CommandLine) -> None:
    web = WebService(own, own.archive.archive_dir)
    web.process.terminate()
    _, err = web.process.communicate(timeout=30)
    assert (web.process.returncode, err) == (0, "")


def test_it_ends_event_streams_at_sigterm(own: CommandLine) -> None:
    """At once, and without a word: they have no end of their own."""
    with WebService(own, own.archive.archive_dir, "--root-path", "/tape") as web:
        made = http.client.HTTPConnection(urlsplit(web.url).netloc, timeout=60)
        made.request("GET", "/live")
        stream = made.getresponse()
        assert stream.readline().startswith(b"data:")
    made.close()
    assert (web.process.returncode, web.errors) == (0, "")


def test_other_hosts_and_sites_are_refused(own: CommandLine) -> None:
    """A page whose name resolves to this machine, and changes asked for by pages of others."""
    with WebService(own, own.archive.archive_dir, "--allowed-host", "tape.example") as web:
        web.await_metrics()
        assert web.get("/metrics", Host="evil.example").status == 421
        assert web.get("/healthz", Host="evil.example").status == 200
        assert web.get("/metrics", Host="tape.example:8080").status == 200
        assert web.get("/metrics", Host="localhost").status == 200
        assert web.get("/healthz", "POST", Origin="http://evil.example").status == 403
        assert web.get("/healthz", "POST", Sec_Fetch_Site="cross-site").status == 403
        own_page = {"Origin": web.url.rstrip("/"), "Sec_Fetch_Site": "same-origin"}
        assert web.get("/healthz", "POST", **own_page).status == 405
        assert "default-src 'self'" in web.get("/healthz").headers["content-security-policy"]


def test_targets_with_a_host(own: CommandLine) -> None:
    """As proxies send them: their host counts, not that of the header."""
    with WebService(own, own.archive.archive_dir, "--allowed-host", "tape.example") as web:
        web.await_metrics()
        for begin in ("http://localhost", "HTTP://tape.example:8080", "https://localhost"):
            assert web.get(f"{begin}/metrics", Host="evil.example").status == 200
            assert web.get(f"{begin}/api/v1/recordings?limit=1").status == 200
        assert web.get("http://localhost", Host="evil.example").status == 200
        assert web.get("http://localhost?none=1").status == 400
        assert web.get("http://evil.example/metrics", Host="localhost").status == 421
        assert web.get("http://evil.example/healthz").status == 200
        for wrong in ("http:///metrics", "http://x@localhost/metrics"):
            assert web.get(wrong).status == 400
        assert web.get("ftp://localhost/metrics").status == 404
        target = "http://tape.example/healthz"
        assert web.get(target, "POST", Origin="http://tape.example").status == 405
        assert web.get(target, "POST", Origin="http://localhost").status == 403


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A users file with alice."""
    path, secret = tmp_path / "users", tmp_path / "secret"
    secret.write_text("wonderland\n")
    secret.chmod(0o600)
    aerotape("users", path, "add", "alice", "--secret-file", secret, "--iterations", 4096)
    return path


def test_users_are_required(own: CommandLine, users: Path) -> None:
    """With --users all but /healthz is only for them; changes of the file count at once."""
    with WebService(own, own.archive.archive_dir, "--users", users) as web:
        assert web.get("/healthz").status == 200
        refused = web.get("/metrics")
        assert refused.status == 401
        assert refused.headers["www-authenticate"].startswith("Basic")
        for wrong in (basic("alice", "x"), basic("bob", "wonderland"), "Basic ?", "Bearer x", "B"):
            assert web.get("/metrics", Authorization=wrong).status == 401
        right = basic("alice", "wonderland")
        await_true(lambda: web.get("/metrics", Authorization=right).status == 200)
        assert web.get("/metrics", Authorization=right).status == 200


def test_other_machines_need_users(own: CommandLine, users: Path) -> None:
    directory = own.archive.archive_dir
    err = own.error("web", directory, "--http", "0.0.0.0:0", code=2)
    assert "require users with --users FILE" in err
    with WebService(own, directory, "--http", "0.0.0.0:0", "--users", users) as web:
        assert web.get("/healthz", Host="localhost").status == 200


@pytest.mark.parametrize("address", ["x", "1:x", ":80", "99999", "host:"])
def test_addresses(own: CommandLine, address: str) -> None:
    err = own.error("web", own.archive.archive_dir, "--http", address, code=2)
    assert "expected PORT or HOST:PORT" in err


def test_a_port_in_use(own: CommandLine) -> None:
    with WebService(own, own.archive.archive_dir) as web:
        port = web.url.rstrip("/").rpartition(":")[2]
        error = own.error("web", own.archive.archive_dir, "--http", port)
        assert f"cannot listen on 127.0.0.1:{port}: Address already in use; --http" in error


def test_tls(own: CommandLine, tmp_path: Path) -> None:
    made, key = certificate(tmp_path)
    options = ("--certificate", made, "--key", key)
    with WebService(own, own.archive.archive_dir, *options) as web:
        assert web.url.startswith("https://")
        assert web.get("/healthz").status == 200
    assert "give both" in own.error("web", tmp_path, "--key", key, code=2)
    made.write_text("none")
    assert "cannot serve with" in own.error("web", tmp_path, *options, code=2)


def test_handshakes_cost_little(own: CommandLine, tmp_path: Path) -> None:
    """Beside 1,000 clients that have begun one, requests are served; so they are after it."""
    made, key = certificate(tmp_path)
    trusting = ssl._create_unverified_context()
    options = ("--certificate", made, "--key", key)
    with WebService(own, own.archive.archive_dir, *options) as web, ExitStack() as held:
        url = urlsplit(web.url)
        for number in range(1_000):
            each = held.enter_context(socket.create_connection((url.hostname, url.port)))
            if number % 2:
                each.sendall(b"\x16\x03\x01\x02\x00\x01")
            if number % 10 == 0:
                held.enter_context(trusting.wrap_socket(each))
        assert web.get("/healthz").status == 200
        print(peak_bytes(web.process.pid) >> 20)
        assert peak_bytes(web.process.pid) < MAX_BYTES


def test_connections_without_requests_cost_nothing(own: CommandLine) -> None:
    """Beside 1,000 of them, half of which have begun a header, requests are served."""
    with WebService(own, own.archive.archive_dir) as web, ExitStack() as held:
        await_true(lambda: web.get("/readyz").status == 200)
        url = urlsplit(web.url)
        for number in range(1_000):
            each = held.enter_context(socket.create_connection((url.hostname, url.port)))
            if number % 2:
                each.sendall(b"GET / HTTP/1.1\r\nHost:")
        for path in ("/healthz", "/readyz", "/metrics", "/"):
            assert web.get(path).status == 200


def test_secrets_that_were_right_do_not_wait(own: CommandLine, tmp_path: Path) -> None:
    """However many wrong ones are to be checked; those have a limited queue."""
    users, secret = tmp_path / "users", tmp_path / "secret"
    secret.write_text("wonderland\n")
    secret.chmod(0o600)
    options = ("--secret-file", secret, "--iterations", 600_000)
    aerotape("users", users, "add", "alice", *options)
    right = basic("alice", "wonderland")
    with WebService(own, own.archive.archive_dir, "--users", users) as web:
        await_true(lambda: web.get("/metrics", Authorization=right).status == 200)
        with ThreadPoolExecutor(45) as threads:
            wrong = [
                threads.submit(web.get, "/metrics", Authorization=basic("alice", str(number)))
                for number in range(45)
            ]
            await_true(lambda: any(each.done() and each.result().status == 503 for each in wrong))
            for _ in range(3):
                assert web.get("/metrics", Authorization=right).status == 200
            assert any(not each.done() for each in wrong)
            found = [each.result() for each in wrong]
        assert {each.status for each in found} == {401, 503}
        busy = next(each for each in found if each.status == 503)
        assert "other secrets are to be checked first" in busy.json["detail"]


def test_a_removed_user_is_refused(own: CommandLine, users: Path, tmp_path: Path) -> None:
    """Also one whose secret was right before."""
    with WebService(own, own.archive.archive_dir, "--users", users) as web:
        right = basic("alice", "wonderland")
        await_true(lambda: web.get("/metrics", Authorization=right).status == 200)
        aerotape("users", users, "add", "bob", "--secret-file", tmp_path / "secret")
        aerotape("users", users, "remove", "alice")
        await_true(lambda: web.get("/metrics", Authorization=right).status == 401)


@pytest.mark.parametrize(
    "change",
    [("remove", "alice"), ("add", "alice", "--role", "record"), ("add", "alice")],
    ids=["removed", "another role", "another secret"],
)
def test_the_stream_of_a_changed_user_ends(
    own: CommandLine, users: Path, tmp_path: Path, change: tuple[str, ...]
) -> None:
    """Changes of other users do not end it, and a new stream is checked as any request is."""
    secret = tmp_path / "secret"
    right = basic("alice", "wonderland")
    with WebService(own, own.archive.archive_dir, "--users", users) as web:
        url = urlsplit(web.url)
        made = http.client.HTTPConnection(url.netloc, timeout=60)
        made.request("GET", "/live", headers={"Authorization": right})
        stream = made.getresponse()
        assert stream.status == 200
        assert stream.readline().startswith(b"data:")
        aerotape("users", users, "add", "bob", "--secret-file", secret, "--iterations", 4096)
        # The file is read again at most every half second, and an event is sent each second.
        assert sum(stream.readline().startswith(b"data:") for _ in range(4)) == 2
        if change == ("add", "alice"):
            secret.write_text("looking-glass\n")
        options = ("--secret-file", secret, "--iterations", 4096) if change[0] == "add" else ()
        aerotape("users", users, *change, *options)
        assert any(stream.readline() == b"" for _ in range(60))
        made.close()
        status = 200 if "--role" in change else 401
        assert web.get("/api/v1/trend", Authorization=right).status == status


def test_many_readers_cost_what_one_does(tmp_path: Path) -> None:
    """What was read is shown again for half a second."""
    observed = ObservedArchive(build(tmp_path / "archive"))
    first, begun_s = observed.snapshot(), time.monotonic()
    again = observed.snapshot()
    assert again is first or time.monotonic() - begun_s > 0.5
    time.sleep(0.6)
    assert observed.snapshot() is not first
