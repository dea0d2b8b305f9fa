"""Journals that Zeebe's own classes write and read: releases 1.0.0, 8.2.15 and 8.3.4."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.journals import raft_bytes as built
from support.jvm.zeebe import RELEASES, Command, ZeebeError, ZeebeJournals, ZeebeRecord

from aerotape.codecs.generated.raft_entry import MemberType
from aerotape.codecs.raft.entries import (
    ApplicationEntry,
    ConfigurationEntry,
    InitialEntry,
    Member,
    RaftEntry,
    decode_entry,
    encode_entry,
)
from aerotape.codecs.raft.record import decode_record
from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.verify import verify_journal
from aerotape.codecs.raft_journal.writer import JournalWriter
from aerotape.errors import JournalError

pytestmark = pytest.mark.jvm

SEGMENT_SIZE = 2048
CUT = 31  # in the middle of the second of four segments or more
MEMBERS = (Member("0", MemberType.ACTIVE, 1_700_000_000_001), Member("m-1", MemberType.PASSIVE, 7))
TEXTS = ("", "é€", "payload " * 9, "x")


@pytest.fixture(scope="module")
def releases() -> Iterator[dict[str, ZeebeJournals]]:
    """A process of each release, by the format that it writes."""
    running = {name: ZeebeJournals(name) for name in RELEASES}
    yield running
    for each in running.values():
        each.close()


def entries(name: str, count: int = 60) -> list[tuple[int, RaftEntry]]:
    """Asqns and entries of two terms, of all types; format 8.3 has old members, too."""
    old = MEMBERS[:1] if name == "8.3" else ()
    found: list[tuple[int, RaftEntry]] = [
        (-1, InitialEntry(1)),
        (-1, ConfigurationEntry(1, 1_700_000_000_000, MEMBERS, old)),
    ]
    position = 1
    for number in range(count):
        term = 1 if number < count // 2 else 2
        if number == count // 2:
            found.append((-1, InitialEntry(2)))
            found.append((-1, ConfigurationEntry(2, 5, (), ())))
        last = position + number % 3
        text = TEXTS[number % len(TEXTS)].encode()
        found.append((position, ApplicationEntry(term, position, last, text)))
        position = last + 1
    return found


def members_text(members: tuple[Member, ...] | None) -> str:
    return ",".join(f"{m.member_id}/{m.type.name}/{m.updated_ms}" for m in members or ())


def command(entry: RaftEntry) -> Command:
    """The command that appends an entry."""
    if isinstance(entry, InitialEntry):
        return ("initial", entry.term)
    if isinstance(entry, ApplicationEntry):
        data = entry.data.hex()
        return ("application", entry.term, entry.lowest_asqn, entry.highest_asqn, data)
    old = members_text(entry.old_members)
    return ("configuration", entry.term, entry.timestamp_ms, members_text(entry.members), old)


def content(entry: RaftEntry) -> tuple[str, ...]:
    """Return the fields that Zeebe's reader prints of an entry."""
    if isinstance(entry, InitialEntry):
        return ("INITIAL",)
    if isinstance(entry, ApplicationEntry):
        numbers = (str(entry.lowest_asqn), str(entry.highest_asqn))
        return ("APPLICATION", *numbers, entry.data.hex())
    groups = (members_text(entry.members), members_text(entry.old_members))
    return ("CONFIGURATION", str(entry.timestamp_ms), *groups)


def write_theirs(zeebe: ZeebeJournals, folder: Path, *, more: tuple[Command, ...] = ()) -> None:
    """Let Zeebe write a journal of several segments, and change it."""
    appended = [command(entry) for _, entry in entries(zeebe.format)]
    zeebe.write(folder, SEGMENT_SIZE, [*appended, *more])


@pytest.fixture(scope="module")
def theirs(
    releases: dict[str, ZeebeJournals], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Path]]:
    """Journals of each release: whole, truncated and continued in another term, compacted."""
    found: dict[str, dict[str, Path]] = {}
    for name, zeebe in releases.items():
        folder = tmp_path_factory.mktemp(f"theirs-{name}")
        kept = [each for _, each in entries(name)[:CUT] if isinstance(each, ApplicationEntry)]
        begin = kept[-1].highest_asqn + 1
        continued: list[Command] = [("initial", 3)]
        for position in range(begin, begin + 20):
            continued.append(("application", 3, position, position, b"again".hex()))
        changes: dict[str, tuple[Command, ...]] = {
            "whole": (),
            "truncated": (("flush",), ("deleteAfter", CUT), *continued),
            "cut": (("flush",), ("deleteAfter", CUT)),
            "compacted": (("flush",), ("deleteUntil", 40)),
        }
        found[name] = {kind: folder / kind for kind in changes}
        for kind, more in changes.items():
            write_theirs(zeebe, folder / kind, more=more)
    return found


def hashes(folder: Path) -> dict[str, str]:
    """The files of a directory, and what they hold and when they were written."""
    return {
        path.name: f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}"
        for path in folder.iterdir()
    }


def read_theirs(zeebe: ZeebeJournals, folder: Path, tmp_path: Path) -> list[ZeebeRecord]:
    """Return the records that Zeebe reads from a copy of a journal, up to its end or damage."""
    copy = tmp_path / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    records, _ = zeebe.read(copy, SEGMENT_SIZE)
    return records


@pytest.mark.parametrize("kind", ["whole", "truncated", "cut", "compacted"])
@pytest.mark.parametrize("name", RELEASES)
def test_ours_reads_theirs(
    releases: dict[str, ZeebeJournals],
    theirs: dict[str, dict[str, Path]],
    tmp_path: Path,
    name: str,
    kind: str,
) -> None:
    """Record by record as the real reader, and not a byte of the journal changes."""
    folder = theirs[name][kind]
    before = hashes(folder)
    expected = read_theirs(releases[name], folder, tmp_path)
    found = list(RaftJournal.open(folder).records())
    assert [(r.index, r.asqn, r.checksum, r.data, r.term) for r in found] == [
        (r.index, r.asqn, r.checksum, r.data, r.term) for r in expected
    ]
    assert [content(decode_entry(r.data)) for r in found] == [r.entry for r in expected]
    for record, real in zip(found, expected, strict=True):
        assert record.type is not None and record.type.name == real.entry[0]
        if record.lowest_asqn is not None:
            assert (str(record.lowest_asqn), str(record.highest_asqn)) == real.entry[1:3]
    indices = [r.index for r in found]
    assert len(RaftJournal.open(folder).segments()) > 1 and indices == list(
        range(indices[0], indices[-1] + 1)
    )
    assert (indices[0] == 1) == (kind != "compacted")
    assert verify_journal(folder).findings == []
    assert hashes(folder) == before


@pytest.mark.parametrize("name", RELEASES)
def test_the_worked_layouts_hold_for_what_each_release_writes(
    theirs: dict[str, dict[str, Path]], name: str
) -> None:
    """Descriptors and records are, byte for byte, those that the tests build with `struct`."""
    journal = RaftJournal.open(theirs[name]["whole"])
    version = built.VERSIONS[name]
    for (asqn, entry), record in zip(entries(name), journal.records(), strict=True):
        data = encode_entry(entry, version)
        assert record.record == built.record(record.index, asqn, data, version)
    for segment in journal.segments():
        head = segment.path.read_bytes()[: built.HEAD_LENGTHS[name]]
        last = (segment.descriptor.last_index, segment.descriptor.last_position)
        index = segment.descriptor.index
        assert head == built.descriptor(name, segment.id, index, SEGMENT_SIZE, *last)
    if name == "1.0":
        assert next(journal.records()).record == built.EXAMPLE


@pytest.mark.parametrize("name", RELEASES)
def test_theirs_reads_ours(
    releases: dict[str, ZeebeJournals],
    theirs: dict[str, dict[str, Path]],
    tmp_path: Path,
    name: str,
) -> None:
    """The same entries give the same files; the release reads and continues our journal."""
    ours = tmp_path / "ours"
    with JournalWriter(ours, format=name, segment_size=SEGMENT_SIZE) as journal:
        for asqn, entry in entries(name):
            journal.append(encode_entry(entry, journal.format.raft_version), asqn)
    whole = theirs[name]["whole"]
    assert {path.name for path in ours.iterdir()} <= {path.name for path in whole.iterdir()}
    for path in ours.iterdir():
        # Newer releases skip the id of a segment that they created and did not use.
        assert path.read_bytes() == (whole / path.name).read_bytes()
    zeebe = releases[name]
    records = read_theirs(zeebe, ours, tmp_path)
    assert [record.entry for record in records] == [content(each) for _, each in entries(name)]
    zeebe.write(ours, SEGMENT_SIZE, [("initial", 3)])
    *_, last = RaftJournal.open(ours).records()
    assert (last.index, last.term) == (len(entries(name)) + 1, 3)


@pytest.mark.parametrize(("written", "reader"), [("1.0", "8.2"), ("8.2", "8.3"), ("1.0", "8.3")])
def test_newer_releases_on_older_formats(
    releases: dict[str, ZeebeJournals], tmp_path: Path, written: str, reader: str
) -> None:
    """8.2 reads format 1.0, 8.3 reads 8.2; 8.3 has dropped the descriptor of 1.0."""
    folder = tmp_path / "journal"
    with JournalWriter(folder, format=written, segment_size=SEGMENT_SIZE) as journal:
        for asqn, entry in entries(written):
            journal.append(encode_entry(entry, journal.format.raft_version), asqn)
    records = read_theirs(releases[reader], folder, tmp_path)
    readable = (written, reader) != ("1.0", "8.3")
    assert len(records) == (len(entries(written)) if readable else 0)


def damage(folder: Path, random_: random.Random) -> str:
    """Flip a bit in a record's checksum, length, header or data; return a description."""
    segments = RaftJournal.open(folder).segments()
    records = list(RaftJournal.open(folder).records())
    record = random_.choice(records)
    # Not the frame: another version is an error here and a record for Zeebe; nor the schema
    # versions, which neither checks.
    length = len(record.record)
    places = [at for at in range(1, length) if at not in (7, 8)]
    at = random_.choice(places)
    content = bytearray(record.segment.read_bytes())
    content[record.offset + at] ^= 1 << random_.randrange(8)
    record.segment.write_bytes(content)
    return f"record {record.index} of {len(records)}, byte {at}, of {len(segments)} segments"


@pytest.mark.parametrize("name", RELEASES)
def test_damage_is_found_where_the_real_reader_finds_it(
    releases: dict[str, ZeebeJournals],
    theirs: dict[str, dict[str, Path]],
    tmp_path: Path,
    seeds: range,
    name: str,
) -> None:
    """A bit flipped at random: reading ends, and verify finds it, at the real reader's index."""
    for seed in seeds:
        random_ = random.Random(f"{name} {seed}")
        for _ in range(40):
            folder = tmp_path / "damaged"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(theirs[name]["whole"], folder)
            what = damage(folder, random_)
            before = hashes(folder)
            read: list[int] = []
            with pytest.raises(JournalError) as caught:
                for record in RaftJournal.open(folder).records():
                    read.append(record.index)
            finding = verify_journal(folder).findings[0]
            assert hashes(folder) == before
            expected = [each.index for each in read_theirs(releases[name], folder, tmp_path)]
            assert read == expected, what
            assert caught.value.index == finding.index == len(expected) + 1, what


@pytest.mark.parametrize("name", RELEASES)
def test_other_damage_ends_reading_where_the_real_reader_ends(
    releases: dict[str, ZeebeJournals],
    theirs: dict[str, dict[str, Path]],
    tmp_path: Path,
    name: str,
) -> None:
    """Frames that are cleared or set after the end, and descriptors that have a checksum.

    A cleared frame is damage where records after it have been flushed: newer releases flush a
    journal when they close it.
    """
    whole = RaftJournal.open(theirs[name]["whole"])
    records, segments = list(whole.records()), whole.segments()
    middle = next(each for each in records if each.segment == segments[1].path)
    last = records[-1]
    # Path, offset, whether reading ends with an error.
    places = [
        (middle.segment, middle.offset, True),
        (records[-3].segment, records[-3].offset, name != "1.0"),
        (last.segment, last.offset + len(last.record), True),
    ]
    if name != "1.0":  # 1.0 does not check descriptors
        # Versions, ids and checksum; not the block length, whose high bits end Zeebe's open.
        places += [(segments[1].path, at, True) for at in (0, 3, 5, 9, 12, 21, 28, 36, 41)]
    for path, offset, has_error in places:
        folder = tmp_path / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(theirs[name]["whole"], folder)
        content = bytearray((folder / path.name).read_bytes())
        content[offset] ^= 1
        (folder / path.name).write_bytes(content)
        read: list[int] = []
        error: JournalError | None = None
        try:
            for record in RaftJournal.open(folder).records():
                read.append(record.index)
        except JournalError as caught:
            error = caught
        findings = verify_journal(folder).findings
        assert (error is not None) == has_error
        if not has_error:
            assert findings == []
        if error is not None:
            assert error.index == findings[0].index == len(read) + 1
        assert read == [each.index for each in read_theirs(releases[name], folder, tmp_path)]


@pytest.mark.parametrize("name", RELEASES)
def test_replicated_records(releases: dict[str, ZeebeJournals], tmp_path: Path, name: str) -> None:
    """Records in the form of the replication are accepted by 1.0 and 8.2, byte for byte.

    8.3 refuses its own, whose checksum is not that of version 1 of the schema.
    """
    zeebe = releases[name]
    leader = tmp_path / "leader"
    with JournalWriter(leader, format=name, segment_size=SEGMENT_SIZE) as journal:
        for asqn, entry in entries(name)[:8]:
            journal.append(encode_entry(entry, journal.format.raft_version), asqn)
    records = [
        each
        for each in map(decode_record, (r.record for r in RaftJournal.open(leader).records()))
        if each
    ]
    follower = tmp_path / "follower"
    follower.mkdir()
    zeebe.run(("open", str(follower), SEGMENT_SIZE))
    sent: list[Command] = [
        ("replicate", 1, r.index, r.asqn, r.checksum, r.data.hex()) for r in records
    ]
    if name == "8.3":
        with pytest.raises(ZeebeError, match=r"^InvalidChecksum"):
            zeebe.run(sent[0])
        zeebe.run(("close",))
        return
    zeebe.run(*sent[:3])
    wrong = (*sent[3][:4], records[3].checksum ^ 1, *sent[3][5:])
    with pytest.raises(ZeebeError, match=r"^InvalidChecksum"):
        zeebe.run(wrong)
    with pytest.raises(ZeebeError, match=r"^InvalidIndex"):
        zeebe.run(sent[4])
    zeebe.run(*sent[3:], ("close",))
    for path in leader.iterdir():
        assert (follower / path.name).read_bytes() == path.read_bytes()
