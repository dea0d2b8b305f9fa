"""Retention by a running daemon, as clients of others see it."""

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

import aerotape
from aerotape.cnc import CncFile

pytestmark = pytest.mark.jvm

KEEP = "[[rule]]\nkeep = true\n"


class Rig:
    """A daemon that looks at its policy many times a second, and a Java client."""

    def __init__(self, archive: AerotapeArchive, client: JavaClient, policy_file: Path) -> None:
        self.archive = archive
        self.client = client
        self.policy_file = policy_file

    def policy(self, text: str) -> None:
        """Change the policy, at once."""
        written = self.policy_file.with_suffix(".new")
        written.write_text(text)
        written.rename(self.policy_file)

    def files(self, stream: Stream) -> list[int]:
        return [
            base // TERM for base in segment_files(self.archive.archive_dir, stream.recording_id)
        ]

    def age(self, *streams: Stream) -> None:
        """Have the files of recordings been written to long ago."""
        for stream in streams:
            for path in Path(self.archive.archive_dir).glob(f"{stream.recording_id}-*.rec"):
                os.utime(path, (1_000_000_000, 1_000_000_000))

    def counted(self) -> dict[str, int]:
        """The counters of what was deleted: segments and bytes."""
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


def test_a_live_recording_loses_its_front_and_goes_on(rig: Rig) -> None:
    """The Java client sees a later start and no signal, and replays what is left to the byte."""
    stream = record(rig.client, 5001, 3 * TERM + 1024, live=True)
    rig.client.call("takeSignals")
    rig.policy(rule(stream, 'max_recording_size = "1k"'))
    await_true(lambda: rig.files(stream) == [3])
    assert rig.client.call("getStartPosition", stream.recording_id) == 3 * TERM
    stream.offer(rig.client, 2 * TERM)
    await_true(lambda: rig.files(stream) == [5])
    assert rig.client.call("takeSignals") == []
    stream.stop(rig.client)
    rig.client.call("stopRecording", "aeron:ipc", 5001)
    [row] = rig.client.call("listRecording", stream.recording_id)
    assert (row["startPosition"], row["stopPosition"]) == (5 * TERM, 5 * TERM + 1024)
    assert rig.files(stream) == [5]
    with aerotape.connect(
        aeron_dir=rig.archive.aeron_dir, control_request_channel=rig.archive.control_channel
    ) as client:
        with client.replay(stream.recording_id, length=1024) as replay:
            [message] = list(replay)
        assert (message.position, len(message.payload)) == (5 * TERM, 992)


def test_a_replay_is_not_cut_off_and_others_go(rig: Rig) -> None:
    """What is being replayed stays until the replay ends; a recording beside it goes at once."""
    replayed = record(rig.client, 5101, 16 * TERM + 1024)
    other = record(rig.client, 5102, TERM + 1024)
    with aerotape.connect(
        aeron_dir=rig.archive.aeron_dir, control_request_channel=rig.archive.control_channel
    ) as client:
        with client.replay(replayed.recording_id, position=TERM) as replay:
            messages = iter(replay)
            first = next(messages)
            assert first.position == TERM
            rig.age(replayed, other)
            rig.policy('[[rule]]\nmax_age = "1h"')
            await_true(lambda: not rig.is_listed(other))
            # The replay has gone ahead as far as flow control lets it.
            await_true(lambda: 0 not in rig.files(replayed))
            # More passes go by: the next recording goes too.
            another = record(rig.client, 5103, 1024)
            rig.age(another)
            await_true(lambda: not rig.is_listed(another))
            assert set(range(5, 17)) <= set(rig.files(replayed))
            rest = [each.position for each in messages]
        assert rest == [first.position + 1024 * index for index in range(1, 15 * 64 + 1)]
    await_true(lambda: not rig.is_listed(replayed))
    await_true(lambda: rig.files(replayed) == [])


def test_what_goes_is_told_in_the_log_and_counted(rig: Rig) -> None:
    stream = record(rig.client, 5201, TERM + 1024)
    before = rig.counted()
    rig.policy(rule(stream, 'name = "one"\nmax_recording_size = "1k"'))
    await_true(lambda: rig.files(stream) == [1])
    rig.archive.await_log(
        f"retention deletes of recording {stream.recording_id}: what is before position {TERM},"
    )
    rig.archive.await_log("larger than 1k (rule one)")
    after = rig.counted()
    assert after["Segments"] - before["Segments"] == 1
    assert after["Bytes"] - before["Bytes"] == TERM


def test_a_policy_that_cannot_be_stops_the_start(tmp_path: Path) -> None:
    """With the file, the rule and what is wrong; nothing is left in the directory."""
    policy = tmp_path / "retention.toml"
    policy.write_text("[[rule]]\nmax_age = 7\n")
    archive = AerotapeArchive(
        tmp_path / "archive",
        tmp_path / "aeron",
        properties={"aerotape.retention.file": str(policy)},
    )
    with pytest.raises(HarnessError, match=r"retention.toml rule 1: max_age=7 is no age") as told:
        archive.start()
    assert "exit code 2" in str(told.value)
    assert list((tmp_path / "archive").iterdir()) == []
