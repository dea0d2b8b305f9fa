"""Directories with detached, attached, migrated and renamed recordings, opened by the other
archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.builders.streams import TERM_LENGTH as TERM
from support.builders.streams import record, segment_files, signals_until
from support.daemon.archives import KINDS
from support.daemon.daemon import AerotapeArchive
from support.jvm.java import JavaArchive, JavaClient, archive_tool

from aerotape.replay.offline.directory import open_directory

pytestmark = pytest.mark.jvm

StartArchive = Callable[..., AerotapeArchive | JavaArchive]
OTHER = {"java": "aerotape", "aerotape": "java"}
CRC_32C = {
    "aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32c",
    "aeron.archive.replay.checksum": "io.aeron.archive.checksum.Crc32c",
}
LONG_CHANNEL = "aeron:udp?endpoint=localhost:20121|alias=" + "x" * 700


def listed(client: JavaClient) -> list[dict[str, Any]]:
    volatile = {"controlSessionId", "correlationId"}
    return [
        {name: row[name] for name in row.keys() - volatile}
        for row in client.call("listRecordings", 0, 100)
    ]


def replayed(client: JavaClient, row: dict[str, Any]) -> int:
    """Return the number of messages of 1024 bytes in a recording."""
    length = row["stopPosition"] - row["startPosition"]
    if length == 0:
        return 0
    replay = client.call(
        "replay", row["recordingId"], row["startPosition"], length, "aeron:ipc", 99
    )
    polled = client.poll(replay, length // 1024 + 1)
    client.close_resource(replay)
    assert polled["ended"]
    return int(polled["count"])


def change_all(client: JavaClient, archive_dir: Path) -> None:
    """Send each kind of request."""
    detached = record(client, 1, 3 * TERM + 1024).recording_id
    client.call("detachSegments", detached, 2 * TERM)
    purged = record(client, 2, 3 * TERM + 1024).recording_id
    client.call("purgeSegments", purged, 2 * TERM)
    signals_until(client, purged, "DELETE")
    attached = record(client, 3, 3 * TERM, start_position=TERM + 2048).recording_id
    client.call("detachSegments", attached, 3 * TERM)
    assert client.call("attachSegments", attached) == 2
    first = record(client, 4, 2 * TERM).recording_id
    second = record(client, 4, TERM + 1024, start_position=2 * TERM).recording_id
    client.call("migrateSegments", first, second)
    signals_until(client, first, "DELETE")
    client.call("updateChannel", purged, LONG_CHANNEL)
    client.call("updateChannel", attached, "aeron:ipc")


EXPECTED = [(2 * TERM, 3 * TERM + 1024), (2 * TERM, 3 * TERM + 1024)]
EXPECTED += [(TERM + 2048, 4 * TERM + 2048), (0, 0), (0, 3 * TERM + 1024)]


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("properties", [{}, CRC_32C], ids=["plain", "crc-32c"])
def test_the_other_archive_takes_over(
    start_archive: StartArchive, tmp_path: Path, first: str, properties: dict[str, str]
) -> None:
    """It lists and replays the same and serves such requests; then the first archive does."""
    archive_dir = tmp_path / "archive"
    rows: list[dict[str, Any]] = []
    for turn, kind in enumerate((first, OTHER[first], first)):
        with (
            start_archive(kind, properties=properties) as archive,
            JavaClient(archive.aeron_dir) as client,
        ):
            client.connect(archive.control_channel)
            if turn == 0:
                change_all(client, archive_dir)
                rows = listed(client)
                assert [(row["startPosition"], row["stopPosition"]) for row in rows] == EXPECTED
            assert listed(client) == rows
            for row in rows:
                length = row["stopPosition"] - row["startPosition"]
                assert replayed(client, row) == length // 1024
            if turn == 1:
                assert segment_files(archive_dir, 0)[:2] == [0, TERM]
                assert client.call("attachSegments", 0) == 2
                client.call("updateChannel", 4, LONG_CHANNEL)
                assert client.call("purgeSegments", 4, TERM) == 1
                signals_until(client, 4, "DELETE")
                rows = listed(client)
                assert (rows[0]["startPosition"], rows[4]["startPosition"]) == (0, TERM)
    for recording, row in zip(open_directory(archive_dir).recordings(), rows, strict=True):
        assert recording.descriptor.original_channel == row["originalChannel"]
        messages = recording.messages(checksum="crc-32c" if properties else "none")
        assert sum(1 for _ in messages) == (row["stopPosition"] - row["startPosition"]) // 1024
    if properties:
        verify = ("verify", "-a", "-checksum", "io.aeron.archive.checksum.Crc32c")
        verified = archive_tool(archive_dir, *verify, answers="y\n")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert verified.stdout.count(") OK") == len(rows), verified.stdout
