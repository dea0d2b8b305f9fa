"""`aerotape journal show`."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest
from support.daemon.command_line import aerotape
from support.journals import raft_bytes as built

VALUE = b"\x82\xa4type\xa3pay\xa9variables\xc4\x04\x81\xa1a\x01"


def engine(position: int, value: bytes = VALUE, value_type: int = 0) -> bytes:
    """A record of the engine as Zeebe 8.3 writes it: an event, of key 7."""
    types = (0, -(1 << 31), (1 << 64) - 1, 4, value_type, 2)
    metadata = struct.pack("<BiQHBB3iHB", *types, 8, 3, 4, 1, 255)
    metadata = built.message(0, 200, 4, metadata, built.blob(b"") + built.blob(b""))
    rest = struct.pack("<hBxqqqqi", 0, 1, position, -1, 7, 1_700_000_000_000, len(metadata))
    entry = struct.pack("<i8x", 12 + len(rest + metadata + value)) + rest + metadata + value
    return entry.ljust(-(-len(entry) // 8) * 8, b"\0")


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal of all types of entries, from index 5 on."""
    members = [(3, 5, b"0")]
    entries = [
        (-1, built.initial(3, 2)),
        (-1, built.configuration(9, members, members, term=3, version=2)),
        (1, built.application(1, 2, engine(1) + engine(2, b"\xc1", 99), 3, 2)),
        (3, built.application(3, 3, b"other", 3, 2)),
        (-1, b"not a raft entry"),
    ]
    records = [built.record(n, asqn, data, 2) for n, (asqn, data) in enumerate(entries, start=5)]
    built.write_segment(tmp_path, 1, 5, records[:2])
    built.write_segment(tmp_path, 2, 7, records[2:])
    return tmp_path


def test_a_record_as_json(journal: Path) -> None:
    """The place of the record, its raft entry, the records of the engine."""
    row = aerotape("journal", "show", journal, 7, "--json").json
    assert list(row)[:4] == ["journal", "segment", "offset", "length"]
    assert (row["journal"], row["segment"]) == (built.NAME, f"{built.NAME}-2.log")
    content = (journal / row["segment"]).read_bytes()[row["offset"] :][: row["length"]]
    data = built.application(1, 2, engine(1) + engine(2, b"\xc1", 99), 3, 2)
    assert content == built.record(7, 1, data, 2)
    assert (row["index"], row["asqn"], row["term"], row["type"]) == (7, 1, 3, "APPLICATION")
    assert row["checksum"] == built.crc32c(content[21:])
    assert row["raft_record"] == data.hex()
    first, second = row["records"]
    assert first == {
        "position": 1, "source_position": None, "key": 7, "timestamp": 1_700_000_000_000,
        "processed": True, "record_type": "EVENT", "value_type": "JOB", "intent": "COMPLETED",
        "rejection_type": None, "rejection_reason": None, "broker_version": "8.3.4",
        "request_id": None, "request_stream_id": None,
        "value": {"type": "pay", "variables": {"a": 1}},
    }  # fmt: skip
    assert (second["value_type"], second["intent"], second["value"]) == ("99", "2", "c1")


def test_records_without_records_of_the_engine(journal: Path) -> None:
    """The other fields, and the data in hexadecimal."""
    initial, configuration, application, other = (
        aerotape("journal", "show", journal, index, "--json").json for index in (5, 6, 8, 9)
    )
    assert (initial["type"], initial["offset"]) == ("INITIAL", 57)
    assert configuration["old_members"] == [{"member_id": "0", "type": "ACTIVE", "updated": 5}]
    assert (application["records"], application["data"]) == (None, b"other".hex())
    assert (other["type"], other["raft_record"]) == (None, b"not a raft entry".hex())
    assert "records" not in initial and "records" not in other


def test_a_record_for_people(journal: Path) -> None:
    """A list of the record's fields, then one for each record of the engine."""
    lines = aerotape("journal", "show", journal, 7).out.splitlines()
    assert lines[0] == f"journal:      {built.NAME}"
    assert "record at position 1:" in lines and "record at position 2:" in lines
    assert 'value:             {"type": "pay", "variables": {"a": 1}}' in lines
    assert not any("raft_record" in line for line in lines)
    lines = aerotape("journal", "show", journal, 8).out.splitlines()
    assert lines[-1].split() == ["data:", b"other".hex()]


def test_without_msgpack_values_are_hexadecimal(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package is optional."""
    monkeypatch.setitem(sys.modules, "msgpack", None)
    row = aerotape("journal", "show", journal, 7, "--json").json
    assert row["records"][0]["value"] == VALUE.hex()


def test_an_index_that_is_not_there(journal: Path, tmp_path: Path) -> None:
    """The error names the first and the last one."""
    for index in (0, 4, 10, (1 << 63) - 1):
        error = aerotape("journal", "show", journal, index, expect=1).err
        assert f"has no record {index}: its records are 5 to 9" in error
        assert error.count("\n") == 1
    empty = tmp_path / "empty"
    empty.mkdir()
    built.write_segment(empty, 1, 20, [])
    error = aerotape("journal", "show", empty, 20, expect=1).err
    assert "has no record 20: it has no records, and the first will be 20" in error


def test_damage_before_the_record(journal: Path) -> None:
    """Only damage in the record's segment matters, and is exit code 3."""
    path = journal / f"{built.NAME}-1.log"
    content = bytearray(path.read_bytes())
    content[80] ^= 1
    path.write_bytes(content)
    assert aerotape("journal", "show", journal, 7, "--json").json["index"] == 7
    for index in (5, 6):
        done = aerotape("journal", "show", journal, index, expect=3)
        assert "record 5: " in done.err and "journal verify" in done.err and not done.out
