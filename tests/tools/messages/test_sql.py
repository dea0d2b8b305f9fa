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
        ("select * from messages('x')", "expected the id of a recording"),
        ("select '\udcff' -- expected", "is not UTF-8"),
        ("select case when range = 5 then error('boom') end from range(9)", "boom"),
    ],
)
def test_refused_queries(directory: Path, query: str, words: str) -> None:
    """One line on standard error; SQL reads and writes no file."""
    before = sorted(directory.iterdir())
    done = aerotape("sql", directory, query, expect=None)
    assert done.code == (2 if "expected" in query + words else 1)
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert words in done.err
    assert "Traceback" not in done.err
    assert sorted(directory.iterdir()) == before
    assert not Path("/tmp/aerotape-sql-test").exists()


@pytest.mark.parametrize("query", ["", "-- nothing", "select 1; select 2", "select ';';;select 2"])
def test_one_statement(directory: Path, query: str) -> None:
    """No statement and several are refused, and none of them runs."""
    done = aerotape("sql", directory, query, expect=2)
    assert (done.out, "expected one statement" in done.err) == ("", True)


@pytest.mark.parametrize("query", ["select ';' as a;", "/* ;é */ select ';' as a ; ; -- ;"])
def test_semicolons(directory: Path, query: str) -> None:
    """At the end, in text and in comments they are no further statement."""
    assert rows(directory, query) == [{"a": ";"}]


def test_messages_is_a_table_only_where_sql_reads_one(directory: Path) -> None:
    """In comments and texts it is not; in a view of the query and with any expression it is."""
    assert rows(directory, "select 'messages(99)' as a -- messages(99)") == [{"a": "messages(99)"}]
    assert rows(directory, "select count(*) as n from /* (9) */ messages /* 9 */ ( 2 - 1 )") == [
        {"n": 3}
    ]
    assert rows(directory, "with m as (from MESSAGES(1)) select count(*) as n from m") == [{"n": 3}]


def test_columns_of_one_name(directory: Path) -> None:
    """Each has its value: in tables, in CSV, and in JSON, where the second one is a_1."""
    query = "select 1 as a, 2 as a, 3 as a_1, 4 as a"
    assert aerotape("sql", directory, query).out.split() == ["a", "a", "a_1", "a", *"1234"]
    assert aerotape("sql", directory, query, "--csv").out == "a,a,a_1,a\n1,2,3,4\n"
    assert rows(directory, query) == [{"a": 1, "a_2": 2, "a_1": 3, "a_3": 4}]
    joined = rows(directory, "select * from messages(0) m join messages(1) n using (position)")
    assert len(joined[0]) == 2 * 11 - 1
    assert (joined[0]["recording_id"], joined[0]["recording_id_1"]) == (0, 1)


VALUES = {
    "'nan'::double": "NaN",
    "['inf'::float, -'inf'::float, 0.1::float, null]": ["Infinity", "-Infinity", 0.1, None],
    "{'a b': 'nan'::float, 'c\"d': {'e': [date '10000-01-01']}}": {
        "a b": "NaN",
        'c"d': {"e": ["10000-01-01"]},
    },
    "map {'nan'::double: {'x': 'inf'::double}}": {"nan": {"x": "Infinity"}},
    "make_timestamp(9223372036854775806)": "294247-01-10 04:00:54.775806",
    "'infinity'::timestamp": "infinity",
    "'-infinity'::timestamptz": "-infinity",
    "timestamptz '2026-01-02 03:04:05+02'": "2026-01-02 01:04:05+00",
    "timestamp_ns '2026-01-02 03:04:05.123456789'": "2026-01-02 03:04:05.123456789",
    "date '0044-03-15 (BC)'": "0044-03-15 (BC)",
    "'01:02:03+04:30'::timetz": "01:02:03+04:30",
    "time '24:00:00'": "24:00:00",
    "interval '1 month 2 days 3 seconds'": "1 month 2 days 00:00:03",
    "(-170141183460469231731687303715884105728)::hugeint": -(1 << 127),
    "340282366920938463463374607431768211455::uhugeint": (1 << 128) - 1,
    "18446744073709551615::ubigint": (1 << 64) - 1,
    "1.50::decimal(10, 2)": "1.50",
    "sum(1)": 1,
    "('1' || repeat('0', 30))::decimal(38, 0)": 10**30,
    "'00112233-4455-6677-8899-aabbccddeeff'::uuid": "00112233-4455-6677-8899-aabbccddeeff",
    "'0101'::bit": "0101",
    "blob '\\x00\\xFFa'": "00ff61",
    "[blob 'a', null]": ["61", None],
    "row(1, 'nan'::double)": "(1, nan)",
    "union_value(k := date '10000-01-01')": "10000-01-01",
    "'x'::enum('x', 'y')": "x",
    "array_value(1::utinyint, 255)": [1, 255],
    "chr(0) || chr(8238) || chr(128077)": "\0\u202e\U0001f44d",
    "'{\"n\": NaN}'": '{"n": NaN}',
    "true": True,
    "null": None,
}


def test_values(directory: Path) -> None:
    """JSON is valid and has what DuckDB has, also where Python's types cannot hold it."""
    query = f"select {', '.join(VALUES)} from range(1)"
    (found,) = json.loads(
        aerotape("sql", directory, query, "--json").out,
        parse_constant=lambda name: pytest.fail(name),
    )
    assert dict(zip(VALUES, found.values(), strict=True)) == VALUES


def test_all_types_of_duckdb(directory: Path) -> None:
    """The least and the greatest value of each type are printed in each format."""
    query = "from test_all_types()"
    found = json.loads(
        aerotape("sql", directory, query, "--json").out,
        parse_constant=lambda name: pytest.fail(name),
    )
    assert [len(row) for row in found] == [len(found[0])] * 3
    assert set(found[2].values()) == {None}
    assert len(aerotape("sql", directory, query).out.splitlines()) == 1 + 3
    assert aerotape("sql", directory, query, "--csv").out.splitlines()[3].strip(",") == ""


def test_csv_tells_null_from_empty_text(directory: Path) -> None:
    """Null is an empty field, empty text is in quotes, as is text with commas and line ends."""
    query = "select null as a, '' as b, 'c,d' as c, e'e\nf' as d, true as e, 'nan'::float as f"
    text = 'a,b,c,d,e,f\n,"","c,d","e\nf",true,nan\n'
    assert aerotape("sql", directory, query, "--csv").out == text


def test_an_error_in_the_middle(directory: Path) -> None:
    """What precedes it may be printed; the error is one line."""
    query = "select case when range = 900000 then error('boom') end from range(1000000)"
    done = aerotape("sql", directory, query, "--csv", expect=1)
    assert done.err == "aerotape sql: DuckDB: Invalid Input Error: boom\n"


def test_optional_columns(directory: Path) -> None:
    """`recorded_time` and the scope can be selected, and are read only then."""
    query = (
        "select recorded_time, m.scope_id from messages(1) m where recorded_time is null limit 1"
    )
    assert rows(directory, query) == [{"recorded_time": None, "scope_id": 0}]
    assert "recorded_time" not in rows(directory, "from messages(1) limit 1")[0]
    refused = aerotape("sql", directory, "select nothing from messages(1)", expect=1)
    assert 'column "nothing" not found' in refused.err


@pytest.mark.parametrize(
    "query",
    [
        "from read_text('.tmp/secret')",
        "from read_blob('.tmp/*')",
        "from glob('.tmp/*')",
        "from read_csv('.tmp/secret')",
        "from sniff_csv('.tmp/secret')",
        "from '.tmp/secret.csv'",
        "from query('from read_text(''.tmp/secret'')')",
        "from query_table(['.tmp/secret.csv'])",
        "copy (select 1) to '.tmp/written'",
        "copy (select 1) to '/dev/stdout'",
        "export database '.tmp/written'",
        "import database '.tmp'",
        "attach '.tmp/written'",
        "set temp_directory = '.tmp'",
        "pragma temp_directory = '.tmp'",
        "reset temp_directory",
        "set log_query_path = '.tmp/written'",
        "pragma profile_output = '.tmp/written'",
        "call enable_logging(storage = 'file', storage_config = {'path': '.tmp/written'})",
        "call enable_profiling(save_location = '.tmp/written')",
        "from 'http://127.0.0.1:9/secret.csv'",
        "load '.tmp/secret'",
        "load httpfs",
        "install json",
    ],
)
def test_no_files(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """SQL reads and writes no file, those in DuckDB's directory for temporary ones included."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".tmp").mkdir()
    for name in ("secret", "secret.csv", "schema.sql"):
        (tmp_path / ".tmp" / name).write_text("secret")
    before = sorted(tmp_path.rglob("*"))
    done = aerotape("sql", directory, query, expect=1)
    assert (done.out, len(done.err.splitlines())) == ("", 1)
    assert sorted(tmp_path.rglob("*")) == before


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
    assert "Traceback" not in damaged


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
