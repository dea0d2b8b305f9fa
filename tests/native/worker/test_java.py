"""The Java archive and our recorder on the same stream: their files must be equal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.jvm.java import JavaArchive, JavaClient
from support.model.messages import messages
from support.worker_rig import IPC, WorkerRig

StartClient = Callable[[Path | str], JavaClient]
JAVA_CHECKSUM = "aeron.archive.record.checksum"


@pytest.mark.parametrize("checksum", ["crc-32", "crc-32c"])
def test_both_record_the_same_bytes_and_we_replay_theirs(
    rig: WorkerRig,
    tmp_path: Path,
    java_client: StartClient,
    checksum: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Names, lengths and bytes of all segment files agree; Java's checksums verify in a replay."""
    # Agrona's checksums call private methods of java.util.zip.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "--add-opens=java.base/java.util.zip=ALL-UNNAMED")
    java_dir = tmp_path / "java"
    ours = tmp_path / "ours"
    ours.mkdir()
    rig.archive_dir = ours
    properties = {
        "aeron.archive.segment.file.length": "131072",
        JAVA_CHECKSUM: {
            "crc-32": "org.agrona.checksum.Crc32",
            "crc-32c": "org.agrona.checksum.Crc32c",
        }[checksum],
    }
    aeron_dir = Path(rig.client.aeron_dir)
    with JavaArchive(java_dir, aeron_dir, driver="external", properties=properties) as archive:
        client = java_client(aeron_dir)
        client.connect(archive.control_channel)
        client.call("startRecording", IPC, 1001, "LOCAL")
        recording = rig.record(rig.worker(record_checksum=checksum), segment_length=131_072)
        counter = client.recording_counter(recording.publication.session_id)
        position = recording.offer(messages(21, 500, 0, 6_000))
        rig.await_position(recording, position)
        assert client.await_counter(counter["counterId"], position) == position
        java_id = counter["recordingId"]
        assert java_id == recording.recording_id
        theirs = {path.name: path.read_bytes() for path in java_dir.glob("*.rec")}
        assert theirs == {path.name: path.read_bytes() for path in ours.glob("*.rec")}
        assert len(theirs) > 5
        client.call("stopRecording", IPC, 1001)

        rig.archive_dir = java_dir
        replayer = rig.worker(replay_checksum=checksum)
        received = rig.receive(rig.replay(replayer, recording), 500)
        assert [row[0] for row in received] == recording.messages
        assert rig.event("ReplayDone", 1) == ("ReplayDone", 1, position, 0, None)
