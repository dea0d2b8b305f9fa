"""Journals with the metadata and the engine's records that Zeebe's own classes wrote."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.jvm.zeebe import NAME, RELEASES, Command, ZeebeJournals

from aerotape.codecs.raft.application import EngineRecord, decode_records, decode_value
from aerotape.codecs.raft.entries import ApplicationEntry, decode_entry
from aerotape.codecs.raft.intents import INTENTS, VALUE_TYPES
from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.metadata import last_flushed_index
from aerotape.codecs.raft_journal.verify import verify_journal

pytestmark = pytest.mark.jvm

SEGMENT_SIZE = 2048
COUNT = 60


@pytest.fixture(scope="module")
def releases() -> Iterator[dict[str, ZeebeJournals]]:
    """A process of each release, by the format that it writes."""
    running = {name: ZeebeJournals(name) for name in RELEASES}
    yield running
    for each in running.values():
        each.close()


def appending(begin: int, end: int) -> list[Command]:
    return [
        ("application", 1, each, each, (b"x" * (each % 50)).hex()) for each in range(begin, end)
    ]


@pytest.fixture
def theirs(
    releases: dict[str, ZeebeJournals], tmp_path: Path, request: pytest.FixtureRequest
) -> Path:
    """A journal of several segments whose records are all flushed, and its metadata."""
    folder = tmp_path / "theirs"
    commands = [*appending(1, COUNT + 1), ("commit",)]
    releases[request.node.callspec.params["name"]].write(folder, SEGMENT_SIZE, commands)
    return folder


@pytest.mark.parametrize("name", RELEASES)
def test_the_index_that_each_release_stores(
    releases: dict[str, ZeebeJournals], tmp_path: Path, name: str
) -> None:
    """After a flush, a truncation, and a reset to a snapshot; none of them looks like damage."""
    zeebe = releases[name]

    def flushed_after(*commands: Command) -> int:
        zeebe.run(*commands)
        return last_flushed_index(tmp_path, NAME)

    assert flushed_after(("open", str(tmp_path), SEGMENT_SIZE)) == 0
    assert flushed_after(*appending(1, 41)) == 0
    assert flushed_after(("commit",)) == 40
    assert flushed_after(*appending(41, 61)) == 40
    assert verify_journal(tmp_path).findings == []
    assert flushed_after(("deleteAfter", 50)) in (40, 50)
    assert verify_journal(tmp_path).findings == []
    assert flushed_after(*appending(51, 56), ("commit",)) == 55
    assert verify_journal(tmp_path).findings == []
    zeebe.run(("reset", 200))
    assert verify_journal(tmp_path).findings == []
    zeebe.run(*appending(200, 210), ("close",))
    assert verify_journal(tmp_path).findings == []
    assert RaftJournal.open(tmp_path).first_index == 200


def cut(folder: Path, index: int, how: str) -> None:
    """End a journal after the record with an index."""
    records = list(RaftJournal.open(folder).records())
    first = records[index]
    for path in {record.segment for record in records[index:]} - {first.segment}:
        path.unlink()
    content = first.segment.read_bytes()[: first.offset]
    first.segment.write_bytes(content if how == "short" else content.ljust(SEGMENT_SIZE, b"\0"))


@pytest.mark.parametrize("how", ["short", "zeros"])
@pytest.mark.parametrize("name", RELEASES)
def test_each_missing_tail_is_found(
    theirs: Path, releases: dict[str, ZeebeJournals], tmp_path: Path, name: str, how: str
) -> None:
    """Wherever the journal is cut between two records; Zeebe 8.2 and 8.3 refuse it, too."""
    assert verify_journal(theirs).findings == []
    copy = tmp_path / "copy"
    for index in range(1, COUNT):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(theirs, copy)
        cut(copy, index, how)
        finding = verify_journal(copy).findings[-1]
        assert (finding.problem, finding.index) == ("MissingRecords", index + 1)
        if name != "1.0" and index % 10 == 0:
            records, error = releases[name].read(copy, SEGMENT_SIZE, COUNT)
            assert not records and error.startswith("CorruptedJournalException")


@pytest.mark.parametrize("name", RELEASES)
def test_no_damage_passes(theirs: Path, tmp_path: Path, seeds: range, name: str) -> None:
    """Bits flipped, records cleared, files cut and segments removed at random."""
    copy = tmp_path / "copy"
    whole = RaftJournal.open(theirs)
    records, segments = list(whole.records()), whole.segments()
    for number in range(220 * len(seeds)):
        rng = random.Random(f"{name} {seeds.start} {number}")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(theirs, copy)
        record = rng.choice(records)
        path = copy / record.segment.name
        content = bytearray(path.read_bytes())
        kind = rng.choice(("flipped", "cleared", "cut", "removed"))
        if kind == "flipped":
            # Not the schema version of the metadata, which neither Zeebe nor verify checks.
            at = rng.choice([each for each in range(len(record.record)) if each not in (7, 8)])
            content[record.offset + at] ^= 1 << rng.randrange(8)
        elif kind == "cleared":
            content[record.offset : record.offset + len(record.record)] = bytes(len(record.record))
        elif kind == "cut":
            del content[record.offset + rng.randrange(len(record.record)) :]
        path.write_bytes(content)
        if kind == "removed":  # the first segments may be compacted
            (copy / rng.choice(segments[1:]).path.name).unlink()
        assert verify_journal(copy).findings, (number, kind, record.index)


def engine_records(folder: Path) -> list[EngineRecord]:
    (record,) = RaftJournal.open(folder).records()
    entry = decode_entry(record.data)
    assert isinstance(entry, ApplicationEntry)
    return decode_records(entry.data)


@pytest.mark.parametrize("name", RELEASES)
def test_the_engine_records_of_each_release(
    releases: dict[str, ZeebeJournals], tmp_path: Path, name: str
) -> None:
    """Types, intents, keys, rejections, and values as Zeebe converts them to JSON."""
    zeebe = releases[name]
    zeebe.run(("open", str(tmp_path), 65_536))
    expected = [line.split("\t") for line in zeebe.run(("engine", 1, 5))]
    zeebe.run(("close",))
    found = engine_records(tmp_path)
    for position, record, real in zip((5, 6, 7), found, expected, strict=True):
        *fields, value = real
        assert record.position == position and record.timestamp >= 1_700_000_000_000
        assert fields == [
            str(-1 if record.source_position is None else record.source_position),
            str(-1 if record.key is None else record.key),
            record.record_type,
            record.value_type,
            record.intent,
            record.rejection_type or "NULL_VAL",
            record.rejection_reason or "",
            record.broker_version,
        ]
        theirs, ours = json.loads(value), decode_value(record.value)
        assert theirs.keys() <= ours.keys()
        assert {key: ours[key] for key in theirs} == theirs
    assert decode_value(found[0].value)["variables"] == {
        "amount": 12.5,
        "items": ["pen", None, True],
    }
    assert [record.processed for record in found] == [False, name != "1.0", name != "1.0"]


@pytest.mark.parametrize("name", RELEASES)
def test_the_names_are_those_of_each_release(releases: dict[str, ZeebeJournals], name: str) -> None:
    """All of 8.3; two intents had another name before."""
    renamed = {("PROCESS", "DELETED"), ("RESOURCE_DELETION", "DELETED")}
    known = 0
    for line in releases[name].run(("intents",)):
        value_type, number, names = line.split("\t")
        if int(number) == 255 or value_type == "SBE_UNKNOWN":
            continue
        assert VALUE_TYPES[int(number)] == value_type
        for place, intent in enumerate(names.split(",")):
            if intent == "UNKNOWN":
                continue
            if name == "8.3" or (value_type, intent) not in renamed:
                assert INTENTS[value_type][place] == intent
            known += 1
    if name == "8.3":
        assert known == sum(map(len, INTENTS.values()))
