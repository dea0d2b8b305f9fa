"""Either archive of a replication ends in the middle: the replica remains and can be continued."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import ARCHIVES, start_after_crash
from support.daemon.daemon import age_mark_file
from support.daemon.replication import NULL, Pair, Side, names, shown
from support.jvm import java
from support.jvm.java import JavaClient

import aerotape

pytestmark = pytest.mark.jvm

IPC = "aeron:ipc?term-length=64k"
PROPERTIES = {
    "aeron.archive.low.storage.space.threshold": "1m",
    "aeron.archive.message.timeout": "5s",
    "aeron.archive.segment.file.length": "1m",
}
# For tests in which the other archive ends; long enough for pauses of a busy machine.
NOTICES_SOON = {"aeron.image.liveness.timeout": "1s"}
# Some tens of megabytes: enough for the archive to be killed before all has been replayed.
COUNT = 20_000
PAIRS = [(to, of) for to in ("aerotape", "java") for of in ("aerotape", "java")]
StartSide = Callable[..., Side]


@pytest.fixture
def start(tmp_path: Path, aeron_dir: Path) -> Iterator[StartSide]:
    """A function that starts an archive of a kind under a name, also after it was killed."""
    ports: dict[str, int] = {}
    parent = aeron_dir.parent
    with ExitStack() as stack:

        def side(kind: str, name: str, properties: Mapping[str, str] | None = None) -> Side:
            archive_dir, driver_dir = parent / name, parent / f"{name}-aeron"
            again = name in ports
            if again:
                shutil.rmtree(driver_dir)
                age_mark_file(archive_dir)
            archive: Any = ARCHIVES[kind](
                archive_dir,
                driver_dir,
                control_port=ports.setdefault(name, java.free_port()),
                properties={**PROPERTIES, **(properties or {})},
            )
            stack.enter_context(start_after_crash(archive) if again else archive.start())
            client = stack.enter_context(JavaClient(driver_dir))
            client.connect(archive.control_channel)
            return Side(kind, archive, client)

        yield side


def kill(side: Side) -> None:
    """Kill an archive; its driver and so its client end with it."""
    side.archive.kill()
    side.client.close()


def assert_whole(pair: Pair, recording_id: int, replica_id: int) -> None:
    """Continue the replication to the end; the bytes are then those of the source."""
    pair.replicate(recording_id, dstRecordingId=replica_id)
    signals = pair.await_signals("REPLICATE_END", replica_id=replica_id)
    position = pair.source.descriptor(recording_id)["stopPosition"]
    assert ("SYNC", position) in shown(signals)
    if "EXTEND" in names(signals):
        signals += [] if "STOP" in str(signals) else pair.await_signals("STOP")
    assert pair.source.segments(recording_id) == pair.destination.segments(replica_id)
    assert pair.destination.descriptor(replica_id)["stopPosition"] == position


@pytest.mark.parametrize("to, of", PAIRS)
def test_the_source_is_killed(start: StartSide, to: str, of: str) -> None:
    """The replication ends; when the source runs again, another replication continues it."""
    pair = Pair(start(to, "destination", NOTICES_SOON), start(of, "source"))
    stream = pair.source.recorded(IPC, 1001, count=COUNT)
    pair.replicate(stream.recording_id)
    replica_id = pair.await_signals("EXTEND")[0]["recordingId"]
    kill(pair.source)
    signals = pair.await_end()
    assert "SYNC" not in names(signals)
    [position] = [position for name, position in shown(signals) if name == "STOP"]
    assert pair.destination.descriptor(replica_id)["stopPosition"] == position
    assert_whole(Pair(pair.destination, start(of, "source")), stream.recording_id, replica_id)


@pytest.mark.parametrize("to, of", PAIRS)
def test_the_destination_is_killed(start: StartSide, to: str, of: str) -> None:
    """After the restart its recording is stopped, and another replication continues it."""
    pair = Pair(start(to, "destination"), start(of, "source"))
    stream = pair.source.stopped(IPC, 1002, count=COUNT)
    pair.replicate(stream.recording_id)
    replica_id = pair.await_signals("EXTEND")[0]["recordingId"]
    kill(pair.destination)
    pair = Pair(start(to, "destination"), pair.source)
    found = pair.destination.descriptor(replica_id)
    assert NULL < found["stopPosition"] <= stream.position
    assert_whole(pair, stream.recording_id, replica_id)


def test_the_destination_is_stopped(start: StartSide) -> None:
    """A clean stop in the middle leaves a recording with a stop position."""
    pair = Pair(start("aerotape", "destination"), start("aerotape", "source"))
    stream = pair.source.recorded(IPC, 1003)
    pair.replicate(stream.recording_id)
    replica_id = pair.await_signals("EXTEND")[0]["recordingId"]
    archive = pair.destination.archive
    assert archive.stop() == 0
    pair.destination.client.close()
    found = aerotape.open_directory(archive.archive_dir).recording(replica_id)
    assert NULL < found.descriptor.stop_position <= stream.position


def test_storage_fails(start: StartSide) -> None:
    """The client receives the reason; once there is space, another replication continues it."""
    pair = Pair(start("aerotape", "destination"), start("aerotape", "source"))
    stream = pair.source.stopped(IPC, 1004, count=2_000)
    pid = pair.destination.archive.process.pid
    hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    # Less than a segment, and room for the driver's log buffers.
    unlimited = resource.prlimit(pid, resource.RLIMIT_FSIZE, (300_000, hard_limit))
    pair.replicate(stream.recording_id)
    signals = pair.await_signals("REPLICATE_END")
    assert names(signals) in (
        ["REPLICATE", "EXTEND", "ERROR", "STOP", "REPLICATE_END"],
        ["REPLICATE", "ERROR", "REPLICATE_END"],
    )
    resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)
    replica_id = signals[0]["recordingId"]
    assert pair.destination.descriptor(replica_id)["stopPosition"] < stream.position
    assert_whole(pair, stream.recording_id, replica_id)
