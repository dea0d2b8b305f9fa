"""What `aerotape journal export` refuses before it writes anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.daemon.command_line import aerotape
from support.journals import raft_bytes as built
from support.journals.written_journal import files, write_journal

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.maintenance.recording_writer import (
    NewStream,
    RecordingWriter,
    write_recording,
)
from aerotape.codecs.raft.entries import ConfigurationEntry, decode_entry
from aerotape.codecs.raft.record import decode_record
from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.verify import verify_journal
from aerotape.replay.offline.directory import open_directory

SMALL = ("--term-length", "256k", "--segment-length", "256k")
MEMBERS = [(3, 5, b"0"), (1, 6, b"1")]


def records(joint: int = 12, count: int = 20, longest: int = 300) -> list[tuple[int, int, bytes]]:
    """Index, asqn and bytes of records of format 8.3, of which one has old members (0: none)."""
    found, asqn = [], 0
    for index in range(1, count + 1):
        if index == joint:
            entry = built.configuration(9, MEMBERS, MEMBERS[:1], version=2)
            found.append((index, -1, built.record(index, -1, entry, 2)))
            continue
        asqn += 1
        entry = built.application(asqn, asqn, bytes(index * longest // count), version=2)
        found.append((index, asqn, built.record(index, asqn, entry, 2)))
    return found


def imported(directory: Path, archive: Path) -> None:
    aerotape("journal", "import", directory, "--to", archive, *SMALL)


def export(out: Path, archive: Path, *options: str, expect: int = 0) -> str:
    done = aerotape("journal", "export", 0, out, "--from", archive, *options, expect=expect)
    return done.err


def refused(out: Path, archive: Path, *options: str) -> str:
    """Export, which is refused and writes nothing; return the error."""
    before = set(out.parent.iterdir())
    error = export(out, archive, *options, expect=2)
    assert set(out.parent.iterdir()) == before and error.count("\n") == 1
    return error


@pytest.mark.parametrize("target", ["1.0", "8.2"])
def test_old_members_cannot_be_written_in_older_formats(tmp_path: Path, target: str) -> None:
    """The error names the record, where it is, the reason, and the format to use."""
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    write_journal(directory, found=records())
    imported(directory, archive)
    messages = list(open_directory(archive).recording(0).messages())
    error = refused(tmp_path / "out", archive, "--format", target)
    assert f"record 12 at position {messages[11].position} cannot be written in format" in error
    assert f"format {target}: configuration entry: version 1 of the schema has no old" in error
    assert "this one has 1: write format 8.3" in error
    export(tmp_path / "out", archive, "--format", "8.3")
    assert len(list(RaftJournal.open(tmp_path / "out").records())) == 20


def test_a_record_that_is_longer_than_a_segment(tmp_path: Path) -> None:
    """Also one that another format makes longer."""
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    write_journal(directory, found=records(0, longest=2000))
    imported(directory, archive)
    error = refused(tmp_path / "out", archive, "--segment-size", "1k")
    assert "record 9 has 994 bytes, and a segment of 1024 bytes has room for 967" in error
    # An entry without old members, whose group takes three bytes in format 8.3.
    entry = built.configuration(9, MEMBERS)
    record = built.record(1, -1, entry)
    small = tmp_path / "small"
    write_journal(small, "8.2", [(1, -1, record)])
    imported(small, tmp_path / "other")
    size = str(built.HEAD_LENGTHS["8.3"] + len(record))
    error = refused(tmp_path / "out", tmp_path / "other", "--format", "8.3", "--segment-size", size)
    assert f"record 1 has {len(record) + 3} bytes" in error
    export(tmp_path / "out", tmp_path / "other", "--segment-size", size)


def mixed(directory: Path) -> None:
    """A journal of format 8.2 that release 8.3 has continued, in the same segment and another."""
    old = [(i, a, built.record(i, a, built.application(a, a))) for i, a in ((1, 1), (2, 2))]
    new = [
        built.record(i, a, built.application(a, a, version=2), 2)
        for i, a in ((3, 3), (4, 4), (5, 5))
    ]
    directory.mkdir()
    head = [record for _, _, record in old]
    built.write_segment(directory, 1, 1, [*head, new[0]], journal_format="8.2")
    built.write_segment(directory, 2, 4, new[1:])


@pytest.mark.parametrize("target", ["1.0", "8.2", "8.3"])
def test_a_journal_of_several_formats_is_converted_to_one(tmp_path: Path, target: str) -> None:
    """Each record and each segment; without --format it is restored as it was."""
    directory, archive, out = (tmp_path / each for each in ("journal", "archive", "out"))
    mixed(directory)
    imported(directory, archive)
    export(out, archive, "--format", target)
    version = built.VERSIONS[target]
    assert {each.descriptor.format.name for each in RaftJournal.open(out).segments()} == {target}
    for index, record in enumerate(RaftJournal.open(out).records(), start=1):
        entry = built.application(index, index, version=version)
        assert record.record == built.record(index, index, entry, version)
    assert index == 5 and verify_journal(out).findings == []
    export(tmp_path / "again", archive)
    assert files(tmp_path / "again") == files(directory)


def append(archive: Path, payload: bytes, reserved_value: int) -> None:
    """Write the next recording, with the messages of the first one and another."""
    found = [
        (bytes(each.payload), each.reserved_value)
        for each in open_directory(archive).recording(0).messages()
    ]
    with Catalog.open(archive) as catalog:
        channel = open_directory(archive).recording(0).descriptor.original_channel
        stream = NewStream(channel=channel, stream_id=1)

        def write(writer: RecordingWriter) -> None:
            for each, reserved in [*found, (payload, reserved_value)]:
                writer.append(memoryview(each), reserved)

        write_recording(catalog, archive, stream, write)


@pytest.mark.parametrize("how", ["not imported", "full", "earlier"])
def test_records_without_a_place_in_the_imported_segments(tmp_path: Path, how: str) -> None:
    """They are not damage: with a segment size they are exported, without it nothing is."""
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    directory.mkdir()
    built.write_journal(directory, (3, 4))
    imported(directory, archive)
    *_, last = open_directory(archive).recording(0).messages()
    first = next(iter(open_directory(archive).recording(0).messages()))
    reserved = {"not imported": 0, "full": last.reserved_value, "earlier": first.reserved_value}
    data = bytes(4000 if how == "full" else 1)
    append(archive, built.record(8, 7, built.application(7, 7, data, version=2), 2), reserved[how])

    def run(out: Path, *options: str, expect: int = 0) -> str:
        command = ("journal", "export", 1, out, "--from", archive, *options)
        return aerotape(*command, expect=expect).err

    why = {
        "not imported": "it was not imported from a journal",
        "full": "its segment is full",
        "earlier": "its segment 1 follows segment 2",
    }
    error = run(tmp_path / "out", expect=2)
    assert f"record 8 has no place in the segments of the imported journal: {why[how]}" in error
    assert "give --segment-size" in error
    assert sorted(each.name for each in tmp_path.iterdir()) == ["archive", "journal"]
    run(tmp_path / "out", "--segment-size", "8k")
    found = [record.record for record in RaftJournal.open(tmp_path / "out").records()]
    assert len(found) == 8 and decode_record(found[-1])


def test_a_journal_without_old_members_is_written_in_each_format(tmp_path: Path) -> None:
    """An empty group of old members is not a reason to refuse."""
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    entry = built.configuration(9, MEMBERS, [], version=2)
    write_journal(directory, found=[(1, -1, built.record(1, -1, entry, 2))])
    imported(directory, archive)
    for target in ("1.0", "8.2"):
        export(tmp_path / target, archive, "--format", target)
        (record,) = RaftJournal.open(tmp_path / target).records()
        found = decode_entry(record.data)
        assert isinstance(found, ConfigurationEntry) and found.old_members is None


def test_nothing_is_checked_after_damage(tmp_path: Path) -> None:
    """The export ends at the damage, as documented, so what follows cannot be a reason."""
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    found = records(joint=15)
    _, _, record = found[9]
    write_journal(directory, found=found)
    imported(directory, archive)
    path = archive / "0-0.rec"
    content = bytearray(path.read_bytes())
    content[content.index(record) + len(record) - 1] ^= 1
    path.write_bytes(content)
    error = export(tmp_path / "out", archive, "--format", "8.2", expect=3)
    assert "the records before the damage were exported" in error and "checksum" in error
    assert [each.index for each in RaftJournal.open(tmp_path / "out").records()] == [*range(1, 10)]
