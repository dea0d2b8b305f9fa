"""Entities whose tags and snapshots are long."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.daemon.archives import serve
from support.daemon.command_line import CommandLine
from support.web import MAX_BYTES, WebService, peak_bytes

from aerotape.codecs.entity.actions import Event

CHANNEL = "aeron:ipc?term-length=64m"
SEGMENTS = {"aeron.archive.segment.file.length": str(64 << 20)}
KEYS = 120
TAGS = tuple("x" * 900 + str(number) for number in range(30))
SNAPSHOT = b"\xfe" * 7_000_000


@pytest.fixture(scope="module")
def web() -> Iterator[WebService]:
    """The service of an archive with 3 MB of tags, and a snapshot of 7 MB."""
    with serve("aerotape", SEGMENTS) as served, served.connect() as client:
        with client.entities("tagged", channel=CHANNEL) as tagged:
            for number in range(KEYS):
                tagged.append(f"key-{number}", [Event(1, b"x", "binary", TAGS)])
            tagged.append("many", [Event(number, b"x", "binary", TAGS) for number in range(1, 101)])
        with client.entities("saved", channel=CHANNEL) as saved:
            saved.append("a", [Event(1, b"x", "binary")])
            saved.save_snapshot("a", 1, SNAPSHOT, "binary")
            for number in range(1, 5):
                saved.append("c", [Event(number, SNAPSHOT, "binary")])
            saved.save_snapshot("c", 4, SNAPSHOT, "binary")
            saved.append("b", [Event(1, b"x", "binary")])
            saved.save_snapshot("b", 1, "é".encode() * 3_000_000, "text")
        with WebService(CommandLine(served), served.archive_dir) as service:
            yield service


def test_pages_of_keys_have_each_key_once(web: WebService) -> None:
    """Those that do not fit into an answer are in the next one."""
    path = "/api/v1/entities/tagged?key=key-&limit=1000"
    found, before = [], ""
    for _ in range(20):
        answer = web.get(f"{path}&before={before}").json
        found += [row["key"] for row in answer["keys"]]
        before = answer["before"]
        if not before:
            break
    assert found == [f"key-{number}" for number in reversed(range(KEYS))]


def test_a_journal_with_long_tags(web: WebService) -> None:
    """An answer ends where it is full, also of tags."""
    numbers: list[int] = []
    while events := web.get(
        f"/api/v1/entities/tagged/many?limit=1000&from={len(numbers) + 1}"
    ).json["events"]:
        numbers += [each["seq_nr"] for each in events]
    assert numbers == list(range(1, 101))


def test_snapshots_that_are_long(web: WebService) -> None:
    """Their payload is left out of answers; pages show its begin; and they need little memory."""
    api, page = "/api/v1/entities/saved/{}", "/entities/saved/journal?key={}"
    for key, begin in (("a", "fe" * 2_048), ("b", "é" * 4_096)):
        snapshot = web.get(api.format(key)).json["snapshot"]
        assert (snapshot["payload_bytes"], snapshot["payload"]) == (
            {"a": 7_000_000, "b": 6_000_000}[key],
            None,
        )
        assert f'id="state">{begin}…' in web.get(page.format(key)).text
    assert web.get(api.format("c")).status == 413
    paths = [each.format(key) for each in (api, page) for key in "abcc"] * 4
    with ThreadPoolExecutor(len(paths)) as threads:
        statuses = {each.status for each in threads.map(web.get, paths)}
    assert 200 in statuses and statuses <= {200, 413, 503}
    print(peak_bytes(web.process.pid) >> 20)
    assert peak_bytes(web.process.pid) < MAX_BYTES
