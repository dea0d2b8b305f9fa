"""Retention deletes nothing of topics of entities and of ledgers, whatever the policy says."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from support.builders.held_recordings import DAY_NS, add_recording, new_starts
from support.daemon.command_line import aerotape as command
from support.daemon.control_rig import await_true
from support.daemon.recording import start_recording, stop
from support.entity.topics import numbers
from support.processes import FAST_ARCHIVE

import aerotape
from aerotape import QualifiedId, _native
from aerotape.archive.control.feature import first_hold
from aerotape.archive.features.built_in import FEATURES
from aerotape.archive.retention.locked_segments import plan_directory
from aerotape.archive.retention.policy import Limit, RetentionPolicy, RetentionRule
from aerotape.codecs.entity import Event
from aerotape.entity.blocking.entities import Entities
from aerotape.entity.partition import Partition
from aerotape.entity.replicator import Replicator
from aerotape.entity.stores.url import open_store
from aerotape.entity.topic import recordings_of

NOW_NS = 1_700_000_000 * 10**9
NO_AGE = RetentionPolicy((RetentionRule("age", max_age=Limit(1, "1")),))
# Each of them would delete all recordings that have stopped, or all but a segment.
LIMITS = {
    "age": '[[rule]]\nmax_age = "1h"\n',
    "size": '[[rule]]\nmax_recording_size = "1"\n',
    "stream": '[[rule]]\nmax_stream_size = "1"\n',
    "directory": '[directory]\nmax_size = "1"\n',
    "named": '[[rule]]\nchannel = "alias=entities-orders"\nmax_age = "1h"\n'
    '[[rule]]\nmax_recordings = 1\nmax_age = "1h"\n',
}
TOPIC = "orders"
IDS = [f"order-{number}" for number in range(8)]


@contextmanager
def running(
    driver: _native.MediaDriver, archive_dir: Path, **properties: str
) -> Iterator[aerotape.ArchiveClient]:
    """An archive on a directory, and a client of it."""
    merged = {**FAST_ARCHIVE, "aeron.archive.control.channel.enabled": "false", **properties}
    with (
        aerotape.Archive.launch(archive_dir, driver.aeron_dir, "external", merged),
        aerotape.connect(aeron_dir=driver.aeron_dir) as client,
    ):
        yield client


def append(orders: Entities, first: int) -> None:
    """Append 20 events to each entity, about two segments of each partition."""
    orders.append_many(
        [(id, [Event(n, b"x" * 2_000, "binary")]) for n in range(first, first + 20) for id in IDS]
    )


def replicate(driver: _native.MediaDriver, url: str) -> None:
    """Replicate all that is recorded."""
    connect = partial(aerotape.connect, aeron_dir=driver.aeron_dir)
    with Replicator(TOPIC, connect, lambda: open_store(url, writable=True)) as replicator:
        for _ in replicator.run(until_caught_up=True):
            pass


def set_back_times(archive_dir: Path) -> None:
    """Make all segment files old."""
    for path in archive_dir.glob("*.rec"):
        with contextlib.suppress(FileNotFoundError):  # deleted by a pass meanwhile
            os.utime(path, (1_000_000_000, 1_000_000_000))


def files(archive_dir: Path, *recording_ids: int) -> set[str]:
    """The names of recordings' segment files."""
    return {path.name for each in recording_ids for path in archive_dir.glob(f"{each}-*.rec")}


class Filled:
    """A directory with a topic, of which a store has half, a ledger, and a plain recording."""

    def __init__(self, driver: _native.MediaDriver, folder: Path) -> None:
        self.driver = driver
        self.archive_dir = folder / "archive"
        self.store_url = f"sqlite:{folder / 'orders.db'}"
        with running(driver, self.archive_dir) as client:
            with client.entities(TOPIC, 2) as orders:
                append(orders, 1)
                replicate(driver, self.store_url)
                append(orders, 21)
            with client.create_ledger("VD_JOURNAL") as ledger:
                ledger.add_many([b"entry" * 1_000] * 40)
                self.ledger: QualifiedId = ledger.qualified_id
            self.plain = self.record_plain(client)
            found = recordings_of(TOPIC, client.list_recordings())
            self.partitions = {each.recording_id: part.index for part, each in found.items()}
            others = {self.plain, *self.partitions}
            listed = {each.recording_id for each in client.list_recordings()}
            [self.ledger_recording] = listed - others
        self.held_files = files(self.archive_dir, self.ledger_recording, *self.partitions)
        assert len(self.held_files) > 8
        set_back_times(self.archive_dir)

    def record_plain(self, client: aerotape.ArchiveClient) -> int:
        """Record more than a segment, and stop."""
        made = start_recording(client, count=100)
        stop(client, made)
        return made.recording_id

    def reasons(self) -> dict[int, str]:
        """Return why retention deletes nothing of a recording, by recording id."""
        return {
            self.ledger_recording: f"it has the alias of ledger {self.ledger}, which"
            " retention does not delete",
            **{
                recording_id: f"it is partition {index} of topic {TOPIC}: purge it with"
                " `aerotape entity retention`"
                for recording_id, index in self.partitions.items()
            },
        }

    def check(self, client: aerotape.ArchiveClient) -> None:
        """Check that all is there: the log by itself, with the lagging store, and after it."""
        assert files(self.archive_dir, *self.partitions, self.ledger_recording) >= self.held_files
        entries = client.open_ledger_read_only(self.ledger).read()
        assert len(list(entries)) == 40
        with open_store(self.store_url, writable=True) as store:
            for with_store in (None, store):
                with client.entities(TOPIC, store=with_store) as orders:
                    for id in IDS:
                        assert numbers(orders.read(id)) == list(range(1, 41))
            replicate(self.driver, self.store_url)
            for id in IDS:
                assert numbers(store.events(TOPIC, id)) == list(range(1, 41))


@pytest.fixture
def filled(driver: _native.MediaDriver, tmp_path: Path) -> Filled:
    return Filled(driver, tmp_path)


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_an_unused_directory(filled: Filled, tmp_path: Path, limit: str) -> None:
    """`aerotape retain` reports what they hold and why; a plain recording is deleted."""
    policy = tmp_path / "policy.toml"
    policy.write_text(limit)
    done = json.loads(command("retain", filled.archive_dir, policy, "--yes", "--json").out)
    assert [each["recording_id"] for each in done["removals"]] == [filled.plain]
    kept = {each["recording_id"]: each for each in done["kept"]}
    kept.pop(filled.plain, None)  # its last segment
    assert {each: row["in_use"] for each, row in kept.items()} == filled.reasons()
    printed = command("retain", filled.archive_dir, policy, "--dry-run").out
    for recording_id in kept:
        paths = filled.archive_dir.glob(f"{recording_id}-*.rec")
        sizes = sum(path.stat().st_blocks * 512 for path in paths)
        assert kept[recording_id]["size_bytes"] == sizes > 65_536
        assert f"{sizes} bytes of recording {recording_id} stay: " in printed
    with running(filled.driver, filled.archive_dir) as client:
        filled.check(client)


def test_a_running_archive(
    filled: Filled, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each pass leaves them, and the reason is logged once; a plain recording is deleted."""
    policy = tmp_path / "policy.toml"
    policy.write_text(LIMITS["age"])
    properties = {"aerotape.retention.file": str(policy), "aerotape.retention.interval": "20ms"}
    with (
        caplog.at_level(logging.INFO, "aerotape.archive"),
        running(filled.driver, filled.archive_dir, **properties) as client,
        client.entities(TOPIC) as orders,
    ):
        # Its mark extends the recording, which is active from now on.
        assert numbers(orders.read(IDS[0])) == list(range(1, 41))
        for limit in LIMITS.values():
            plain = filled.record_plain(client)
            set_back_times(filled.archive_dir)
            policy.with_suffix(".new").write_text(limit)
            policy.with_suffix(".new").rename(policy)
            await_true(lambda: len(files(filled.archive_dir, plain)) <= 1)  # noqa: B023
        filled.check(client)
    for reason in filled.reasons().values():
        assert caplog.text.count(reason) == 1


def test_an_empty_recording_of_a_partition(tmp_path: Path) -> None:
    """Held too: a writer that begins the partition may be about to delete it, or to use it."""
    parts = [Partition(TOPIC, 0, 2), Partition(TOPIC, 1, 2, is_persistent=True)]
    segment_ages: list[list[float]] = [[9, 8], []]
    held = [
        add_recording(
            tmp_path / "archive",
            ages,
            now_ns=NOW_NS,
            stream_id=part.stream_id,
            channel=part.channel("aeron:ipc"),
        )
        for part, ages in itertools.product(parts, segment_ages)
    ]
    # The stream id is not that of the alias: not a partition.
    other = add_recording(
        tmp_path / "archive", [9], now_ns=NOW_NS, stream_id=1, channel=parts[0].channel("aeron:ipc")
    )
    holds = partial(first_hold, FEATURES)
    plan = plan_directory(tmp_path / "archive", NO_AGE, NOW_NS + DAY_NS, holds)
    assert new_starts(plan) == {other: None}
    assert [each.recording_id for each in plan.retained] == held
