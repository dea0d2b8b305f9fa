"""Retention by a running daemon with a Java client."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.builders.streams import TERM_LENGTH as TERM
from support.builders.streams import Stream, record, segment_files
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive
from support.jvm.java import HarnessError, JavaClient

from aerotape.cnc import CncFile

pytestmark = pytest.mark.jvm

KEEP = "[[rule]]\nkeep = true\n"


class Rig:
    """A daemon with many retention passes per second, and a Java client."""

    def __init__(self, archive: AerotapeArchive, client: JavaClient, policy_file: Path) -> None:
        self.archive = archive
        self.client = client
        self.policy_file = policy_file

    def policy(self, text: str) -> None:
        """Replace the policy atomically."""
        written = self.policy_file.with_suffix(".new")
        written.write_text(text)
        written.rename(self.policy_file)

    def files(self, stream: Stream) -> list[int]:
        return [
            base // TERM for base in segment_files(self.archive.archive_dir, stream.recording_id)
        ]

    def age(self, *streams: Stream) -> None:
        """Set back the modification times of recordings' files."""
        for stream in streams:
            for path in Path(self.archive.archive_dir).glob(f"{stream.recording_id}-*.rec"):
                os.utime(path, (1_000_000_000, 1_000_000_000))

    def counted(self) -> dict[str, int]:
        """Return the counters of deleted segments and bytes."""
        cnc = CncFile(self.archive.aeron_dir)
        return {
            row.label.split()[3]: row.value for kind in (1_114, 1_115) for row in cnc.counters(kind)
        }

    def is_listed(self, stream: Stream) -> bool:
        return bool(self.client.call("listRecording", stream.recording_id))


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with tempfile.TemporaryDirectory(prefix="aerotape-retention-", dir="/dev/shm") as folder:
        policy_file = Path(folder, "retention.toml")
        policy_file.write_text(KEEP)
        archive = AerotapeArchive(
            Path(folder, "archive"),
            Path(folder, "aeron"),
            properties={
                "aeron.archive.low.storage.space.threshold": "1m",
                "aerotape.retention.file": str(policy_file),
                "aerotape.retention.interval": "20ms",
            },
        )
        with archive, JavaClient(archive.aeron_dir) as client:
            client.connect(archive.control_channel)
            yield Rig(archive, client, policy_file)


@pytest.fixture(autouse=True)
def _keep_at_the_end(rig: Rig) -> Iterator[None]:
    yield
    rig.policy(KEEP)


def rule(stream: Stream, limit: str) -> str:
    return f"[[rule]]\nstream_id = {stream.stream_id}\n{limit}\n"


def test_first_segments_of_a_live_recording_are_deleted(rig: Rig) -> None:
    """The deletion is logged and counted; the Java client gets a later start and no signal."""
    stream = record(rig.client, 5001, 3 * TERM + 1024, live=True)
    rig.client.call("takeSignals")
    before = rig.counted()
    rig.policy(rule(stream, 'name = "one"\nmax_recording_size = "1k"'))
    await_true(lambda: rig.files(stream) == [3])
    removal = f"retention deletes of recording {stream.recording_id}: what is before position"
    rig.archive.await_log(f"{removal} {3 * TERM},")
    rig.archive.await_log("larger than 1k (rule one)")
    deleted = {name: count - before[name] for name, count in rig.counted().items()}
    assert deleted == {"Segments": 3, "Bytes": 3 * TERM}
    assert rig.client.call("getStartPosition", stream.recording_id) == 3 * TERM
    stream.offer(rig.client, 2 * TERM)
    await_true(lambda: rig.files(stream) == [5])
    assert rig.client.call("takeSignals") == []
    stream.stop(rig.client)
    rig.client.call("stopRecording", "aeron:ipc", 5001)
    [row] = rig.client.call("listRecording", stream.recording_id)
    assert (row["startPosition"], row["stopPosition"]) == (5 * TERM, 5 * TERM + 1024)
    assert rig.files(stream) == [5]
    with rig.archive.connect() as client:
        with client.replay(stream.recording_id, length=1024) as replay:
            [message] = list(replay)
        assert (message.position, len(message.payload)) == (5 * TERM, 992)


def test_a_replay_is_not_interrupted(rig: Rig) -> None:
    """A replayed recording is retained until the replay ends; another one is deleted at once."""
    replayed = record(rig.client, 5101, 16 * TERM + 1024)
    other = record(rig.client, 5102, TERM + 1024)
    with rig.archive.connect() as client:
        with client.replay(replayed.recording_id, position=TERM) as replay:
            messages = iter(replay)
            first = next(messages)
            assert first.position == TERM
            rig.age(replayed, other)
            rig.policy('[[rule]]\nmax_age = "1h"')
            await_true(lambda: not rig.is_listed(other))
            # The replay has advanced as far as flow control allows.
            await_true(lambda: 0 not in rig.files(replayed))
            # After more passes: the next recording is deleted too.
            another = record(rig.client, 5103, 1024)
            rig.age(another)
            await_true(lambda: not rig.is_listed(another))
            assert set(range(5, 17)) <= set(rig.files(replayed))
            rest = [each.position for each in messages]
        assert rest == [first.position + 1024 * index for index in range(1, 15 * 64 + 1)]
    await_true(lambda: not rig.is_listed(replayed))
    await_true(lambda: rig.files(replayed) == [])


def test_an_invalid_policy_prevents_the_start(tmp_path: Path) -> None:
    """The error has the file, the rule and the problem; nothing is left in the directory."""
    policy = tmp_path / "retention.toml"
    policy.write_text("[[rule]]\nmax_age = 7\n")
    archive = AerotapeArchive(
        tmp_path / "archive",
        tmp_path / "aeron",
        properties={"aerotape.retention.file": str(policy)},
    )
    with pytest.raises(HarnessError, match=r"toml rule 1: max_age=7 is not an age") as error:
        archive.start()
    assert "exit code 2" in str(error.value)
    assert list((tmp_path / "archive").iterdir()) == []
