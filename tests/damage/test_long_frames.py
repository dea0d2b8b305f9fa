"""A data frame whose damaged length is near that of a term of 1 GiB."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.file.catalog import Catalog

GIB = 1 << 30
MIB = 1 << 20

MEASURED = r"""
import re, sys
from aerotape.replay.offline.directory import open_directory
from aerotape.errors import SegmentError

def recording():
    return open_directory(sys.argv[2]).recording(0)

def tool(*arguments):
    from aerotape.tools._cli.main import main
    print("exit code", main(["tool", sys.argv[2], *arguments]))

def messages(): print(*(m.payload for m in recording().messages()))
def to_arrow(): print(recording().to_arrow().num_rows)
def spark():
    from aerotape.spark.source.batch_reader import BatchReader
    from aerotape.spark.source.options import ReadOptions
    from aerotape.spark.source.table_schema import table_schema
    options = ReadOptions.parse({"path": sys.argv[2]})
    reader = BatchReader(options, table_schema(options))
    for part in reader.partitions():
        print(sum(batch.num_rows for batch in reader.read(part)))
def dump(): tool("dump")
def verify(): tool("verify")
def checksum(): tool("checksum", "crc-32", "0", "-a")
def stats(): tool("stats", "0")
def refresh():
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.recovery.refresh import refresh
    with Catalog.open(sys.argv[2]) as catalog:
        catalog.set_end_in_any_state(0, -1, -1)
        [outcome] = refresh(catalog, sys.argv[2], now_ms=1)
    assert outcome.stop_position == 128, outcome
    assert outcome.findings[0].quarantine.stat().st_size > 64
    print(outcome)

try:
    globals()[sys.argv[1]]()
except SegmentError as error:
    print(error)
peak_kib = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
print("peak", peak_kib * 1024)
"""


TOO_LONG = f"data frame length {GIB - 4096} is more than the MTU of 1408"


def build(directory: Path) -> None:
    """Write a recording of four messages; the length of the third one's frame is damaged."""
    builder = SegmentBuilder(term_length=GIB, segment_length=GIB)
    for payload in (b"first", b"second", b"third", b"fourth"):
        builder.message(payload)
    third = sorted(builder.frames)[2]
    builder.frames[third] = (GIB - 4096).to_bytes(4, "little") + builder.frames[third][4:]
    with (directory / "0-0.rec").open("wb") as file:
        file.truncate(GIB)
        for position, data in builder.frames.items():
            os.pwrite(file.fileno(), data, position)
    with Catalog.open(directory, create=True) as catalog:
        # The damaged length stays within the recording.
        add_entry(catalog, builder, stop_position=GIB - 64, stop_timestamp_ms=2)


@pytest.mark.parametrize(
    ("reader", "expected"),
    [
        ("messages", TOO_LONG),
        ("to_arrow", TOO_LONG),
        ("spark", TOO_LONG),
        ("dump", f"a frame cannot have {GIB - 4096} bytes at position 128"),
        ("verify", TOO_LONG),
        ("checksum", f"a frame of {GIB - 4096} bytes cannot be there"),
        ("stats", "messages:  3,"),
        ("refresh", TOO_LONG),
    ],
)
def test_a_data_frame_longer_than_the_mtu_is_damage(
    tmp_path: Path, reader: str, expected: str
) -> None:
    """Each reader reports it, or reads on after it, in much less memory than its length."""
    build(tmp_path)
    command = [sys.executable, "-c", MEASURED, reader, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout + done.stderr
    assert int(done.stdout.split()[-1]) < 400 * MIB
