"""Tables of recordings have no null in a column that is declared not to have one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.arrow_nulls import check_batch
from support.builders.built_archive import add_recording
from support.builders.orders import SCHEMA, cancel, foreign, some_orders
from support.builders.segment_builder import SegmentBuilder, crc32
from support.journals.raft_recording import record_into, records

from aerotape.replay.offline.columns.raft import RAFT_JOURNAL
from aerotape.replay.offline.directory import open_directory
from aerotape.replay.offline.read_mode import Mode
from aerotape.replay.offline.reader import COLUMNS

pytest.importorskip("pyarrow")

MODES: tuple[Mode, ...] = ("PERMISSIVE", "DROPMALFORMED")


def damaged(archive_dir: Path, payloads: list[bytes]) -> None:
    """Write a recording with a damaged frame."""
    builder = SegmentBuilder(checksum=crc32)
    for payload in payloads:
        builder.message(payload)
    add_recording(archive_dir, builder)
    victim = builder.messages[2].position
    path = builder.segment_path(archive_dir, victim)
    content = bytearray(path.read_bytes())
    content[victim - builder.segment_base(victim) + 33] ^= 1
    path.write_bytes(content)


def check(archive_dir: Path, **options: Any) -> None:
    """Check the tables of all modes that read on after damage."""
    for mode in MODES:
        recording = open_directory(archive_dir).recording(0)
        table = recording.to_arrow(mode=mode, checksum="crc-32", **options)
        assert table.num_rows > 3
        check_batch(table)


def test_messages_without_a_schema(tmp_path: Path) -> None:
    """Of a recording with a damaged frame, with all columns."""
    damaged(tmp_path, [b"message %d" % number for number in range(9)])
    check(tmp_path, columns=[*COLUMNS])
    check(tmp_path, columns=[*COLUMNS, "recorded_time"])


@pytest.mark.parametrize("template", [None, "Order"])
@pytest.mark.parametrize("others", ["drop", "null"])
def test_typed_columns(tmp_path: Path, template: str | None, others: str) -> None:
    """Of several templates with a set, malformed payloads and those of another schema."""
    (tmp_path / "orders.xml").write_text(SCHEMA)
    orders = [order.encode() for order in some_orders(6)]
    others_ = [cancel(1), foreign(), b"short", orders[0][:20]]
    damaged(tmp_path, [*orders, *others_])
    check(tmp_path, schema=tmp_path / "orders.xml", template=template, others=others)


def test_records_of_raft_journals(tmp_path: Path) -> None:
    """Of all types, and payloads that are none."""
    found = records(40)
    record_into(tmp_path, [*found, (41, -1, b"?"), (42, -1, b"")])
    for mode in MODES:
        recording = open_directory(tmp_path).recording(0)
        table = recording.to_arrow(payload=RAFT_JOURNAL, mode=mode)
        assert table.num_rows >= 40
        check_batch(table)
