"""The counters of the archive compared with those of the Java archive."""

from __future__ import annotations

import re
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import ARCHIVES, EMBEDDED_DRIVER, KINDS
from support.daemon.control_rig import RawClient, await_true
from support.daemon.daemon import AerotapeArchive
from support.jvm import java

from aerotape import _native
from aerotape.catalog.mark.mark_file import MarkFile
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode, SourceLocation

LOCAL = "aeron:ipc?term-length=64k"
STREAM_ID = 1001
REPLAY_STREAM_ID = 1002
ARCHIVE_ID = 4711
MESSAGES = [b"a" * 968, b"b" * 100, b"c" * 31]
FRAME_BYTES = 1_000 + 24 + 160 + 64
# Type ids that Aeron reserves for archives.
ARCHIVE_TYPES = range(100, 121)
Row = tuple[int, bytes, str]


@contextmanager
def on_a_driver(kind: str, mode: str, cycle_thresholds: str = "2s") -> Iterator[Any]:
    """An archive with an external driver (an embedded Java archive uses the driver's counters)."""
    with tempfile.TemporaryDirectory(prefix="aerotape-test-", dir="/dev/shm") as parent:
        driver = _native.MediaDriver.launch({"aeron.dir": f"{parent}/aeron", **EMBEDDED_DRIVER})
        properties = {
            "aeron.archive.threading.mode": mode,
            "aeron.archive.id": str(ARCHIVE_ID),
            "aeron.archive.low.storage.space.threshold": "1m",
        }
        for agent in ("conductor", "recorder", "replayer"):
            properties[f"aeron.archive.{agent}.cycle.threshold"] = cycle_thresholds
        try:
            with ARCHIVES[kind](
                Path(parent, "archive"),
                Path(parent, "aeron"),
                driver="external",
                properties=properties,
            ) as archive:
                yield archive
        finally:
            driver.close()


def used_archive(archive: Any) -> list[tuple[Row, int]]:
    """Record a few messages and replay them; return the archive's counters with their values."""
    aeron = _native.AeronClient(str(archive.aeron_dir))
    raw = RawClient(aeron, LOCAL)
    raw.connect()
    started = raw.call(
        codecs.StartRecordingRequest,
        stream_id=STREAM_ID,
        source_location=SourceLocation.LOCAL,
        channel=LOCAL,
    )
    assert started.code is ControlResponseCode.OK
    publication = aeron.add_exclusive_publication(f"{LOCAL}|session-id=77", STREAM_ID)
    for message in MESSAGES:
        assert publication.offer_within(message, 5_000_000_000) > 0
    counters = aeron.counters()
    await_true(lambda: [row[7] for row in counters.rows(100)] == [publication.position])

    subscription = aeron.add_subscription(LOCAL, REPLAY_STREAM_ID)
    replay = raw.call(
        codecs.ReplayRequest,
        recording_id=0,
        position=0,
        length=publication.position,
        replay_stream_id=REPLAY_STREAM_ID,
        replay_channel=LOCAL,
    )
    assert replay.code is ControlResponseCode.OK, replay
    replayed: list[bytes] = []
    while len(replayed) < len(MESSAGES):
        replayed += [payload for payload, *_ in subscription.poll(20, 5_000_000_000)]
    assert replayed == MESSAGES
    subscription.close()

    def is_at_rest() -> bool:
        values = {row[1]: row[7] for row in counters.rows()}
        # The replay has ended, and the workers have updated their counters.
        return values[112] == 0 and values[106] > 0 and values[109] > 0

    await_true(is_at_rest)
    found = [
        (normal(row[1], row[2], row[3]), row[7])
        for row in counters.rows()
        if row[1] in ARCHIVE_TYPES
    ]
    raw.close()
    aeron.close()
    return sorted(found)


def normal(type_id: int, key: bytes, label: str) -> Row:
    """Replace values that differ between runs: the version, and random ids."""
    label = re.sub(r" version=\S+ commit=\S+", " version=V commit=C", label)
    if type_id == 113:
        session_id = struct.unpack_from("<qq", key)[1]
        key = key[:8] + bytes(8) + key[16:]
        label = re.sub(r" sessionId=-?\d+", " sessionId=S", label)
        assert session_id >= 0
    return type_id, key, label


@pytest.mark.jvm
@pytest.mark.parametrize("mode", ["SHARED", "DEDICATED"])
def test_both_archives_show_the_same_counters(mode: str) -> None:
    """Type ids, keys and labels of all counters are equal, and values independent of time."""
    with on_a_driver("java", mode) as archive:
        theirs = used_archive(archive)
    with on_a_driver("aerotape", mode) as archive:
        ours = used_archive(archive)
    assert [row for row, _ in ours] == [row for row, _ in theirs]
    assert {row[0] for row, _ in ours} == set(range(100, 114))
    for counters in (theirs, ours):
        values = {row[0]: value for row, value in counters}
        assert values[100] == FRAME_BYTES
        assert values[101] == 0
        assert (values[102], values[111], values[112]) == (1, 1, 0)
        assert (values[106], values[109]) == (FRAME_BYTES, FRAME_BYTES)
        assert 0 < values[105] <= values[107]
        assert 0 < values[108] <= values[110]
        longest_cycles = [value for row, value in counters if row[0] == 103]
        assert len(longest_cycles) == (1 if mode == "SHARED" else 3)
        assert all(cycle_ns > 0 for cycle_ns in longest_cycles)


def test_cycles_beyond_the_threshold_are_counted() -> None:
    """With tiny thresholds each duty cycle counts; an idle worker runs no duty cycles."""
    with on_a_driver("aerotape", "DEDICATED", "1ns") as archive:
        aeron = _native.AeronClient(str(archive.aeron_dir))

        def exceeded() -> dict[str, int]:
            return {row[3].split()[0]: row[7] for row in aeron.counters().rows(104)}

        await_true(lambda: exceeded()["archive-conductor"] > 0)
        assert exceeded()["archive-recorder"] == exceeded()["archive-replayer"] == 0
        used_archive(archive)
        await_true(lambda: min(exceeded().values()) > 0)
        aeron.close()


@pytest.mark.parametrize(
    "kind", [*KINDS, pytest.param("java with the driver", marks=pytest.mark.jvm)]
)
def test_an_archive_id_in_use(kind: str, run_archive: Callable[..., Any]) -> None:
    """Clients find recordings by archive id: archives of one driver cannot share it. The
    second one leaves its directory unlocked.
    """
    first = (
        run_archive("java", {"aeron.archive.id": str(ARCHIVE_ID)})
        if kind == "java with the driver"
        else on_a_driver(kind, "SHARED")
    )
    with first as archive:
        second = AerotapeArchive(
            archive.archive_dir.parent / "second",
            archive.aeron_dir,
            driver="external",
            properties={"aeron.archive.id": str(ARCHIVE_ID)},
        )
        with pytest.raises(java.HarnessError, match="an archive with this id uses the media"):
            second.start()
        assert MarkFile.read(second.archive_dir).header.activity_timestamp_ms == -1


def failures(raw: RawClient) -> dict[str, Callable[[], Any]]:
    """Requests that fail, each followed by its response, if it has one."""

    def start(channel: str) -> Any:
        return raw.call(
            codecs.StartRecordingRequest,
            stream_id=3,
            source_location=SourceLocation.REMOTE,
            channel=channel,
        )

    def stop(channel: str) -> Any:
        return raw.call(codecs.StopRecordingRequest, stream_id=3, channel=channel)

    def replay(recording_id: int, position: int) -> Any:
        return raw.call(
            codecs.ReplayRequest,
            recording_id=recording_id,
            position=position,
            length=64,
            replay_stream_id=4,
            replay_channel=LOCAL,
        )

    unheard = codecs.AuthConnectRequest(
        correlation_id=5, response_stream_id=25, version=0x01_0B_00, response_channel="nonsense"
    )
    unknown_session = codecs.ArchiveIdRequest(control_session_id=99_999, correlation_id=5)
    return {
        "replay of an unknown recording": lambda: replay(77, 0),
        "replay from within a frame": lambda: replay(0, 32),
        "stop of nothing": lambda: stop(LOCAL),
        "stop of no channel": lambda: stop("nonsense"),
        "start of no channel": lambda: start("nonsense"),
        "start that the driver refuses": lambda: start("aeron:udp?endpoint=256.2.2.2:4"),
        "start of what is being recorded": lambda: raw.call(
            codecs.StartRecordingRequest,
            stream_id=STREAM_ID,
            source_location=SourceLocation.LOCAL,
            channel=LOCAL,
        ),
        "foreign schema": lambda: raw.send(struct.pack("<HHHH", 8, 1, 4_711, 0) + bytes(8)),
        "unknown control session": lambda: raw.send(unknown_session),
        "no response channel": lambda: raw.send(unheard),
        "position of an unknown recording": lambda: raw.call(
            codecs.StopPositionRequest, recording_id=78
        ),
        "truncation of a live recording": lambda: raw.call(
            codecs.TruncateRecordingRequest, recording_id=0, position=0
        ),
        "stop of no replication": lambda: raw.call(codecs.StopReplicationRequest, replication_id=1),
    }


@pytest.mark.jvm
def test_the_same_failures_count_as_errors() -> None:
    """Refusals with an error code count in neither archive, other failures in both."""

    def counted(archive: Any) -> dict[str, int]:
        aeron = _native.AeronClient(str(archive.aeron_dir))
        raw = RawClient(aeron, LOCAL)
        raw.connect()
        failures(raw)["start of what is being recorded"]()
        publication = aeron.add_exclusive_publication(LOCAL, STREAM_ID)
        assert publication.offer_within(MESSAGES[0], 5_000_000_000) > 0
        counters = aeron.counters()
        await_true(lambda: [row[7] for row in counters.rows(100)] == [publication.position])
        found = {}
        for name, commit in failures(raw).items():
            [before] = [row[7] for row in counters.rows(101)]
            commit()
            # The response to the next request shows that this one was handled.
            raw.call(codecs.ArchiveIdRequest)
            [after] = [row[7] for row in counters.rows(101)]
            found[name] = after - before
        raw.close()
        aeron.close()
        return found

    with on_a_driver("java", "SHARED") as archive:
        theirs = counted(archive)
    with on_a_driver("aerotape", "SHARED") as archive:
        ours = counted(archive)
    assert ours == theirs
    assert set(ours.values()) == {0, 1}
