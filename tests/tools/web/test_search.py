"""Messages that have a text: found a part at a time, and saved as files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from support import browser as browsers
from support.browser import complaints, text
from support.builders import built_archive
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.jvm.java import ROOT
from support.web import WebService

import aerotape
from aerotape.codecs.payload_encoder import PayloadEncoder
from aerotape.codecs.payloads import PayloadSchema
from aerotape.codecs.schema_files import load_schema
from aerotape.errors import ConfigurationError, SegmentError
from aerotape.replay.offline.selection import EVERYTHING, Selection
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.rest import reading as module
from aerotape.tools._web.rest.reading import Reading

needs_browser = pytest.mark.skipif(not browsers.IS_INSTALLED, reason="chromium is not installed")
MARKET = ROOT / "tests/demo/market-data.xml"
TRADE = {
    "sequence": 7,
    "eventTime": 1,
    "instrumentId": 3,
    "size": 100,
    "price": 12500,
    "remarks": "3c623e",
}
ROWS = "return [...document.querySelectorAll('.payload > div')].map(each => each.textContent)"
COUNT = 6_000


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    """A recording of 6,000 messages of 250 bytes, `<0>` to `<5999>`, in two segments."""
    builder = SegmentBuilder(segment_length=1 << 20)
    for number in range(COUNT):
        builder.message((b"<%d>" % number).ljust(250, b"."))
    built_archive.add_recording(tmp_path, builder)
    return tmp_path


def searched(reading: Reading, text: str, **options: Any) -> list[str]:
    """Return the payloads that searches find, each going on where the last one has ended."""
    found: list[str] = []
    position = options.pop("position", None)
    limit = options.pop("limit", 10)
    while True:
        selection = Selection(from_position=position, **options)
        part = reading.search(reading.opened(0), selection, text, limit, "text")
        found += [each["payload"].rstrip(".") for each in part.messages]
        assert part.from_position <= part.to_position <= part.end_position
        if part.to_position == part.end_position:
            return found
        assert part.to_position > part.from_position
        position = part.to_position


@pytest.mark.parametrize("seconds", [1.0, 0.0])
def test_all_are_found(
    numbered: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """Whatever a part searches: as many messages as fit, or as long as it may take."""
    monkeypatch.setattr(module, "_SEARCH_S", seconds)
    reading = Reading(ObservedArchive(numbered))
    wanted = [f"<{number}>" for number in range(COUNT) if "77" in str(number)]
    for limit in (1, 7, 1_000):
        assert searched(reading, "77", limit=limit) == wanted
    rows = list(reading.messages(reading.opened(0), EVERYTHING, 10_000, "text"))
    at = rows[3_000]["position"]
    begin = next(n for n, each in enumerate(wanted) if int(each[1:-1]) >= 3_000)
    assert searched(reading, "77", position=at) == wanted[begin:]
    assert searched(reading, "77", to_position=at) == wanted[:begin]
    assert searched(reading, "none") == []


def test_a_part_is_bounded(numbered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By bytes that are scanned, and by what an answer may have."""
    reading = Reading(ObservedArchive(numbered))
    monkeypatch.setattr(module, "_MAX_SCANNED", 1 << 18)
    part = reading.search(reading.opened(0), EVERYTHING, "none", 10, "text")
    assert (part.messages, part.to_position) == ([], 1 << 18)
    monkeypatch.setattr(module, "_MAX_FOUND", 5_000)
    part = reading.search(reading.opened(0), EVERYTHING, "<", 1_000, "text")
    assert 5_000 <= len(json.dumps(part.messages)) < 6_000


def test_fields_are_searched(tmp_path: Path) -> None:
    """As pages show them; bytes are, too, and messages without fields."""
    schema = load_schema(MARKET)
    builder = SegmentBuilder()
    builder.message(PayloadEncoder(schema, "Trade").encode(TRADE))
    builder.message(b'no "size": 100')
    built_archive.add_recording(tmp_path, builder)
    reading = Reading(ObservedArchive(tmp_path), {"market": PayloadSchema.from_file(MARKET)})

    def count(text: str, schema: str | None) -> int:
        return len(reading.search(reading.opened(0), EVERYTHING, text, 10, "text", schema).messages)

    assert count('"size": 100', "market") == 2
    assert count('"size": 100', None) == 1
    assert count('"size": 10,', "market") == 0
    assert count("<b>", None) == 1
    with pytest.raises(ConfigurationError, match="schema='x': unknown"):
        count("size", "x")


def test_damage_ends_a_part(numbered: Path) -> None:
    """What precedes it is found; a search that begins there says what is wrong."""
    (numbered / f"0-{1 << 20}.rec").unlink()
    reading = Reading(ObservedArchive(numbered))
    part = reading.search(reading.opened(0), EVERYTHING, "<1", 10_000, "text")
    assert part.to_position == 1 << 20
    assert len(part.messages) > 1_000
    with pytest.raises(SegmentError, match="No such file"):
        following = Selection(from_position=part.to_position)
        reading.search(reading.opened(0), following, "<1", 10, "text")


def test_files(numbered: Path, own: CommandLine) -> None:
    """JSON lines, CSV and Parquet have the selected messages."""
    recording = aerotape.open_directory(numbered).recording(0)
    with WebService(own, numbered) as web:

        def file(kind: str, query: str = "") -> Any:
            found = web.get(f"/api/v1/recordings/0/export?as={kind}{query}")
            assert found.status == 200, found.text
            return found

        some = "&position=1440&limit=3"
        rows = web.get("/api/v1/recordings/0/messages?position=1440&limit=3").json
        lines = file("jsonl", some)
        assert [json.loads(each) for each in lines.text.splitlines()] == rows
        name = 'attachment; filename="recording-0-1440.jsonl"'
        assert lines.headers["content-disposition"] == name
        table = list(csv.DictReader(io.StringIO(file("csv", some).text)))
        assert [each["payload"] for each in table] == [each["payload"] for each in rows]
        assert [int(each["position"]) for each in table] == [each["position"] for each in rows]
        parquet = pyarrow.parquet.read_table(io.BytesIO(file("parquet", some).body))
        end = rows[-1]["end_position"]
        assert parquet.equals(recording.to_arrow(1_440, end))
        # All of them fit into Parquet, not into the other files, whose rows are longer.
        assert pyarrow.parquet.read_table(io.BytesIO(file("parquet").body)).num_rows == COUNT
        last = [json.loads(each) for each in file("jsonl", "&last=2").text.splitlines()]
        assert [each["payload"].rstrip(".") for each in last] == ["<5998>", "<5999>"]
        assert file("csv", f"&position={1 << 40}").text == ""
        assert web.get("/api/v1/recordings/0/export?as=xls").status == 400


def test_what_a_payload_has_is_a_field_of_csv(tmp_path: Path, own: CommandLine) -> None:
    """Quotes and line ends of payloads, control characters, and what would be a formula."""
    payloads = [b'a,"b"\r\nc', b"\x1b[2J\0", "é\u202e".encode(), b"=1+1", b"-2+3", b"-2.5", b"@a"]
    builder = SegmentBuilder()
    for payload in payloads:
        builder.message(payload)
    built_archive.add_recording(tmp_path, builder)
    with WebService(own, tmp_path) as web:
        content = web.get("/api/v1/recordings/0/export?as=csv").text
    assert [each["payload"] for each in csv.DictReader(io.StringIO(content))] == [
        'a,"b"\\r\\nc',
        "\\x1b[2J\\x00",
        "é\\u202e",
        "'=1+1",
        "'-2+3",
        "-2.5",
        "'@a",
    ]


@needs_browser
def test_a_search_on_the_page(numbered: Path, own: CommandLine, page: Any) -> None:
    """It goes on until enough is found, and when asked; its end is said; a link has it."""
    with WebService(own, numbered) as web:
        page.get(f"{web.url}recordings/0?text=%3C1")

        def shown() -> list[str]:
            return [each.rstrip(".") for each in page.execute_script(ROWS)]

        wanted = [f"<{number}>" for number in range(COUNT) if str(number).startswith("1")]
        # Each part of a search takes a second at most, and may have found fewer.
        await_true(lambda: shown() == wanted[:50] and text(page, "#search") == "Go on")
        page.execute_script("document.getElementById('search').click()")
        await_true(lambda: shown() == wanted[:250])
        page.get(f"{web.url}recordings/0?text=%3C599")
        await_true(lambda: "searched, 11 found" in text(page, "#searched"))
        assert page.execute_script("return document.getElementById('search').hidden")
        links = page.execute_script(
            "return [...document.querySelectorAll('.files a')].map(each => each.href)"
        )
        assert len(links) == 3
        assert complaints(page) == []
