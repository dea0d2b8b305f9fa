"""The command `schema`: what a schema contains, and its mistakes."""

from __future__ import annotations

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from support.builders.payload_schema import SCHEMA
from support.builders.sbe_text import schema_text, var_data

from aerotape.tools._cli.main import main

ORDERS = schema_text(
    'package="orders" id="7" version="3"',
    types=var_data("text", "uint16", "UTF-8")
    + """
    <enum name="Side" encodingType="char"><validValue name="BUY">B</validValue></enum>
    <set name="Flags" encodingType="uint8"><choice name="LAST">2</choice></set>
    <type name="Symbol" primitiveType="char" length="8"/>
    <type name="Ratio" primitiveType="double" presence="optional"/>
    <composite name="Price">
      <type name="mantissa" primitiveType="int64" minValue="0"/>
      <type name="exponent" primitiveType="int8" presence="constant">-9</type>
    </composite>""",
    messages="""\
  <sbe:message name="Order" id="1" sinceVersion="1" blockLength="40">
    <field name="symbol" id="2" type="Symbol"/>
    <field name="side" id="3" type="Side" presence="constant" valueRef="Side.BUY"/>
    <field name="price" id="4" type="Price" offset="10"/>
    <field name="ratio" id="5" type="Ratio" sinceVersion="2"/>
    <group name="legs" id="6" dimensionType="groupSizeEncoding">
      <field name="flags" id="7" type="Flags"/>
      <data name="note" id="8" type="text"/>
    </group>
  </sbe:message>""",
)
TABLE = """\
schema:
package: orders
id:      7
version: 3

name          id  type                      offset  size  since  presence
Order          1  message                        -    40      1  -
  symbol       2  Symbol (char[8]) US-ASCII       0     8      0  required
  side         3  Side (char)                     8     0      0  constant BUY
  price        4  Price                          10     8      0  required
    mantissa   -  int64                          10     8      0  required
    exponent   -  int8                           18     0      0  constant -9
  ratio        5  Ratio (double)                 18     8      2  optional
  legs         6  group                           -     1      0  -
    flags      7  Flags (uint8)                   0     1      0  required
    note       8  data (uint16) UTF-8             -     -      0  -
"""

FIELDS = ("symbol", "flags")


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders.xml"
    path.write_text(ORDERS)
    return path


def test_a_table_of_the_schema(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Messages, fields, members, groups and data, with offsets from the start of the block."""
    assert main(["schema", str(orders)]) == 0
    shown = capsys.readouterr().out
    assert [line.split() for line in shown.splitlines()] == [
        line.split() for line in TABLE.splitlines()
    ]
    assert "\n    mantissa " in shown


def test_json(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same as a tree, with the values of enums, the bits of sets and the limits of numbers."""
    assert main(["schema", str(orders), "--json"]) == 0
    schema = json.loads(capsys.readouterr().out)
    (order,) = schema.pop("messages")
    assert schema == {"package": "orders", "id": 7, "version": 3}
    assert (order["name"], order["id"], order["block_length"]) == ("Order", 1, 40)
    _, side, price, ratio = order["fields"]
    assert (side["constant"], side["values"]) == ("BUY", {"BUY": ord("B")})
    assert [(m["name"], m["offset"], m["min_value"]) for m in price["members"]] == [
        ("mantissa", 10, 0), ("exponent", 18, None),
    ]  # fmt: skip
    assert ratio["null_value"] == "nan"
    (legs,) = order["groups"]
    assert legs["fields"][0]["choices"] == {"LAST": 2}
    assert legs["data"][0]["character_encoding"] == "UTF-8"


def test_standard_input(
    orders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-` is the schema on standard input, and errors say so."""

    def give(content: str) -> None:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content.encode())))

    assert main(["schema", str(orders)]) == 0
    shown = capsys.readouterr().out
    give(ORDERS)
    assert main(["schema", "-"]) == 0
    assert capsys.readouterr().out == shown
    give(ORDERS.replace('type="Symbol"', 'type="Sym"'))
    assert main(["schema", "-", "--check"]) == 1
    assert capsys.readouterr().out.startswith("standard input:")
    give("")
    assert main(["schema", "-"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_the_same_from_sbe_tools_file(
    jars: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An `.sbeir` file is shown as the XML that it was generated from."""
    from aerotape.codecs.sbe_tool import run_sbe_tool

    (tmp_path / "garage.xml").write_text(SCHEMA)
    compiled = run_sbe_tool(tmp_path / "garage.xml", jars["sbe-all"], tmp_path)
    assert main(["schema", str(compiled)]) == 0
    shown = capsys.readouterr().out
    assert main(["schema", str(tmp_path / "garage.xml")]) == 0
    assert capsys.readouterr().out == shown


def test_check(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing for a schema without mistakes; else a line for each, and exit code 1."""
    assert main(["schema", str(orders), "--check"]) == 0
    assert capsys.readouterr() == ("", "")
    orders.write_text(ORDERS.replace('type="Symbol"', 'type="Sym"').replace('type="Flags"', ""))
    assert main(["schema", str(orders), "--check"]) == 1
    lines = capsys.readouterr().out.splitlines()
    symbol, flags = (ORDERS[: ORDERS.index(f'"{name}" id')].count("\n") + 1 for name in FIELDS)
    assert lines == [
        f'{orders}:{symbol}: field "symbol": type "Sym" is not defined: declare it in types',
        f'{orders}:{flags}: field "flags": attribute type is missing',
    ]
    assert main(["schema", str(orders), "--check", "--json"]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["problem"] for line in shown] == lines
    assert main(["schema", str(orders)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"aerotape schema: {lines[0]} (and 1 more: aerotape schema --check lists them)\n"


def test_a_file_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing file is an invalid argument; an `.sbeir` file that was cut is a failure."""
    assert main(["schema", str(tmp_path / "none.xml"), "--check"]) == 2
    assert "none.xml: No such file" in capsys.readouterr().err
    (tmp_path / "cut.sbeir").write_bytes(bytes(11))
    assert main(["schema", str(tmp_path / "cut.sbeir")]) == 1
    assert "cut.sbeir: SBE IR is truncated" in capsys.readouterr().err
