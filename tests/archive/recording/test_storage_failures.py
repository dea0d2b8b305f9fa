"""Storage that fails under a running daemon: the client gets an error, the daemon continues."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.daemon.control_rig import RawClient, await_true

from aerotape import _native
from aerotape.catalog.file.catalog import Catalog
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode

LOCAL = "aeron:ipc?term-length=64k"
CAPACITY_BYTES = 1 << 20


def nearly_full_catalog(archive_dir: Path) -> int:
    """Create a catalog without space for another recording; return how many it has."""
    archive_dir.mkdir()
    with Catalog.open(archive_dir, create=True, capacity_bytes=CAPACITY_BYTES) as catalog:
        count, end = 0, 0
        while end < CAPACITY_BYTES - 1_024:
            # The last entries are short, so that less than one is left.
            alias = "x" * min(3_000, max(CAPACITY_BYTES - end - 2_048, 0))
            catalog.add_recording(
                start_position=0,
                start_timestamp_ms=1,
                initial_term_id=0,
                segment_file_length=65_536,
                term_buffer_length=65_536,
                mtu_length=1_408,
                session_id=1,
                stream_id=1,
                stripped_channel="aeron:ipc",
                original_channel=f"aeron:ipc?alias={alias}",
                source_identity="aeron:ipc",
                stop_position=0,
                stop_timestamp_ms=1,
            )
            count += 1
            last = catalog.entry(count - 1)
            end = last.offset + 32 + last.length
        assert catalog.capacity_bytes == CAPACITY_BYTES
    return count


def test_a_catalog_that_cannot_grow(tmp_path: Path, start_daemon: Callable[..., Any]) -> None:
    """The client receives an error, the stream is not recorded, and the next one is recorded once
    there is space again; older recordings stay readable.
    """
    count = nearly_full_catalog(tmp_path / "archive")
    daemon = start_daemon()
    aeron = _native.AeronClient(str(daemon.aeron_dir))
    raw = RawClient(aeron, LOCAL, response_stream_id=707)
    raw.connect()
    started = raw.call(
        codecs.StartRecordingRequest, stream_id=5, channel=f"aeron:ipc?alias={'y' * 1_024}"
    )
    assert started.code is ControlResponseCode.OK

    unlimited = resource.prlimit(
        daemon.process.pid,
        resource.RLIMIT_FSIZE,
        (CAPACITY_BYTES, resource.getrlimit(resource.RLIMIT_FSIZE)[1]),
    )
    first = aeron.add_exclusive_publication(f"{LOCAL}|session-id=1", 5)
    refusal = raw.response(started.correlation_id)
    assert refusal.code is ControlResponseCode.ERROR
    assert "cannot grow" in refusal.error_message
    assert not aeron.counters().rows(100)
    known = raw.call(codecs.StopPositionRequest, recording_id=count - 1)
    assert (known.code, known.relevant_id) == (ControlResponseCode.OK, 0)

    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, unlimited)
    second = aeron.add_exclusive_publication(f"{LOCAL}|session-id=2", 5)
    position = second.offer_within(b"x" * 100, 5_000_000_000)
    assert position > 0
    await_true(lambda: [row[7] for row in aeron.counters().rows(100)] == [position])
    last = raw.call(codecs.MaxRecordedPositionRequest, recording_id=count)
    assert (last.code, last.relevant_id) == (ControlResponseCode.OK, position)
    assert not first.is_closed
    assert daemon.stop() == 0
    daemon.await_log("stream not recorded")
    aeron.close()
