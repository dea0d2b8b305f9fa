"""What a user states of a schema: fields that are timestamps, and the encoding of texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.builders.built_archive import add_recording
from support.builders.sbe_text import schema_text, var_data
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import aerotape

import aerotape as package
from aerotape.codecs.payload_encoder import PayloadEncoder
from aerotape.codecs.payload_values import json_rows
from aerotape.codecs.payloads import PayloadSchema
from aerotape.codecs.schema_files import load_schema
from aerotape.codecs.schema_options import with_options
from aerotape.errors import ConfigurationError

NS = 1_700_000_000_123_456_789
SCHEMA = schema_text(
    'package="iLink" id="8" version="0"',
    types=var_data("ascii", "uint8", "US-ASCII")
    + """\
    <type name="uInt64NULL" primitiveType="uint64" presence="optional"/>
    <type name="Name" primitiveType="char" length="4"/>
    <type name="Utf8" primitiveType="char" length="4" characterEncoding="UTF-8"/>
    <composite name="Sent"><type name="at" primitiveType="int64"/>
      <type name="by" primitiveType="uint8"/></composite>""",
    messages="""\
  <sbe:message name="Order" id="1">
    <field name="SendingTimeEpoch" id="5297" type="uint64"/>
    <field name="Received" id="1" type="uInt64NULL" semanticType="int"/>
    <field name="Seconds" id="2" type="uint32"/>
    <field name="sent" id="3" type="Sent"/>
    <field name="name" id="4" type="Name"/>
    <field name="utf8" id="5" type="Utf8"/>
    <field name="Side" id="6" type="uint8"/>
    <group name="fills" id="7" dimensionType="groupSizeEncoding">
      <field name="Seconds" id="8" type="uint32"/>
      <data name="note" id="9" type="ascii"/>
    </group>
  </sbe:message>""",
)
TIMES = {"SendingTimeEpoch": "ns", "Received": "us", "Seconds": "s", "at": "ms"}
WIRE: dict[str, Any] = {
    "SendingTimeEpoch": NS, "Received": None, "Seconds": 1_700_000_000,
    "sent": {"at": 1_700_000_000_123, "by": 4}, "name": "caf\xe9", "utf8": "\xe9", "Side": 1,
    "fills": [{"Seconds": 1, "note": "na\xefve"}],
}  # fmt: skip


@pytest.fixture
def xml(tmp_path: Path) -> Path:
    path = tmp_path / "ilink.xml"
    path.write_text(SCHEMA)
    return path


def encoder(xml: Path, **options: Any) -> PayloadEncoder:
    schema = with_options(load_schema(xml), options.get("timestamps"), options.get("text_encoding"))
    return PayloadEncoder(schema, "Order")


def test_timestamps(xml: Path) -> None:
    """Fields of the message, of a group and of a composite; nulls; the encoder takes the same."""
    payload = encoder(xml, text_encoding="iso-8859-1").encode(WIRE)
    schema = PayloadSchema.from_file(xml, "Order", timestamps=TIMES, text_encoding="iso-8859-1")
    [row] = json_rows(schema.decode_payloads(pa.array([payload], pa.binary())))
    assert row == {
        "SendingTimeEpoch": "2023-11-14T22:13:20.123456789Z",
        "Received": None,
        "Seconds": "2023-11-14T22:13:20.000000Z",
        "sent": {"at": "2023-11-14T22:13:20.123000Z", "by": 4},
        "name": "caf\xe9",
        "utf8": "\xe9",
        "Side": 1,
        "fills": [{"Seconds": "1970-01-01T00:00:01.000000Z", "note": "na\xefve"}],
    }
    both = encoder(xml, timestamps=TIMES, text_encoding="iso-8859-1")
    assert both.encode(row) == payload
    wire = PayloadSchema.from_file(xml, "Order", timestamps=TIMES, types="wire")
    assert wire.arrow_schema.field("Seconds").type == pa.int64()


@pytest.mark.parametrize(
    ("text_encoding", "name", "note"),
    [
        (None, r"caf\xe9", r"na\xefve"),
        ("utf-8", r"caf\xe9", r"na\xefve"),
        ("iso-8859-1", "caf\xe9", "na\xefve"),
        ("bytes", b"caf\xe9", b"na\xefve"),
    ],
)
def test_encodings(xml: Path, text_encoding: str | None, name: object, note: object) -> None:
    """Of texts that have none, or US-ASCII; the schema's UTF-8 is followed."""
    payload = encoder(xml, text_encoding="iso-8859-1").encode(WIRE)
    schema = PayloadSchema.from_file(xml, "Order", text_encoding=text_encoding)
    [row] = schema.decode_payloads(pa.array([payload], pa.binary())).to_pylist()
    assert (row["name"], row["fills"][0]["note"], row["utf8"]) == (name, note, "\xe9")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"timestamps": {"SendingTime": "ns"}}, "'SendingTime' .*do you mean SendingTimeEpoch"),
        ({"timestamps": {"Side": "ns"}}, "no integer field 'Side' of 4 or 8 bytes"),
        ({"timestamps": {"Seconds": "m"}}, "Seconds=m: the unit is not one of s, ms, us, ns"),
        ({"text_encoding": "cp1252"}, "'cp1252' is not one of utf-8, iso-8859-1, bytes"),
    ],
)
def test_what_is_refused(xml: Path, options: dict[str, Any], problem: str) -> None:
    """By the name of the option."""
    with pytest.raises(ConfigurationError, match=problem) as caught:
        PayloadSchema.from_file(xml, **options)
    assert caught.value.name == next(iter(options))


def test_surfaces(xml: Path, tmp_path: Path) -> None:
    """Python, `cat`, SQL and Polars have the same columns."""
    polars = pytest.importorskip("polars")
    pytest.importorskip("duckdb")
    builder = SegmentBuilder()
    builder.message(encoder(xml, text_encoding="iso-8859-1").encode(WIRE))
    (tmp_path / "archive").mkdir()
    add_recording(tmp_path / "archive", builder)
    given: dict[str, Any] = {"schema": xml, "template": "Order", "text_encoding": "iso-8859-1"}
    given |= {"timestamps": {"SendingTimeEpoch": "ns", "at": "ms"}}
    recording = package.open_directory(tmp_path / "archive").recording(0)
    table = recording.to_arrow(**given)
    assert table.column("SendingTimeEpoch")[0].value == NS
    frame = package.scan_polars(tmp_path / "archive", **given)
    assert frame.collect_schema()["SendingTimeEpoch"] == polars.Datetime("ns", "UTC")
    options = [
        "--schema", xml, "--template", "Order", "--text-encoding", "iso-8859-1",
        "--timestamps", "SendingTimeEpoch=ns,at=ms",
    ]  # fmt: skip
    done = aerotape("cat", tmp_path / "archive", 0, *options)
    assert '"SendingTimeEpoch": "2023-11-14T22:13:20.123456789Z"' in done.out
    query = "select name, sent.at from messages(0)"
    done = aerotape("sql", tmp_path / "archive", query, "--csv", *options)
    assert done.out.splitlines()[1] == "caf\xe9,2023-11-14 22:13:20.123+00"
    wrong = ("--schema", xml, "--timestamps", "sendingtimeepoch=ns")
    done = aerotape("cat", tmp_path / "archive", 0, *wrong, expect=2)
    assert "do you mean SendingTimeEpoch?" in done.err
