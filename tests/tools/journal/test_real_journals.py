"""Import, export and seeking with journals that Zeebe's own classes wrote and read."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon.command_line import aerotape
from support.journals.written_journal import files
from support.jvm.zeebe import RELEASES, Command, ZeebeJournals

from aerotape.codecs.raft.record import decode_partially
from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.replay.offline.directory import open_directory

pytestmark = pytest.mark.jvm

SEGMENT_SIZE = 8192
SMALL = ("--term-length", "64k", "--segment-length", "64k")
# Which releases read a format: 8.3 deletes segments with a descriptor of 1.0.
READERS = {"1.0": ("1.0", "8.2"), "8.2": ("8.2", "8.3"), "8.3": ("8.3",)}


def appending(count: int, seed: int, term: int = 1, position: int = 1) -> Iterator[Command]:
    """Yield commands that append entries of all types, in ascending terms and positions."""
    rng = random.Random(seed)
    for number in range(count):
        if number % 50 == 0:
            term += 1
            yield ("initial", term)
            yield ("configuration", term, 1_700_000_000_000 + number, "0/ACTIVE/5,1/PASSIVE/6", "")
        batch = rng.randint(1, 4)
        data = rng.randbytes(rng.choice((0, 1, 40, 700))).hex()
        yield ("application", term, position, position + batch - 1, data)
        position += batch


@pytest.fixture(scope="module")
def releases() -> Iterator[dict[str, ZeebeJournals]]:
    """A process of each release, by the format that it writes."""
    running = {each: ZeebeJournals(each) for each in RELEASES}
    yield running
    for each in running.values():
        each.close()


def copied(source: Path, target: Path) -> Path:
    """The classes may change what they read."""
    return Path(shutil.copytree(source, target))


def imported(journal: Path, archive: Path) -> int:
    row = aerotape("journal", "import", journal, "--to", archive, *SMALL, "--json").json
    assert row["damage"] is None
    recording_id: int = row["recording_id"]
    return recording_id


def export(recording_id: int, out: Path, archive: Path, *options: str) -> None:
    aerotape("journal", "export", recording_id, out, "--from", archive, *options)


@pytest.mark.parametrize("journal_format", RELEASES)
@pytest.mark.parametrize("history", ["appended", "truncated", "compacted"])
def test_files_come_back_byte_for_byte(
    tmp_path: Path, releases: dict[str, ZeebeJournals], journal_format: str, history: str
) -> None:
    """Import and export restore each file; after a truncation up to the stale records."""
    commands: list[Command] = list(appending(300, 1))
    if history == "truncated":
        commands += [("deleteAfter", 150), *appending(10, 2, 100, 10_000)]
    elif history == "compacted":
        commands += [("flush",), ("deleteUntil", 140)]
    journal, archive, out = (tmp_path / each for each in ("journal", "archive", "out"))
    releases[journal_format].write(journal, SEGMENT_SIZE, commands)
    for path in journal.glob("*-deleted"):
        path.unlink()
    for path in journal.glob("*"):
        if path.suffix != ".log":
            path.unlink()
    before = files(journal)
    export(imported(journal, archive), out, archive, "--format", journal_format)
    assert files(journal) == before
    restored = files(out)
    if history == "truncated":
        last = RaftJournal.open(journal).segments()[-1].path
        *_, record = RaftJournal.open(journal).records()
        end = record.offset + len(record.record)
        before[last.name] = before[last.name][:end].ljust(SEGMENT_SIZE, b"\0")
        # A file that was created for the next segment before the truncation has a later number.
        before = {name: data for name, data in before.items() if any(data)}
    assert restored == before


@pytest.mark.parametrize("source", RELEASES)
@pytest.mark.parametrize("target", RELEASES)
def test_exports_are_read_by_the_real_classes(
    tmp_path: Path, releases: dict[str, ZeebeJournals], source: str, target: str
) -> None:
    """Each reader of the exported format returns the records of the source."""
    journal, archive, out = (tmp_path / each for each in ("journal", "archive", "out"))
    releases[source].write(journal, SEGMENT_SIZE, appending(200, 3))
    export(imported(journal, archive), out, archive, "--format", target)
    written, error = releases[source].read(copied(journal, tmp_path / "a"), SEGMENT_SIZE)
    assert not error and len(written) == 208
    for reader in READERS[target]:
        found, error = releases[reader].read(copied(out, tmp_path / f"by {reader}"), SEGMENT_SIZE)
        assert not error
        assert [(r.index, r.asqn, r.term, r.entry) for r in found] == [
            (r.index, r.asqn, r.term, r.entry) for r in written
        ]


@pytest.mark.parametrize("journal_format", RELEASES)
def test_seeking_an_asqn_is_that_of_the_real_reader(
    tmp_path: Path, releases: dict[str, ZeebeJournals], journal_format: str
) -> None:
    """From the same asqn, both return the same record first."""
    journal, archive = tmp_path / "journal", tmp_path / "archive"
    releases[journal_format].write(journal, SEGMENT_SIZE, appending(200, 4))
    recording_id = imported(journal, archive)
    recording = open_directory(archive).recording(recording_id)
    highest = max(record.highest_asqn or 0 for record in RaftJournal.open(journal).records())
    asqns = [0, 1, *random.Random(5).sample(range(2, highest), 60), highest, highest + 5]
    real = releases[journal_format].seek(copied(journal, tmp_path / "a"), SEGMENT_SIZE, asqns)
    ours = []
    for asqn in asqns:
        record = decode_partially(next(recording.messages(from_asqn=asqn)).payload)
        assert record is not None
        ours.append(record.index)
    assert ours == real
