"""`aerotape journal import` and `export` with archive directories."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.mark_files import in_use
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import aerotape, tool
from support.damage.overwriting import overwrite
from support.journals.raft_recording import record_into, records
from support.journals.written_journal import SEGMENT_SIZE, files, write_journal
from support.power_cut.power_cut import directories_after, recorded_command

from aerotape.catalog.file.catalog import Catalog
from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.verify import verify_journal
from aerotape.replay.offline.directory import open_directory

FORMATS = ("1.0", "8.2", "8.3")
SMALL = ("--term-length", "64k", "--segment-length", "128k")
NAME = "raft-partition-partition-1"


def imported(journal: Path, archive: Path, *options: str, expect: int = 0) -> dict[str, object]:
    done = aerotape(
        "journal", "import", journal, "--to", archive, *options, "--json", expect=expect
    )
    row: dict[str, object] = done.json
    return row


def export(recording_id: object, out: Path, archive: Path, *options: str, expect: int = 0) -> str:
    done = aerotape(
        "journal", "export", recording_id, out, "--from", archive, *options, expect=expect
    )
    return done.out + done.err


def payloads(archive: Path, recording_id: int = 0) -> list[bytes]:
    return [
        bytes(each.payload) for each in open_directory(archive).recording(recording_id).messages()
    ]


def is_sound(directory: Path) -> bool:
    """Whether a journal has no finding but the gaps of asqns that the builder makes."""
    return {each.problem for each in verify_journal(directory).findings} <= {"PositionGap"}


@pytest.fixture(params=FORMATS)
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, list[bytes]]:
    """A journal of each format: its format, its directory, its records."""
    directory = tmp_path / "journal"
    return request.param, directory, write_journal(directory, request.param, unused=1)


def test_an_import_has_one_message_for_each_record(
    tmp_path: Path, journal: tuple[str, Path, list[bytes]]
) -> None:
    """The messages are the records."""
    _, directory, written = journal
    before, archive = files(directory), tmp_path / "archive"
    row = imported(directory, archive)
    assert row["recording_id"] == 0 and row["damage"] is None
    assert (row["records"], row["first_index"], row["last_index"]) == (800, 1, 800)
    assert payloads(archive) == written
    descriptor = open_directory(archive).recording(0).descriptor
    assert descriptor.original_channel == f"aeron:ipc?alias={NAME}"
    assert descriptor.stop_position == row["stop_position"]
    assert files(directory) == before
    assert tool(archive, "verify").code == 0


@pytest.mark.parametrize("how", ["as it was", "named"])
def test_an_export_restores_the_files(
    tmp_path: Path, journal: tuple[str, Path, list[bytes]], how: str
) -> None:
    """Import and export give the same bytes, also of a file that is not used yet."""
    journal_format, directory, _ = journal
    archive, out = tmp_path / "archive", tmp_path / "out"
    imported(directory, archive, *SMALL)
    export(0, out, archive, *([] if how == "as it was" else ["--format", journal_format]))
    assert files(out) == files(directory)


@pytest.mark.parametrize("target", FORMATS)
def test_an_export_in_another_format_has_the_same_entries(
    tmp_path: Path, journal: tuple[str, Path, list[bytes]], target: str
) -> None:
    """Index, asqn, term and data of all records stay; the journal is sound."""
    _, directory, _ = journal
    archive, out = tmp_path / "archive", tmp_path / "out"
    imported(directory, archive, *SMALL)
    export(0, out, archive, "--format", target, "--segment-size", "48k")
    assert {path.stat().st_size for path in out.iterdir()} == {48 << 10}
    source, found = (list(RaftJournal.open(each).records()) for each in (directory, out))
    kept = [(r.index, r.asqn, r.term, r.type, r.lowest_asqn, r.highest_asqn) for r in source]
    assert [(r.index, r.asqn, r.term, r.type, r.lowest_asqn, r.highest_asqn) for r in found] == kept
    assert is_sound(out)
    again = tmp_path / "again"
    imported(out, archive, *SMALL)
    export(1, again, archive, "--format", journal[0], "--segment-size", str(SEGMENT_SIZE))
    assert {name: data for name, data in files(directory).items() if any(data)} == files(again)


def test_a_truncated_journal_is_imported_up_to_its_end(tmp_path: Path) -> None:
    """Old records after the end are neither imported nor restored."""
    directory, archive, out = (tmp_path / each for each in ("journal", "archive", "out"))
    written = write_journal(directory)
    last = RaftJournal.open(directory).segments()[-1].path
    tail = next(r.offset for r in RaftJournal.open(directory).records() if r.segment == last)
    offsets = [r.offset for r in RaftJournal.open(directory).records() if r.segment == last]
    overwrite(last, offsets[2], b"\0")
    count = len(written) - len(offsets) + 2
    assert imported(directory, archive)["last_index"] == count
    assert payloads(archive) == written[:count]
    export(0, out, archive)
    restored, original = files(out), files(directory)
    restored_last, original_last = restored.pop(last.name), original.pop(last.name)
    assert restored == original
    assert restored_last[: offsets[2]] == original_last[: offsets[2]] and tail > 0
    assert not any(restored_last[offsets[2] :])


def test_a_purged_recording_is_exported_from_its_first_record(tmp_path: Path) -> None:
    """The first segment then begins with that record."""
    directory, archive, out = (tmp_path / each for each in ("journal", "archive", "out"))
    written = write_journal(directory)
    imported(directory, archive, *SMALL)
    with Catalog.open(archive) as catalog:
        catalog.set_start_position(0, 131_072)
    (archive / "0-0.rec").unlink()
    left = payloads(archive)
    assert 0 < len(left) < len(written) and left == written[-len(left) :]
    export(0, out, archive)
    assert [each.record for each in RaftJournal.open(out).records()] == left
    assert is_sound(out)


def test_damage_ends_an_import_with_what_is_before_it(tmp_path: Path) -> None:
    """The exit code is 3, and the output names index, file and offset."""
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    written = write_journal(directory)
    record = list(RaftJournal.open(directory).records())[500]
    data = bytearray(record.segment.read_bytes())
    data[record.offset + 60] ^= 1
    record.segment.write_bytes(data)
    row = imported(directory, archive, expect=3)
    assert (row["records"], row["last_index"]) == (500, 500)
    assert f"record 501: the checksum is {record.checksum}" in str(row["damage"])
    assert f"{record.segment}, offset {record.offset}" in str(row["damage"])
    assert payloads(archive) == written[:500]


def test_damage_ends_an_export_with_what_is_before_it(tmp_path: Path) -> None:
    """A message that is not a sound record is named by its position."""
    for number, options in enumerate((["--segment-size", "64k"], [])):
        archive, out = tmp_path / f"archive-{number}", tmp_path / f"out-{number}"
        archive.mkdir()
        found = records(30)
        index, asqn, record = found[20]
        found[20] = (index, asqn, record[:-1] + bytes([record[-1] ^ 1]))
        built = record_into(archive, found)
        text = export(0, out, archive, *options, expect=3)
        assert f"position {built[20].position}: " in text and "checksum" in text
        assert [r.record for r in RaftJournal.open(out).records()] == [r for _, _, r in found[:20]]


def test_a_journal_whose_files_vanish_leaves_no_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker may compact its journal in the meantime."""
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    write_journal(directory)
    last = RaftJournal.open(directory).segments()[-1].path
    original = RaftJournal.batches

    def batches(self: RaftJournal, *args: object, **options: object) -> object:
        last.unlink()
        return original(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(RaftJournal, "batches", batches)
    done = aerotape("journal", "import", directory, "--to", archive, expect=1)
    assert str(last) in done.err
    assert open_directory(archive).recordings() == []
    assert [path.name for path in archive.glob("*.rec")] == []


def test_what_cannot_be_done_is_refused(tmp_path: Path) -> None:
    """Nothing is written then."""
    directory, archive, out = (tmp_path / each for each in ("journal", "archive", "out"))
    written = write_journal(directory)

    def refused(*args: object, code: int = 1) -> str:
        return aerotape("journal", *args, expect=code).err

    assert "no journal" in refused("import", tmp_path, "--to", archive)
    assert "--segment-length requires --to" in refused(
        "import", directory, "--segment-length", "1m", code=2
    )
    too_long = refused("import", directory, "--to", archive, "--mtu", "100", code=2)
    assert "MTU length 100 is not a multiple of 32" in too_long
    assert not archive.exists() or not list(archive.glob("*.rec"))
    imported(directory, archive)
    with in_use(archive):
        assert "in use" in refused("import", directory, "--to", archive)
    out.mkdir()
    (out / "file").touch()
    assert "is not an empty directory" in refused("export", 0, out, "--from", archive)
    (out / "file").unlink()
    export(0, out, archive)
    assert [each.record for each in RaftJournal.open(out).records()] == written
    assert "is not an empty directory" in refused("export", 0, out, "--from", archive)
    assert "segment" in refused(
        "export", 0, tmp_path / "x", "--from", archive, "--segment-size", 100, code=2
    )
    assert not (tmp_path / "x").exists()
    assert "no recording with id 7" in refused("export", 7, tmp_path / "x", "--from", archive)
    left = tmp_path / "y.incomplete"
    left.mkdir()
    assert f"{left} is left from an export" in refused(
        "export", 0, tmp_path / "y", "--from", archive
    )
    other = tmp_path / "other"
    other.mkdir()
    add_recording(other, fill(SegmentBuilder(), 3))
    assert "position 0: " in refused("export", 0, tmp_path / "z", "--from", other)
    assert not (tmp_path / "z").exists()


def test_the_names_of_exported_files(tmp_path: Path) -> None:
    """The imported journal's; with --format the one that Zeebe opens; --name overrides both."""
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    write_journal(directory, found=records(30))
    for path in list(directory.iterdir()):
        path.rename(path.with_name(path.name.replace(NAME, "broker")))
    imported(directory, archive)
    for number, (options, name) in enumerate(
        (
            ([], "broker"),
            (["--format", "8.3"], NAME),
            (["--format", "8.2"], NAME),
            (["--format", "8.2", "--name", "other"], "other"),
        )
    ):
        out = tmp_path / f"out-{number}"
        export(0, out, archive, *options)
        assert [path.name for path in out.iterdir()] == [f"{name}-1.log"]


def test_names_that_are_no_file_names_are_refused(tmp_path: Path) -> None:
    """A recording's alias does not lead out of the directory; nothing is written."""
    directory, archive, out = (tmp_path / each for each in ("journal", "archive", "out"))
    write_journal(directory, found=records(30))
    imported(directory, archive, "--channel", "aeron:ipc?alias=../x")
    for options in ([], ["--name", "a/b"], ["--name", ""], ["--name", "a/b", "--format", "1.0"]):
        done = aerotape("journal", "export", 0, out, "--from", archive, *options, expect=2)
        assert "is not a journal's name" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "journal"]
    path = next(directory.iterdir())
    path.rename(path.with_name("a|b-1.log"))
    done = aerotape("journal", "import", directory, "--to", archive, expect=2)
    assert "'a|b' cannot be the alias of a channel" in done.err and "--channel" in done.err
    imported(directory, archive, "--channel", "aeron:ipc?alias=ab")


def test_a_journal_without_a_sound_record_is_not_imported(tmp_path: Path) -> None:
    """Its damage is printed, the exit code is 3, and there is no recording."""
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    write_journal(directory, found=records(30))
    path = directory / f"{NAME}-1.log"
    path.write_bytes(b"\x07" + path.read_bytes()[1:])
    done = aerotape("journal", "import", directory, "--to", archive, "--json", expect=3)
    assert done.out == ""
    assert "the version is 7" in done.err and "nothing was imported" in done.err
    assert open_directory(archive).recordings() == []


def test_records_that_were_not_imported_are_exported_too(tmp_path: Path) -> None:
    """They get the default name and format."""
    archive, out = tmp_path / "archive", tmp_path / "out"
    archive.mkdir()
    built = record_into(archive, records(30, first_index=5))
    export(0, out, archive, "--segment-size", "1m")
    assert [path.name for path in out.iterdir()] == [f"{NAME}-1.log"]
    assert [each.record for each in RaftJournal.open(out).records()] == [b.payload for b in built]


@pytest.mark.crash
def test_a_killed_import_leaves_no_half_recording(tmp_path: Path) -> None:
    """Killed between any two changes, it leaves the recording complete or none; a rerun works."""
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    written = write_journal(directory, found=records(120))
    archive.mkdir()
    with Catalog.open(archive, create=True):
        pass
    arguments = ["journal", "import", str(directory), "--to", "DIR", *SMALL]
    run = recorded_command(archive, tmp_path, arguments)
    kills = run.kills()
    for number, copy in enumerate(directories_after(run, archive.name, tmp_path, kills)):
        found = [each.recording_id for each in open_directory(copy).recordings()]
        assert all(payloads(copy, each) == written for each in found)
        is_over = number == len(kills)
        if is_over:
            assert found == [0]
        if number % 5 == 0 or is_over:
            again = tmp_path / "again"
            shutil.copytree(copy, again)
            row = imported(directory, again, *SMALL)
            assert payloads(again, int(str(row["recording_id"]))) == written
            shutil.rmtree(again)
    assert len(kills) > 8


@pytest.mark.crash
def test_a_killed_export_leaves_no_half_journal(tmp_path: Path) -> None:
    """The directory is there when it is complete."""
    directory, archive = tmp_path / "journal", tmp_path / "archive"
    write_journal(directory, found=records(120))
    imported(directory, archive, *SMALL)
    parent = tmp_path / "parent"
    parent.mkdir()

    arguments = ["journal", "export", "0", "DIR/out", "--from", str(archive)]
    run = recorded_command(parent, tmp_path, arguments)
    kills = run.kills()
    for copy in directories_after(run, parent.name, tmp_path, kills):
        if (copy / "out").exists():
            assert files(copy / "out") == files(directory)
    assert len(kills) > 5
