"""The reader of sbe-tool's intermediate representation, on a schema with every construct."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.builders.sbe_text import schema_text, var_data

from aerotape.codecs.ir import Signal, parse_schema, read_schema
from aerotape.codecs.sbe_tool import run_sbe_tool
from aerotape.codecs.schema import (
    MessageSchema,
    Presence,
    Schema,
    Type,
)
from aerotape.errors import CodecError

SCHEMA = schema_text(
    'package="market" id="310" version="4" semanticVersion="1.2"',
    types=var_data("varString", "uint16", "UTF-8", most=1_000)
    + var_data("varShort", "uint8")
    + var_data("varBytes", "uint32", most=2_147_483_647)
    + """\
    <enum name="Side" encodingType="char">
      <validValue name="BUY">B</validValue>
      <validValue name="SELL">S</validValue>
      <validValue name="CROSS" sinceVersion="3">X</validValue>
    </enum>
    <enum name="Venue" encodingType="uint8">
      <validValue name="LIT">1</validValue>
      <validValue name="DARK">2</validValue>
    </enum>
    <set name="Conditions" encodingType="uint16">
      <choice name="OPENING">0</choice>
      <choice name="LATE" sinceVersion="2">9</choice>
    </set>
    <composite name="Price">
      <type name="mantissa" primitiveType="int64"/>
      <type name="exponent" primitiveType="int8" presence="constant">-9</type>
      <ref name="venue" type="Venue" offset="12"/>
    </composite>
    <type name="Symbol" primitiveType="char" length="8" characterEncoding="US-ASCII"/>
    <type name="Currency" primitiveType="char" length="3" presence="constant">EUR</type>
    <type name="Lots" primitiveType="uint32" minValue="1" maxValue="5000"/>
    <type name="MaybeLots" primitiveType="uint32" presence="optional" nullValue="0"/>
    <type name="MaybeRatio" primitiveType="double" presence="optional"/>""",
    messages="""\
  <sbe:message name="Trade" id="17" description="A trade." semanticType="X">
    <field name="time" id="1" type="int64" epoch="UNIX" timeUnit="nanosecond"/>
    <field name="symbol" id="2" type="Symbol"/>
    <field name="side" id="3" type="Side"/>
    <field name="price" id="4" type="Price"/>
    <field name="currency" id="5" type="Currency"/>
    <field name="venue" id="6" type="Venue" presence="constant" valueRef="Venue.DARK"/>
    <field name="lots" id="7" type="Lots" offset="40"/>
    <field name="shown" id="8" type="MaybeLots"/>
    <field name="ratio" id="9" type="MaybeRatio" sinceVersion="1"/>
    <field name="hidden" id="10" type="int16" presence="optional" sinceVersion="2" deprecated="4"/>
    <field name="conditions" id="11" type="Conditions" sinceVersion="2"/>
    <group name="legs" id="20" dimensionType="groupSizeEncoding">
      <field name="lots" id="21" type="Lots"/>
      <group name="fills" id="22" dimensionType="groupSizeEncoding">
        <field name="price" id="23" type="Price"/>
        <data name="note" id="24" type="varShort"/>
      </group>
      <data name="name" id="25" type="varString"/>
    </group>
    <group name="fees" id="30" dimensionType="groupSizeEncoding" blockLength="24" sinceVersion="3">
      <field name="amount" id="31" type="Price"/>
    </group>
    <data name="comment" id="40" type="varString"/>
    <data name="raw" id="41" type="varBytes" sinceVersion="4"/>
  </sbe:message>
  <sbe:message name="Empty" id="18" sinceVersion="2"/>""",
    num_in_group="uint8",
)


@pytest.fixture(scope="module")
def ir_file(jars: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The .sbeir file of the schema above."""
    folder = tmp_path_factory.mktemp("ir")
    (folder / "market.xml").write_text(SCHEMA)
    return run_sbe_tool(folder / "market.xml", jars["sbe-all"], folder)


@pytest.fixture(scope="module")
def schema(ir_file: Path) -> Schema:
    return read_schema(ir_file)


@pytest.fixture(scope="module")
def trade(schema: Schema) -> MessageSchema:
    return schema.message("Trade")


def field_type(message: MessageSchema, name: str) -> Type:
    return next(field.type for field in message.fields if field.name == name)


def test_schema(schema: Schema) -> None:
    """Package, id, version, header and messages equal those of the schema."""
    assert (schema.package, schema.id, schema.version) == ("market", 310, 4)
    assert [(m.name, m.offset) for m in schema.header.members] == [
        ("blockLength", 0), ("templateId", 2), ("schemaId", 4), ("version", 6),
    ]  # fmt: skip
    assert [(m.name, m.id, m.since_version) for m in schema.messages] == [
        ("Trade", 17, 0), ("Empty", 18, 2),
    ]  # fmt: skip
    assert schema.message(17) is schema.message("Trade")
    assert schema.message("Empty").block_length == 0
    with pytest.raises(CodecError, match=r"no message 'Quote'; it has Trade \(17\), Empty \(18\)"):
        schema.message("Quote")


def test_fields_of_the_block(trade: MessageSchema) -> None:
    """Offsets, versions and presences of a block follow SBE's rules."""
    assert trade.block_length == 60
    assert [(f.name, f.offset, f.since_version, f.presence) for f in trade.fields] == [
        ("time", 0, 0, Presence.REQUIRED),
        ("symbol", 8, 0, Presence.REQUIRED),
        ("side", 16, 0, Presence.REQUIRED),
        ("price", 17, 0, Presence.REQUIRED),
        ("currency", 30, 0, Presence.CONSTANT),
        ("venue", 30, 0, Presence.CONSTANT),
        ("lots", 40, 0, Presence.REQUIRED),
        ("shown", 44, 0, Presence.OPTIONAL),
        ("ratio", 48, 1, Presence.OPTIONAL),
        ("hidden", 56, 2, Presence.OPTIONAL),
        ("conditions", 58, 2, Presence.REQUIRED),
    ]


def test_truncated_file(ir_file: Path, tmp_path: Path) -> None:
    """A file truncated anywhere is a CodecError, also where it ends between two tokens."""
    whole = ir_file.read_bytes()
    complete = 0
    # Every length around the ends of header and messages, and a sample in between.
    near = 1000
    for length in (
        *range(near),
        *range(near, len(whole) - near, 11),
        *range(len(whole) - near, len(whole)),
    ):
        try:
            parsed = parse_schema(whole[:length])
        except CodecError:
            continue
        # Only whole messages can be missing undetected: the format has no count.
        assert [m.name for m in parsed.messages] in ([], ["Trade"])
        complete += 1
    assert complete == 2
    cut = tmp_path / "cut.sbeir"
    cut.write_bytes(whole[:100])
    with pytest.raises(CodecError, match=r"cut\.sbeir: SBE IR is truncated at byte 100"):
        read_schema(cut)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data())
def test_damaged_file(ir_file: Path, data: st.DataObject) -> None:
    """Flipped bytes and noise produce a schema or a CodecError, nothing else."""
    damaged = bytearray(ir_file.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(damaged) - 1))
        damaged[position] = data.draw(st.integers(0, 255))
    for candidate in (bytes(damaged), data.draw(st.binary(max_size=200))):
        try:
            assert isinstance(parse_schema(candidate), Schema)
        except CodecError:
            continue


def test_groups_in_groups_without_end() -> None:
    """Nesting that no schema has is refused where it is found, not by Python's stack."""

    def token(signal: Signal) -> bytes:
        numbers = struct.pack("<iiiiiBBBBi", 0, 0, 1, 0, 1, signal, 0, 0, 0, 0)
        return numbers + bytes(2 * 12)

    composite = token(Signal.BEGIN_COMPOSITE) + token(Signal.END_COMPOSITE)
    begin = struct.pack("<iii", 1, 0, 0) + bytes(2 * 3) + composite + token(Signal.BEGIN_MESSAGE)
    group = token(Signal.BEGIN_GROUP) + composite
    with pytest.raises(CodecError, match="groups and composites are nested too deeply"):
        parse_schema(begin + group * 5000)
