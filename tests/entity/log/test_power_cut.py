"""Power cuts that take the last records of a topic: a store never has what the log has lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.daemon.daemon import AerotapeArchive, age_mark_file
from support.entity.topics import events

from aerotape.entity import replicator as replicating
from aerotape.entity.log.recording import PartitionRecording
from aerotape.entity.log.writer import RecordPosition
from aerotape.entity.replicator import Replicator
from aerotape.entity.stores.url import open_store
from aerotape.errors import EntityError


def replicate(archive: AerotapeArchive, url: str) -> None:
    replicator = Replicator("t", archive.connect, lambda: open_store(url, writable=True))
    list(replicator.run(until_caught_up=True))


def cut(archive: AerotapeArchive, archive_dir: Path, place: RecordPosition) -> None:
    """Kill the archive and take the last record from its segment file."""
    archive.kill()
    (segment,) = archive_dir.glob("*.rec")
    with segment.open("r+b") as file:
        file.seek(place.offset)
        file.write(bytes(place.next_position - place.offset))
    age_mark_file(archive_dir)


def test_a_store_that_has_more_than_the_log(tmp_path: Path, aeron_dir: Path) -> None:
    """It is refused before anything is appended in place of what was lost."""
    url, archive_dir = f"sqlite:{tmp_path / 'store.db'}", tmp_path / "archive"
    archive = AerotapeArchive(archive_dir, aeron_dir).start()
    with archive.connect() as client, client.entities("t") as journal:
        journal.append("k", events(1))
        place = journal.append("k", events(2))
        replicate(archive, url)
        cut(archive, archive_dir, place)
    with (
        AerotapeArchive(archive_dir, aeron_dir.with_name("again")).start() as again,
        again.connect() as client,
        open_store(url) as store,
        client.entities("t", store=store) as journal,
    ):
        for refuse in (
            lambda: journal.append("k", events(2)),
            lambda: journal.append("k", events(2), expect=1),
            lambda: journal.read("k"),
        ):
            with pytest.raises(EntityError, match="or records were lost in a power cut"):
                refuse()
        with pytest.raises(EntityError, match="or records were lost in a power cut"):
            replicate(again, url)


def test_only_what_is_on_storage_is_replicated(
    tmp_path: Path, aeron_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a persistent topic: the rest follows when it is confirmed."""
    url, archive_dir = f"sqlite:{tmp_path / 'store.db'}", tmp_path / "archive"

    class Unsynced(PartitionRecording):
        """The confirmed position before the last record was synced."""

        def counted(self) -> int | None:
            position = super().counted()
            assert position == second.next_position
            return first.next_position

    with (
        AerotapeArchive(archive_dir, aeron_dir).start() as archive,
        archive.connect() as client,
        client.entities("t", type="PD_JOURNAL") as journal,
    ):
        first = journal.append("k", events(1))
        second = journal.append("k", events(2))
        with monkeypatch.context() as patched:
            patched.setattr(replicating, "PartitionRecording", Unsynced)
            replicate(archive, url)
        with open_store(url) as store:
            assert [each.seq_nr for each in store.events("t", "k")] == [1]
        replicate(archive, url)
        with open_store(url) as store:
            assert [each.seq_nr for each in store.events("t", "k")] == [1, 2]
