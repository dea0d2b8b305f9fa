"""Texts with bytes that are not characters, and names that differ in case only."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.builders.built_archive import add_recording
from support.builders.sbe_text import schema_text, var_data
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import aerotape

from aerotape.codecs.payload_encoder import PayloadEncoder
from aerotape.codecs.payloads import PayloadSchema
from aerotape.codecs.schema_files import load_schema
from aerotape.formatting import utf8_text
from aerotape.replay.offline.directory import open_directory

SCHEMA = schema_text(
    'package="texts" id="5" version="0"',
    types=var_data("text", "uint8", "UTF-8")
    + """\
    <type name="Ascii" primitiveType="char" length="6"/>
    <type name="Latin" primitiveType="char" length="6" characterEncoding="ISO-8859-1"/>
    <composite name="Point"><type name="X" primitiveType="int8"/>
      <type name="x" primitiveType="int8"/></composite>
    <set name="Bits" encodingType="uint8"><choice name="on">0</choice><choice name="ON">1</choice>
    </set>""",
    messages="""\
  <sbe:message name="Text" id="1">
    <field name="symbol" id="1" type="Ascii"/>
    <field name="Symbol" id="2" type="Latin"/>
    <field name="point" id="3" type="Point"/>
    <field name="bits" id="4" type="Bits"/>
    <group name="Note" id="5" dimensionType="groupSizeEncoding">
      <field name="at" id="6" type="int8"/>
      <data name="At" id="7" type="text"/>
    </group>
  </sbe:message>""",
)
BAD = b"caf\xe9\xff"


@pytest.fixture
def xml(tmp_path: Path) -> Path:
    path = tmp_path / "texts.xml"
    path.write_text(SCHEMA)
    return path


def encoded(xml: Path, symbol: bytes = b"ok") -> bytes:
    encoder = PayloadEncoder(load_schema(xml), "Text")
    fields = {
        "symbol": "", "Symbol": "caf\xe9", "point": {"X": 1, "sbe_x": 2},
        "bits": {"on": True, "ON": False}, "Note": [{"at": 3, "At": "n\xf8te"}],
    }  # fmt: skip
    payload = bytearray(encoder.encode(fields))
    payload[8 : 8 + len(symbol)] = symbol
    return bytes(payload)


def test_bytes_that_are_not_characters(xml: Path) -> None:
    """They are their numbers, as in texts without a schema; such texts are counted by column. An
    encoding of the schema that has them is followed."""
    payloads = pa.array([encoded(xml), encoded(xml, BAD), encoded(xml, b"\xc3\xa9")], pa.binary())
    schema = PayloadSchema.from_file(xml, "Text")
    found = schema.decode_messages(payloads, malformed="fail", keep_others=False)
    assert found.batch.column("symbol").to_pylist() == ["ok", r"caf\xe9\xff", "\xe9"]
    assert found.batch.column("symbol")[1].as_py() == utf8_text(BAD)
    assert found.batch.column("Symbol").to_pylist() == ["caf\xe9"] * 3
    assert found.escaped == {"symbol": 1}


def test_they_are_said(xml: Path, tmp_path: Path) -> None:
    """By recording and column in Python, at the end of what `cat` prints."""
    builder = SegmentBuilder()
    for symbol in (BAD, b"ok", BAD):
        builder.message(encoded(xml, symbol))
    (tmp_path / "archive").mkdir()
    add_recording(tmp_path / "archive", builder)
    recording = open_directory(tmp_path / "archive").recording(0)
    with pytest.warns(RuntimeWarning, match=r"recording 0: 2 values of symbol have bytes .* \\xe9"):
        recording.to_arrow(schema=xml, template="Text")
    done = aerotape("cat", tmp_path / "archive", 0, "--schema", xml)
    assert "warning: 2 values of symbol have bytes" in done.err
    assert done.out.count(r"caf\\xe9\\xff") == 2


def test_names_that_differ_in_case(xml: Path) -> None:
    """Later ones get a prefix: in nested columns, and in tables in those of the message."""
    schema = PayloadSchema.from_file(xml, "Text")
    types = schema.arrow_schema
    assert types.names == ["symbol", "Symbol", "point", "bits", "Note"]
    assert [field.name for field in types.field("point").type] == ["X", "sbe_x"]
    assert [field.name for field in types.field("bits").type] == ["on", "sbe_ON"]
    entry = types.field("Note").type.value_type
    assert [field.name for field in entry] == ["at", "sbe_At"]
    row = schema.decode_payloads(pa.array([encoded(xml)], pa.binary())).to_pylist()[0]
    assert (row["point"], row["bits"]) == ({"X": 1, "sbe_x": 2}, {"on": True, "sbe_ON": False})
    assert row["Note"] == [{"at": 3, "sbe_At": "n\xf8te"}]


def test_they_are_selected_in_sql(xml: Path, tmp_path: Path) -> None:
    """Each by its name, in DuckDB."""
    pytest.importorskip("duckdb")
    (tmp_path / "archive").mkdir()
    builder = SegmentBuilder()
    builder.message(encoded(xml))
    add_recording(tmp_path / "archive", builder)
    query = "select symbol, sbe_Symbol, point.X + 10 * point.sbe_x as p from messages(0)"
    done = aerotape("sql", tmp_path / "archive", query, "--csv", "--schema", xml, "--template", 1)
    assert done.out.splitlines() == ["symbol,sbe_Symbol,p", "ok,caf\xe9,21"]
