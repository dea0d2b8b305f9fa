"""The options by which the service decodes fields: in REST, on pages and in files alike."""

from __future__ import annotations

import html
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from support.builders import built_archive
from support.builders.sbe_text import schema_text
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import CommandLine, aerotape
from support.jvm.java import ROOT
from support.selections import TEXTS
from support.web import WebService

from aerotape.codecs.payload_encoder import PayloadEncoder
from aerotape.codecs.schema_files import load_schema
from aerotape.codecs.schema_options import with_options
from aerotape.errors import ConfigurationError
from aerotape.replay.offline.selection import parse_texts
from aerotape.tools._cli.selecting import OF_DECODING
from aerotape.tools._web.schemas import schema_selections

MARKET = ROOT / "tests/demo/market-data.xml"
VENUES = schema_text(
    'package="venues" id="8" version="0"',
    types='<type name="Name" primitiveType="char" length="4"/>'
    '<enum name="State" encodingType="uint8"><validValue name="OPEN">1</validValue></enum>',
    messages='<sbe:message name="Venue" id="1"><field name="opened" id="1" type="uint32"/>'
    '<field name="name" id="2" type="Name"/><field name="state" id="3" type="State"/>'
    "</sbe:message>",
)
TRADE = {
    "sequence": 7,
    "eventTime": 1_700_000_000_123_456_789,
    "instrumentId": 3,
    "size": 100,
    "price": 12500,
    "remarks": "",
}
EVENT_TIME, OPENED = "2023-11-14T22:13:20.123456789Z", "2023-11-14T22:13:20.000000Z"
STATED = ("--timestamps", "eventTime=ns,opened=s", "--text-encoding", "iso-8859-1")


@pytest.fixture
def venues(tmp_path: Path) -> Path:
    """The schema of a text without an encoding."""
    path = tmp_path / "venues.xml"
    path.write_text(VENUES)
    return path


@pytest.fixture
def archive(venues: Path, tmp_path: Path) -> Path:
    """A directory with a message of each schema."""
    builder = SegmentBuilder()
    builder.message(PayloadEncoder(load_schema(MARKET), "Trade").encode(TRADE))
    latin = with_options(load_schema(venues), None, "iso-8859-1")
    venue = {"opened": 1_700_000_000, "name": "café", "state": "OPEN"}
    builder.message(PayloadEncoder(latin, "Venue").encode(venue))
    directory = tmp_path / "archive"
    directory.mkdir()
    built_archive.add_recording(directory, builder)
    return directory


@pytest.fixture
def web(own: CommandLine, archive: Path, venues: Path) -> Iterator[WebService]:
    """The service with both schemas, and what is stated of them."""
    options = ("--schema", MARKET, "--schema", venues, *STATED, "--enums", "number")
    with WebService(own, archive, *options) as service:
        yield service


def fields_of(web: WebService, schema: str) -> list[dict[str, Any]]:
    """Return the fields of the messages that are of a schema."""
    rows = web.get(f"/api/v1/recordings/0/messages?schema={schema}").json
    return [each["fields"] for each in rows if each["fields"] is not None]


def test_rest_and_pages(web: WebService) -> None:
    """Each schema has its own timestamps."""
    [trade] = fields_of(web, "market-data")
    assert trade["Trade"]["eventTime"] == EVENT_TIME
    [venue] = fields_of(web, "venues")
    assert venue["Venue"] == {"opened": OPENED, "name": "café", "state": 1}
    found = web.get(f"/api/v1/recordings/0/search?schema=venues&text={OPENED}").json
    assert [each["fields"] for each in found["messages"]] == [venue]
    shown = html.unescape(web.get("/recordings/0?schema=venues").text)
    assert f'"opened": "{OPENED}", "name": "café"' in shown


def test_files(web: WebService) -> None:
    """The links of a page lead to files with the fields that it shows."""
    shown = html.unescape(web.get("/recordings/0?schema=market-data").text)
    links = [part.partition('"')[0] for part in shown.split('href="') if "/export?" in part]
    files = {link.partition("as=")[2].partition("&")[0]: web.get(link).body for link in links}
    assert set(files) == {"jsonl", "csv", "parquet"}
    first, second = (json.loads(line) for line in files["jsonl"].decode().splitlines())
    assert (first["fields"]["Trade"]["eventTime"], second["fields"]) == (EVENT_TIME, None)
    assert EVENT_TIME in files["csv"].decode()
    table = pyarrow.parquet.read_table(io.BytesIO(files["parquet"]))
    kind = table.schema.field("Trade").type.field("eventTime").type
    assert kind == pyarrow.timestamp("ns", tz="UTC")


def test_without_them_a_field_is_a_number(own: CommandLine, archive: Path, venues: Path) -> None:
    """As `cat` prints it."""
    with WebService(own, archive, "--schema", venues) as web:
        [venue] = fields_of(web, "venues")
        printed = own.run("cat", archive, "0", "--schema", venues, "--template", "Venue").stdout
        assert venue["Venue"] == json.loads(printed)
        assert venue["Venue"]["opened"] == 1_700_000_000
        assert venue["Venue"]["name"] != "café"


def test_what_is_refused(archive: Path, venues: Path) -> None:
    """When the service starts: a field that no schema has, options without a schema, two schemas of
    the same name."""

    def error(*options: object) -> str:
        return aerotape("web", archive, "--http", 0, *options, expect=2).err

    both = ("--schema", MARKET, "--schema", venues)
    for schemas in (both, both[:2]):
        refused = error(*schemas, "--timestamps", "eventtime=ns")
        assert "no integer field 'eventtime'" in refused and "eventTime" in refused
    assert "opened=d: the unit is not one of" in error(*both, "--timestamps", "opened=d")
    for name in OF_DECODING:
        option = f"--{name.replace('_', '-')}"
        refused = error(option, TEXTS[name])
        assert f"{option} is of a schema: give --schema too" in refused
    other = venues.parent / "others" / venues.name
    other.parent.mkdir()
    other.write_text(VENUES)
    refused = error(*both, "--schema", other)
    assert f"--schema {venues} and --schema {other} would both be known as 'venues'" in refused


@pytest.mark.parametrize("name", OF_DECODING)
def test_each_option_is_passed_on(name: str, venues: Path) -> None:
    values = parse_texts({name: "opened=s" if name == "timestamps" else TEXTS[name]}, str)
    [selection] = schema_selections([venues], values)
    assert getattr(selection, name) == values[name]
    for each in schema_selections([venues, MARKET], values):
        wanted = values[name] if name != "timestamps" or each.schema == venues else {}
        assert getattr(each, name) == wanted


def test_nothing_is_stated_of_no_schema() -> None:
    assert schema_selections([], {}) == []
    with pytest.raises(ConfigurationError, match="--enums is of a schema"):
        schema_selections([], {"enums": "number"})
