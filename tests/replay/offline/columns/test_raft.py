"""Typed columns of recordings of raft journals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording
from support.builders.segment_builder import SegmentBuilder
from support.journals.raft_bytes import application, configuration, initial
from support.journals.raft_recording import record_into, records

from aerotape.codecs.raft.entries import ApplicationEntry, ConfigurationEntry, decode_entry
from aerotape.codecs.raft.record import decode_record, encode_record
from aerotape.errors import CodecError
from aerotape.replay.offline.columns.raft import RAFT_JOURNAL
from aerotape.replay.offline.directory import open_directory

pytest.importorskip("pyarrow")

COLUMNS = [
    "term", "index", "asqn", "type", "lowest_asqn", "highest_asqn", "checksum_ok", "members", "data"
]  # fmt: skip
NOTHING: dict[str, Any] = dict.fromkeys(COLUMNS)


def rows(directory: Path, **options: Any) -> list[dict[str, Any]]:
    options = {"columns": COLUMNS, **options}
    table = open_directory(directory).recording(0).to_arrow(payload=RAFT_JOURNAL, **options)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def expected(record: bytes) -> dict[str, Any]:
    """The row of a record, by the codec for single records."""
    decoded = decode_record(record)
    assert decoded is not None
    entry = decode_entry(decoded.data)
    row = NOTHING | {
        "term": entry.term,
        "index": decoded.index,
        "asqn": decoded.asqn,
        "type": "INITIAL",
        "checksum_ok": True,
    }
    if isinstance(entry, ApplicationEntry):
        row |= {
            "type": "APPLICATION",
            "lowest_asqn": entry.lowest_asqn,
            "highest_asqn": entry.highest_asqn,
            "data": entry.data,
        }
    elif isinstance(entry, ConfigurationEntry):
        row["type"] = "CONFIGURATION"
        row["members"] = [
            {"member_id": each.member_id, "type": each.type.name, "updated": each.updated_ms}
            for each in entry.members
        ]
    return row


def test_columns_are_those_of_the_codec(tmp_path: Path) -> None:
    """The native decoder and the codec for single records agree."""
    found = records(500, seed=3)
    record_into(tmp_path, found)
    assert rows(tmp_path) == [expected(record) for _, _, record in found]


def test_columns_beside_those_of_messages(tmp_path: Path) -> None:
    """Without a choice, the message's columns come first, and the record itself is left out."""
    built = record_into(tmp_path, records(50))
    recording = open_directory(tmp_path).recording(0)
    table = recording.to_arrow(payload=RAFT_JOURNAL)
    assert table.column_names[-len(COLUMNS) :] == COLUMNS
    assert "payload" not in table.column_names
    assert table["position"].to_pylist() == [each.position for each in built]
    some = recording.to_arrow(payload="Raft-Journal", columns=["index", "payload", "position"])
    assert some["payload"].to_pylist() == [each.payload for each in built]
    from_index = recording.to_arrow(payload=RAFT_JOURNAL, columns=["index"], from_index=40)
    assert from_index["index"].to_pylist() == list(range(40, 51))


def test_a_wrong_checksum_is_a_column(tmp_path: Path) -> None:
    """What such a record holds is not read."""
    found = records(20)
    index, asqn, record = found[7]
    found[7] = (index, asqn, record[:-1] + bytes([record[-1] ^ 4]))
    record_into(tmp_path, found)
    table = rows(tmp_path)
    assert table[7] == NOTHING | {"checksum_ok": False}
    assert [row["checksum_ok"] for row in table].count(True) == 19


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (b"", "frame is 0"),
        (b"\2" + bytes(70), "the version is 2"),
        (encode_record(1, -1, initial(1)) + b"\0", "1 bytes follow the record"),
        (encode_record(1, -1, initial(1 << 63)), "term 9223372036854775808 is more than"),
    ],
)
def test_payloads_that_are_no_records(tmp_path: Path, payload: bytes, problem: str) -> None:
    """The read mode decides, as for payloads that do not match a schema."""
    builder = SegmentBuilder()
    good = encode_record(1, -1, initial(1))
    for each in (good, payload, good):
        builder.message(each)
    add_recording(tmp_path, builder)
    with pytest.raises(CodecError, match=rf"recording 0, position 128: .*{problem}"):
        rows(tmp_path)
    assert rows(tmp_path, mode="DROPMALFORMED") == [expected(good)] * 2
    permissive = rows(tmp_path, mode="PERMISSIVE", columns=[*COLUMNS, "_corrupt"])
    corrupt = [row.pop("_corrupt") for row in permissive]
    assert permissive == [expected(good), NOTHING, expected(good)]
    assert [text is None for text in corrupt] == [True, False, True]
    assert problem in corrupt[1]


def test_data_that_is_no_raft_entry(tmp_path: Path) -> None:
    """The record has a row; what cannot be decoded is null, as in the list of a journal."""
    cut = configuration(2, [(1, 2, "näher".encode())], [], term=3, version=2)[:-4]
    blobs = [b"no raft entry", application(5, 6, b"abc")[:-1], cut]
    found = [(n, -1, encode_record(n, -1, blob)) for n, blob in enumerate(blobs, 1)]
    record_into(tmp_path, found)
    entry = [{}, {}, {"term": 3, "type": "CONFIGURATION"}]
    assert rows(tmp_path) == [
        NOTHING | {"index": n, "asqn": -1, "checksum_ok": True} | entry[n - 1] for n in (1, 2, 3)
    ]
