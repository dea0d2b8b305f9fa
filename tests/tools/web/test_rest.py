"""The REST interface, on both archives."""

from __future__ import annotations

import html
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support.builders import built_archive
from support.builders.held_recordings import add_recording
from support.builders.mark_files import in_use
from support.builders.segment_builder import SegmentBuilder
from support.daemon.archives import serve
from support.daemon.command_line import CommandLine, aerotape
from support.daemon.control_rig import await_true
from support.jvm.java import ROOT
from support.processes import FAST_ARCHIVE, FAST_DRIVER
from support.web import Answer, WebService, basic

import aerotape as package
from aerotape.codecs.entity.actions import Event
from aerotape.codecs.payload_encoder import PayloadEncoder
from aerotape.codecs.schema_files import load_schema
from aerotape.qualified_id import QualifiedId

API = "/api/v1"
TRADE = {
    "sequence": 7,
    "eventTime": 1,
    "instrumentId": 3,
    "size": 100,
    "price": 12500,
    "remarks": "3c623e",
}
HOSTILE = b"<script>alert(1)</script>\x1b[2J\xff"


@pytest.fixture(scope="package")
def web(cli: CommandLine) -> Iterator[WebService]:
    """The service beside a running archive, without changes."""
    with WebService(cli, cli.archive.archive_dir) as service:
        yield service


def record(
    cli: CommandLine, client: package.ArchiveClient, stream_id: int, *payloads: bytes
) -> int:
    """Record messages and stop; return the recording id."""
    client.start_recording("aeron:ipc", stream_id)
    with package.Aeron(cli.archive.aeron_dir) as aeron:
        publication = aeron.add_publication("aeron:ipc", stream_id)
        for payload in payloads:
            publication.send(payload)
        recording_id = client.await_signal(package.RecordingSignal.START).recording_id
        publication.close()
        client.await_signal(package.RecordingSignal.STOP)
    client.stop_recording("aeron:ipc", stream_id)
    return recording_id


def is_problem(answer: Answer, status: int, title: str, part: str) -> bool:
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status, answer.json["status"], answer.json["title"]) == (status, status, title)
    assert part in answer.json["detail"]
    return True


def test_recordings(cli: CommandLine, web: WebService, client: package.ArchiveClient) -> None:
    """A recording with its messages, files and rates is that of the archive."""
    recording_id = record(cli, client, 7101, b"one", HOSTILE, b"three")
    path = f"{API}/recordings/{recording_id}"
    query = f"{API}/recordings?stream_id=7101"
    # The files are read twice a second.
    await_true(lambda: [each["live"] for each in web.get(query).json["recordings"]] == [False])
    [descriptor] = client.list_recordings(from_recording_id=recording_id, count=1)
    found = web.get(path).json
    assert found["recorded_position"] == descriptor.stop_position
    assert (found["stream_id"], found["original_channel"]) == (7101, "aeron:ipc")
    listed = web.get(query).json
    assert (listed["total"], listed["recordings"]) == (1, [found])
    messages = web.get(f"{path}/messages").json
    assert [each["payload"] for each in messages] == [
        "one",
        "<script>alert(1)</script>\x1b[2J\\xff",
        "three",
    ]
    second = web.get(f"{path}/messages?position={messages[1]['position']}&limit=1&format=hex").json
    assert [each["payload"] for each in second] == [HOSTILE.hex()]
    assert web.get(f"{path}/messages?from_time=2100-01-01T00:00Z").json == []
    assert is_problem(web.get(f"{path}/messages?from_time=x"), 400, "ConfigurationError", "x")
    [segment] = web.get(f"{path}/segments").json
    assert segment["name"] == f"{recording_id}-0.rec"
    nothing: dict[str, Any] = {"notes": [], "notes_total": 0, "verified_ms": None, "found": []}
    assert web.get(f"{path}/damage").json == nothing
    rates = web.get(f"{path}/rates?bins=4").json
    if cli.archive.kind == "aerotape":
        assert rates[-1]["to_position"] == descriptor.stop_position
        lasts_ns = [each["to_ns"] - each["from_ns"] for each in rates]
        assert len(rates) == 1 or min(lasts_ns) >= 1_000_000_000
    else:
        assert rates == []


def test_what_has_just_begun_is_live(
    cli: CommandLine, web: WebService, client: package.ArchiveClient
) -> None:
    """Also if the archive's files were read before it began, or between catalog and counter."""
    for _ in range(5):
        web.get(f"{API}/recordings")  # they were read now, or within the last half second
        with package.Aeron(cli.archive.aeron_dir) as aeron:
            client.start_recording("aeron:ipc", 7102)
            publication = aeron.add_publication("aeron:ipc", 7102)
            recording_id = client.await_signal(package.RecordingSignal.START).recording_id
            assert web.get(f"{API}/recordings/{recording_id}").json["live"] is True
            publication.close()
            client.await_signal(package.RecordingSignal.STOP)
        client.stop_recording("aeron:ipc", 7102)


def test_payloads_are_decoded_with_a_schema(tmp_path: Path, own: CommandLine) -> None:
    """Of the messages of the schema, those that are not have no fields."""
    market = ROOT / "tests/demo/market-data.xml"
    builder = SegmentBuilder()
    builder.message(PayloadEncoder(load_schema(market), "Trade").encode(TRADE))
    builder.message(b"of another schema")
    built_archive.add_recording(tmp_path, builder)
    with WebService(own, tmp_path, "--schema", market) as web:
        path = f"{API}/recordings/0/messages"
        first, second = web.get(f"{path}?schema=market-data").json
        assert first["fields"]["Trade"]["sequence"] == 7
        assert (second["fields"], second["payload"]) == (None, "of another schema")
        assert is_problem(web.get(f"{path}?schema=../x"), 400, "ConfigurationError", "market-data")
    assert "/none.xml" in own.error("web", tmp_path, "--http", 0, "--schema", "/none.xml", code=2)


def test_pages(tmp_path: Path, own: CommandLine) -> None:
    """Each recording is on one page, in the order that was asked for."""
    for number in range(7):
        add_recording(
            tmp_path, [], now_ns=1, stream_id=number % 2, channel=f"aeron:ipc?alias={number}"
        )
    with WebService(own, tmp_path) as web:
        seen: list[int] = []
        after = ""
        while rows := web.get(f"{API}/recordings?limit=3&descending=true{after}").json[
            "recordings"
        ]:
            seen += [row["recording_id"] for row in rows]
            after = f"&after={seen[-1]}"
        assert seen == [6, 5, 4, 3, 2, 1, 0]
        found = web.get(f"{API}/recordings?channel={quote('alias=3')}").json
        assert [row["recording_id"] for row in found["recordings"]] == [3]
        assert web.get(f"{API}/recordings?live=true").json["total"] == 0
        assert web.get(f"{API}/recordings?stream_id=1").json["total"] == 3


def test_statistics_and_gaps(tmp_path: Path, own: CommandLine) -> None:
    """Of the newest 64 MiB, or from a position on; a missing file is a gap."""
    builder = SegmentBuilder()
    for _ in range(200):
        builder.message(bytes(10))
        builder.message(bytes(1000))
    recording_id = built_archive.add_recording(tmp_path, builder)
    with WebService(own, tmp_path) as web:
        path = f"{API}/recordings/{recording_id}/statistics"
        found = web.get(f"{path}?bins=4").json
        assert (found["messages"], found["min_bytes"], found["max_bytes"]) == (400, 10, 1000)
        assert found["p50_bytes"] == 10 and found["gaps"] == [] and len(found["bins"]) == 4
        assert sum(each["messages"] for each in found["histogram"]) == 400
        later = web.get(f"{path}?position={found['to_position'] - 1056}").json
        assert later["messages"] == 1 and later["bins"] == []
        beyond = web.get(f"{path}?position={found['to_position'] + 32}").json
        assert beyond["messages"] == 0 and beyond["gaps"] == []
        segment = tmp_path / f"{recording_id}-0.rec"
        segment.unlink()
        (gap,) = web.get(path).json["gaps"]
        assert (gap["from_position"], gap["kind"]) == (0, "missing")


def test_the_plan_of_retention(tmp_path: Path, own: CommandLine) -> None:
    """It is that of `retain --dry-run`; nothing is deleted."""
    for age_days in (30, 20, 10):
        add_recording(tmp_path, [age_days], now_ns=time.time_ns())
    policy = tmp_path / "policy.toml"
    policy.write_text("[[rule]]\nmax_recordings = 1\n")
    with WebService(own, tmp_path) as web:
        assert web.get(f"{API}/retention").status == 400
    with WebService(own, tmp_path, "--retention", policy) as web:
        found = web.get(f"{API}/retention").json
        printed = json.loads(own.run("retain", tmp_path, policy, "--dry-run", "--json").stdout)
        ids = [each["recording_id"] for each in found["removals"]]
        assert ids == [each["recording_id"] for each in printed["removals"]] == [0, 1]
        assert [each["new_start_position"] for each in found["removals"]] == [None, None]
        assert web.get(f"{API}/recordings").json["total"] == 3


def test_the_last_verification(tmp_path: Path, own: CommandLine) -> None:
    """What `tool verify --json` printed is on each view; half of it is a problem of its own."""
    directory, printed = tmp_path / "archive", tmp_path / "verified.json"
    directory.mkdir()
    builder = SegmentBuilder()
    builder.message(b"sound")
    built_archive.add_recording(directory, builder)
    damaged = SegmentBuilder(recording_id=1)
    damaged.message(b"damaged")
    built_archive.add_recording(directory, damaged)
    segment = directory / "1-0.rec"
    segment.write_bytes(b"\xff" * 8 + segment.read_bytes()[8:])
    verified = own.run("tool", directory, "verify", "--dry-run", "--json", expect=3).stdout
    printed.write_bytes(verified)
    with WebService(own, directory, "--verification", printed) as web:
        damage = web.get(f"{API}/recordings/1/damage").json
        [found] = damage["found"]
        [row] = [each for each in json.loads(verified) if not each["ok"]]
        assert row["recording_id"] == 1
        assert [found["detail"]] == [each["detail"] for each in row["problems"]]
        assert found["outcome"] == "verification"
        verified_ms = printed.stat().st_mtime_ns // 1_000_000
        assert found["timestamp_ms"] == damage["verified_ms"] == verified_ms
        sound = web.get(f"{API}/recordings/0/damage").json
        assert sound == {"notes": [], "notes_total": 0, "verified_ms": verified_ms, "found": []}
        assert html.escape(found["detail"]) in web.get("/recordings/1").text
        assert "found by the verification" not in web.get("/recordings/0").text
        assert 'id="verified"' in web.get("/recordings/0").text
        assert 'id="verified"' not in web.get("/recordings/1").text
        checks = {each["check"]: each for each in web.get("/readyz").json["checks"]}
        assert checks["verification"]["ok"] is False
        assert checks["verification"]["found"].endswith("recordings with problems: 1")
        assert "aerotape_verification_failed_recordings 1.0" in web.get("/metrics").text
        printed.write_bytes(verified[:-5])
        await_true(lambda: "aerotape_verification" not in web.get("/metrics").text)
        checks = {each["check"]: each for each in web.get("/readyz").json["checks"]}
        assert "verified.json is not what" in checks["files"]["found"]


def test_errors_are_problems(web: WebService) -> None:
    """With the class of the error; nothing that does not exist is a crash."""
    unknown = "UnknownRecordingError"
    for part in ("", "/segments", "/messages", "/rates", "/damage"):
        answer = web.get(f"{API}/recordings/4711{part}")
        assert is_problem(answer, 404, unknown, "4711")
    for query in ("limit=0", "limit=1001", "sort=x", "after=x"):
        assert is_problem(web.get(f"{API}/recordings?{query}"), 400, "ConfigurationError", ":")
    assert is_problem(web.get(f"{API}/recordings/..%2f..%2fetc"), 404, "Not Found", "")
    assert is_problem(web.get(f"{API}/recordings/x"), 400, "ConfigurationError", "recording_id")
    assert is_problem(web.get(f"{API}/ledger/metadata"), 400, "ConfigurationError", "no ledger")
    answer = web.get(f"{API}/ledger/list?ledger_scope_id=-1")
    assert is_problem(answer, 400, "ConfigurationError", "ledger_scope_id='-1'")


def test_changes_are_refused_by_default(web: WebService) -> None:
    for method, path in (
        ("POST", "recordings?channel=aeron:ipc&stream_id=1"),
        ("POST", "recordings/0/stop"),
        ("POST", "recordings/0/truncate?position=0"),
        ("POST", "recordings/0/accept-damage"),
        ("DELETE", "recordings/0"),
        ("DELETE", "ledger/delete?ledger_id=1"),
    ):
        assert is_problem(web.get(f"{API}/{path}", method), 403, "Forbidden", "--allow-changes")


def test_changes(cli: CommandLine, client: package.ArchiveClient) -> None:
    """Stop, truncate and delete."""
    with WebService(cli, cli.archive.archive_dir, "--allow-changes") as web:
        recording_id = record(cli, client, 7102, b"one", b"two")
        path = f"{API}/recordings/{recording_id}"
        web.await_state(recording_id, live=False)
        assert web.get(f"{path}/truncate?position=64", "POST").status == 200
        assert web.get(path).json["recorded_position"] == 64  # read again after the change
        assert client.stop_position(recording_id) == 64
        assert web.get(f"{path}/stop", "POST").json["stopped"] is False
        await_true(lambda: web.get(path, "DELETE").status == 200)  # the truncation has ended
        await_true(lambda: web.get(path).status == 404)
        started = web.get(f"{API}/recordings?channel=aeron:ipc&stream_id=7105", "POST").json
        client.stop_recording_subscription(started["subscription_id"])


def test_roles_decide_on_changes(own: CommandLine, tmp_path: Path) -> None:
    users, secret = tmp_path / "users", tmp_path / "secret"
    secret.write_text("wonderland\n")
    secret.chmod(0o600)
    for name, role in (("alice", "read"), ("queen", "admin")):
        options = ("--role", role, "--secret-file", secret, "--iterations", 4096)
        aerotape("users", users, "add", name, *options)
    with WebService(own, own.archive.archive_dir, "--allow-changes", "--users", users) as web:
        path = f"{API}/recordings/4711"
        answer = web.get(path, "DELETE", Authorization=basic("alice", "wonderland"))
        assert is_problem(answer, 403, "Forbidden", "user alice has the role read")
        for method, part in (("POST", "/accept-damage"), ("DELETE", "")):
            answer = web.get(f"{path}{part}", method, Authorization=basic("alice", "wonderland"))
            assert is_problem(answer, 403, "Forbidden", "user alice has the role read")
        answer = web.get(path, "DELETE", Authorization=basic("queen", "wonderland"))
        assert is_problem(answer, 404, "UnknownRecordingError", "4711")


def test_ledgers(own: CommandLine) -> None:
    """Both halves of an id as strings; without a scope, those of scope 0."""
    ids = QualifiedId(0, 2**63 - 1), QualifiedId(2**64 - 1, 7)
    with own.archive.connect() as client:
        for ledger in ids:
            with client.create_ledger("VD_JOURNAL", ledger) as writer:
                writer.add_many([b"zero", b"one", b"two"])
    with WebService(own, own.archive.archive_dir, "--allow-changes") as web:
        assert web.get(f"{API}/ledger/list").json == {str(2**63 - 1): None}
        scoped = web.get(f"{API}/ledger/list?ledger_scope_id={2**64 - 1}&print_metadata=true").json
        assert scoped["7"]["qualified_name"] == str(ids[1])
        by_id = f"ledger_id={2**63 - 1}"
        for name in (by_id, f"ledger_qualified_name={ids[0]}"):
            metadata = web.get(f"{API}/ledger/metadata?{name}").json
            assert metadata[str(2**63 - 1)]["state"] == "CLOSED"
            assert metadata[str(2**63 - 1)]["last_add_confirmed"] == 2
        read = f"{API}/ledger/read?{by_id}"
        assert web.get(read).json == {"0": "zero", "1": "one", "2": "two"}
        assert web.get(f"{read}&start_entry_id=1&end_entry_id=1&format=hex").json == {"1": "6f6e65"}
        missing = f"{API}/ledger/read?ledger_id=5"
        assert is_problem(web.get(missing), 404, "UnknownLedgerError", "")
        deleted = web.get(f"{API}/ledger/delete?{by_id}", "DELETE")
        assert deleted.json == f"Deleted ledger: {2**63 - 1}"
        assert web.get(f"{API}/ledger/list").json == {}


def test_requests_that_a_bookie_answers_alike(own: CommandLine, tmp_path: Path) -> None:
    """The same as the HTTP server of BookKeeper 4.17.2 answered for two such ledgers, by hand."""
    answers = {
        ("GET", "ledger/list"): {"0": None, "1": None},
        ("GET", "ledger/list/"): {"0": None, "1": None},
        ("GET", "ledger/read/?ledger_id=0"): {"0": "entry-0", "1": "entry-1", "2": "entry-2"},
        ("GET", "ledger/read?ledger_id=0&start_entry_id=1&end_entry_id=1"): {"1": "entry-1"},
        ("DELETE", "ledger/delete/?ledger_id=1"): "Deleted ledger: 1",
    }
    metadata = {"state": "CLOSED", "length_bytes": 21, "write_quorum": 1, "ack_quorum": 1}
    with serve("aerotape") as served, served.connect() as client:
        for number in (0, 1):
            with client.create_ledger("PD_JOURNAL", QualifiedId(0, number)) as writer:
                for entry in (b"entry-0", b"entry-1", b"entry-2"):
                    writer.add(entry)
        with WebService(CommandLine(served), served.archive_dir, "--allow-changes") as web:
            found = web.get(f"{API}/ledger/metadata/?ledger_id=0").json
            assert {name: found["0"][name] for name in metadata} == metadata
            for (method, path), answer in answers.items():
                assert web.get(f"{API}/{path}", method).json == answer


def test_entities(own: CommandLine, web: WebService) -> None:
    """Events as they were appended."""
    with own.archive.connect() as client, client.entities("orders") as entities:
        event = Event(1, b'{"price": 2.50}', "json")
        entities.append("a/b", [event])
    with WebService(own, own.archive.archive_dir) as service:
        found = service.get(f"{API}/entities/orders/{quote('a b', safe='')}")
        assert found.json == {"seq_nr": None, "snapshot": None, "events": []}
        found = service.get(f"{API}/entities/orders/{quote('a/b', safe='')}")
        assert '"payload": {"price": 2.50}' in found.text
        assert found.json["seq_nr"] == 1
        assert service.get(f"{API}/entities/none/a").status == 404


def test_the_session_is_opened_again(own: CommandLine, tmp_path: Path, aeron_dir: Path) -> None:
    """While the archive is away, requests that need it say so; afterwards they work again."""
    properties = {
        **FAST_DRIVER,
        **FAST_ARCHIVE,
        "aeron.archive.control.channel": "aeron:udp?endpoint=localhost:0",
    }

    def launch() -> package.Archive:
        directory = tmp_path / "archive"
        return package.Archive.launch(directory, aeron_dir, properties=properties)

    with launch():
        web = WebService(own, tmp_path / "archive")
        assert web.get(f"{API}/ledger/list").json == {}
    with web:
        assert web.get(f"{API}/ledger/list").status == 503
        assert web.get(f"{API}/recordings").json == {"total": 0, "recordings": []}
        with launch():
            await_true(lambda: web.get(f"{API}/ledger/list").status == 200)


def test_options_that_lead_to_another_archive_are_refused(own: CommandLine, tmp_path: Path) -> None:
    """A request must not change the recordings of another archive."""
    with in_use(tmp_path, archive_id=4711):
        options = ("--aeron-dir", own.archive.aeron_dir, "--control-channel", "aeron:ipc")
        with WebService(own, tmp_path, "--allow-changes", *options) as web:
            answer = web.get(f"{API}/recordings/0", "DELETE")
            assert is_problem(answer, 400, "ConfigurationError", "is of archive 4711")


def test_openapi(web: WebService) -> None:
    """It describes each path, and needs nothing from outside."""
    found: Any = web.get("/openapi.json").json
    assert {"/api/v1/recordings", "/api/v1/ledger/read", "/metrics"} <= set(found["paths"])
    assert web.get("/docs").status == 404


def test_unknown_parameters(web: WebService) -> None:
    """They are refused everywhere, so that a slip selects nothing else than what was meant."""
    for path in ("/healthz", "/openapi.json", "/static/aerotape.js", "/", f"{API}/recordings"):
        assert web.get(path).status == 200
        assert is_problem(web.get(f"{path}?none=1"), 400, "Bad Request", "unknown parameter 'none'")
    assert web.get("/static/none.js").status == web.get("/static/..%2froutes.py").status == 404
