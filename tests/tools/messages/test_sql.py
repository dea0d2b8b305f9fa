"""`aerotape sql`: queries of an archive directory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording
from support.builders.sbe_text import schema_text
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import CommandLine, aerotape
from support.daemon.recording import recorded

import aerotape as package
from aerotape.catalog.file.catalog import Catalog

pytest.importorskip("duckdb")
# Prints the most memory that a query has taken, KiB.
MEASURED = r"""
import re, sys
from aerotape.tools._cli.main import main
query = "select count(octet_length(payload)) from messages(0)"
main(["sql", sys.argv[1], query, "--csv"])
# Not ru_maxrss: that of the process which was forked counts in it.
peak_kib = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
print(peak_kib, file=sys.stderr)
"""
FIRST = "select recording_id, position, length from messages(0)"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An archive directory with two recordings, of 1,500 and of 3 messages."""
    place = tmp_path / "archive"
    place.mkdir()
    for count in (1500, 3):
        builder = SegmentBuilder()
        for number in range(count):
            builder.message(b"%d" % number)
        add_recording(place, builder)
    return place


def rows(directory: Path, query: str, *options: object) -> list[dict[str, object]]:
    """Return what a query prints as JSON."""
    found = json.loads(aerotape("sql", directory, query, "--json", *options).out)
    assert isinstance(found, list)
    return found


def test_directory_without_recordings(tmp_path: Path) -> None:
    """The table has its columns without rows."""
    Catalog.open(tmp_path, create=True).close()
    assert rows(tmp_path, "select recording_id, original_channel from recordings") == []


def test_tables(directory: Path) -> None:
    """Recordings and messages, several scans of one recording, and a join of two."""
    assert rows(directory, "select recording_id, stop_position from recordings order by 1") == [
        {"recording_id": 0, "stop_position": 1500 * 64},
        {"recording_id": 1, "stop_position": 192},
    ]
    assert rows(directory, "select count(*) as n, max(position) as last from messages(0)") == [
        {"n": 1500, "last": 1499 * 64}
    ]
    query = (
        "select a.position, decode(b.payload) as text from Messages ( 0 ) a"
        " join messages(1) b using (position) join messages(0) c using (position) order by 1"
    )
    assert rows(directory, query) == [{"position": 64 * n, "text": str(n)} for n in range(3)]
    values = "select 1.25::decimal(4,2) as d, date '2026-11-26' as t, [payload] as p, null as n"
    assert rows(directory, f"{values} from messages(1) limit 1") == [
        {"d": "1.25", "t": "2026-11-26", "p": ["30"], "n": None}
    ]


def test_outputs(directory: Path) -> None:
    """A table of the first rows with a note, all rows as CSV."""
    shown = aerotape("sql", directory, FIRST)
    assert len(shown.out.splitlines()) == 1 + 1000
    assert shown.err == "these are the first 1000 rows; --json and --csv print all\n"
    written = aerotape("sql", directory, f"{FIRST} order by position", "--csv")
    assert written.err == ""
    assert written.out.splitlines()[:2] == ["recording_id,position,length", "0,0,1"]
    assert len(written.out.splitlines()) == 1 + 1500
    text = aerotape("sql", directory, "select payload, 'a,\"' as t from messages(1)", "--csv").out
    assert text.splitlines()[1] == '30,"a,"""'
    assert aerotape("sql", directory, f"{FIRST} where length > 9").out == ""


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("selct 1", "syntax error"),
        ("select * from messages(7)", "no recording with id 7"),
        ("select * from read_text('/etc/hostname')", "disabled by configuration"),
        ("select * from '/etc/hostname'", "does not exist"),
        ("copy (select 1) to '/tmp/aerotape-sql-test'", "disabled by configuration"),
        ("set enable_external_access = true", "configuration"),
        ("install httpfs", "disabled"),
        ("select * from args", "does not exist"),
    ],
)
def test_refused_queries(directory: Path, query: str, words: str) -> None:
    """One line on standard error; SQL reads and writes no file."""
    before = sorted(directory.iterdir())
    done = aerotape("sql", directory, query, expect=1)
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert words in done.err
    assert sorted(directory.iterdir()) == before
    assert not Path("/tmp/aerotape-sql-test").exists()


def test_refused_options(directory: Path, tmp_path: Path) -> None:
    """Contradicting outputs, no schema, no directory, damage."""
    both = aerotape("sql", directory, FIRST, "--csv", "--json", expect=2)
    assert "exclude each other" in both.err
    missing = aerotape("sql", directory, FIRST, "--schema", tmp_path / "none.xml", expect=None)
    assert (missing.code != 0, len(missing.err.splitlines())) == (True, 1)
    assert aerotape("sql", tmp_path / "none", FIRST, expect=1).err
    (segment,) = directory.glob("0-*.rec")
    data = bytearray(segment.read_bytes())
    data[64 * 700 + 1] = 0x7F  # of the frame length
    segment.write_bytes(data)
    damaged = aerotape("sql", directory, "select count(*) from messages(0)", expect=1).err
    assert "44800" in damaged


def test_typed_columns(tmp_path: Path) -> None:
    """With a schema, the fields of its messages are columns."""
    schema = tmp_path / "schema.xml"
    schema.write_text(
        schema_text(
            'package="p" id="1"',
            types="",
            messages='<sbe:message name="M" id="1"><field name="n" id="1" type="int32"/>'
            "</sbe:message>",
        )
    )
    place = tmp_path / "archive"
    place.mkdir()
    builder = SegmentBuilder()
    for number in range(5):
        builder.message(b"\x04\0\x01\0\x01\0\0\0" + number.to_bytes(4, "little"))
    add_recording(place, builder)
    query = "select sum(n) as n from messages(0)"
    found = rows(place, query, "--schema", schema, "--template", "M")
    assert found == [{"n": 10}]


def test_a_running_archive(cli: CommandLine, client: package.ArchiveClient) -> None:
    """The directory of an archive that runs, ours and Java's."""
    made = recorded(client, 30)
    query = f"select payload from messages({made.recording_id})"
    done = cli.run("sql", cli.archive.archive_dir, query, "--json")
    found = [bytes.fromhex(row["payload"]) for row in json.loads(done.stdout)]
    assert found == [payload for payload, *_ in made.sent]


def test_memory(tmp_path: Path) -> None:
    """Memory does not grow with the recording: 170 MB take at most 40 MB more than 42 MB."""
    peaks = []
    for count in (40_000, 160_000):
        directory = tmp_path / str(count)
        directory.mkdir()
        builder = SegmentBuilder(term_length=1 << 27, segment_length=1 << 27)
        for _ in range(count):
            builder.message(bytes(1000))
        add_recording(directory, builder)
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, directory],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=True,
        )
        peaks.append(int(done.stderr))
    assert peaks[1] - peaks[0] < 40_000, peaks
