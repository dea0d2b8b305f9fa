"""Decimals, timestamps and dates of market data, compared with values computed by hand."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.builders.market_schema import MARKET_SCHEMA
from support.builders.market_schema import MARKET_VALUES as WIRE
from support.builders.sbe_text import schema_text
from support.jvm.sbe_tool import compile_schemas

from aerotape.codecs.payload_encoder import PayloadEncoder
from aerotape.codecs.payload_plan import Types
from aerotape.codecs.payload_values import json_rows
from aerotape.codecs.payloads import PayloadSchema
from aerotape.codecs.schema import Schema
from aerotape.codecs.schema_files import load_schema
from aerotape.errors import CodecError

NS = WIRE["transactTime"]
UNKNOWN = {"year": None, "month": None, "day": None, "week": None}
MEANT: dict[str, Any] = {
    "transactTime": "2023-11-14T22:13:20.123456789Z",
    "price": "-4512.250000001",
    "high": "0.000000001",
    "qty": 7,
    "lots": (2**64 - 1) * 100,
    "tooTiny": {"mantissa": 5, "exponent": -39},
    "rate": "0.125000000000000000",
    "sent": "2023-11-14T22:13:20.123456789Z",
    "stamped": "2023-11-14T22:13:20.123000000Z",
    "timeOfDay": {"time": 1, "unit": 3},
    "eventTime": "2023-11-14T22:13:20.123456Z",
    "expires": "1969-12-31T23:59:59.999000Z",
    "seconds": "2023-11-14T22:13:20.000000Z",
    "length": 5,
    "tradeDate": "2023-11-14",
    "maturity": "1969-12-31",
    "monthYear": {"year": 2026, "month": 3, "day": None, "week": None},
    "orderId": 2**64 - 2,
    "ids": [1, 2**64 - 1],
    "added": "0.000000010",
    "levels": [],
}
MEANT["tiny"] = f"-0.{2**63 - 1:038d}"
EXPONENTS = {"price": -9, "high": -9, "qty": 0, "lots": 2, "tiny": -38, "tooTiny": -39, "added": -9}
UTC_NS, UTC_US = pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    file = tmp_path_factory.mktemp("market") / "market.xml"
    file.write_text(MARKET_SCHEMA)
    return load_schema(file)


Encode = Callable[..., bytes]


@pytest.fixture(scope="module")
def encode(market: Schema) -> Encode:
    """Encodes the values of `WIRE` but those given."""
    encoder = PayloadEncoder(market, "Refresh")
    return lambda **values: encoder.encode(WIRE | values)


def decoded(market: Schema, *payloads: bytes, types: Types = "semantic") -> list[dict[str, Any]]:
    schema = PayloadSchema.from_schema(market, "Refresh", types=types)
    return json_rows(schema.decode_payloads(pa.array(payloads, pa.binary())))


def test_types(market: Schema) -> None:
    """Each field has the type that the schema says, in the order of the schema."""
    found = PayloadSchema.from_schema(market, "Refresh").arrow_schema
    assert found.names == list(WIRE)
    own = pa.decimal128(38, 18)
    expected = {
        "transactTime": UTC_NS, "price": pa.decimal128(19, 9), "high": pa.decimal128(19, 9),
        "qty": pa.decimal128(10, 0), "lots": pa.decimal128(22, 0), "tiny": pa.decimal128(38, 38),
        "rate": own, "sent": UTC_NS, "stamped": UTC_NS, "eventTime": UTC_US, "expires": UTC_US,
        "seconds": UTC_US, "length": pa.int64(), "tradeDate": pa.date32(),
        "maturity": pa.date32(), "orderId": pa.uint64(), "added": pa.decimal128(19, 9),
    }  # fmt: skip
    assert {name: found.field(name).type for name in expected} == expected
    assert pa.types.is_struct(found.field("tooTiny").type)
    assert pa.types.is_struct(found.field("timeOfDay").type)
    assert pa.types.is_struct(found.field("monthYear").type)
    entry = found.field("levels").type.value_type
    level = entry.field("level").type
    assert (level.field("px").type, level.field("at").type) == (pa.decimal128(19, 9), UTC_NS)
    assert entry.field("rate").type == own


def test_types_for_spark(market: Schema) -> None:
    """No unsigned numbers, and no nanoseconds: these remain the numbers that they are."""
    schema = PayloadSchema.from_schema(market, "Refresh", target="spark").arrow_schema
    whole = pa.decimal128(20, 0)
    assert schema.field("transactTime").type == whole
    assert schema.field("sent").type.field("time").type == whole
    assert schema.field("eventTime").type == UTC_US
    assert schema.field("orderId").type == whole
    assert schema.field("ids").type.value_type == whole
    assert schema.field("price").type == pa.decimal128(19, 9)
    assert schema.field("tradeDate").type == pa.date32()


def test_values(market: Schema, encode: Encode) -> None:
    """Of each kind, as JSON has them."""
    entry = {"level": {"px": {"mantissa": 3}, "at": NS}, "rate": {"mantissa": -1, "exponent": 2}}
    [row] = decoded(market, encode(levels=[entry]))
    meant = {"px": "0.000000003", "at": MEANT["sent"]}
    assert row.pop("levels") == [{"level": meant, "rate": f"-100.{0:018d}"}]
    assert row == {name: value for name, value in MEANT.items() if name != "levels"}


def test_wire(market: Schema, encode: Encode) -> None:
    """With types `wire` all are the numbers that were encoded."""
    [row] = decoded(market, encode(), types="wire")
    for name, exponent in EXPONENTS.items():
        assert row[name] == {**WIRE[name], "exponent": exponent}
    rest = {name: value for name, value in WIRE.items() if name not in EXPONENTS}
    assert {name: row[name] for name in rest} == rest | {
        "sent": {"time": NS, "unit": 9}, "timeOfDay": {"time": 1, "unit": 3}
    }  # fmt: skip


def test_python_values(market: Schema, encode: Encode) -> None:
    """Arrow's values are those of Python."""
    schema = PayloadSchema.from_schema(market, "Refresh")
    [row] = schema.decode_payloads(pa.array([encode()], pa.binary())).select(
        ["price", "eventTime", "tradeDate", "orderId"]
    ).to_pylist()  # fmt: skip
    assert row == {
        "price": Decimal("-4512.250000001"),
        "eventTime": datetime(2023, 11, 14, 22, 13, 20, 123456, UTC),
        "tradeDate": date(2023, 11, 14),
        "orderId": 2**64 - 2,
    }


def test_bytes_of_a_price(market: Schema, encode: Encode) -> None:
    """A mantissa at its place, in the bytes that a venue would send."""
    payload = bytearray(encode())
    struct.pack_into("<q", payload, 16, 99_000_000_000)
    assert decoded(market, bytes(payload))[0]["price"] == "99.000000000"


def test_nulls(market: Schema, encode: Encode) -> None:
    """Null mantissas, exponents, times and dates are null; so is a field of a newer version, and
    the null value of a time that is not optional."""
    none = {"mantissa": None}
    values: dict[str, Any] = {"price": none, "qty": none, "rate": none | {"exponent": 4}}
    values |= {"tradeDate": None, "orderId": None, "transactTime": 2**64 - 1}
    values |= {"expires": -(2**63), "sent": {"time": 2**64 - 1}, "monthYear": UNKNOWN}
    values |= {"high": {"mantissa": -(2**63)}, "stamped": {"time": 1, "unit": "255"}}
    [row] = decoded(market, encode(**values))
    assert {name: row[name] for name in values} == dict.fromkeys(values) | {"monthYear": UNKNOWN}
    [row] = decoded(market, encode(rate={"mantissa": 4, "exponent": None}))
    assert row["rate"] is None
    older = bytearray(encode())
    struct.pack_into("<H", older, 6, 0)
    [row] = decoded(market, bytes(older))
    assert (row["added"], row["price"]) == (None, MEANT["price"])


@pytest.mark.parametrize(
    ("mantissa", "exponent", "meant"),
    [
        (2**63 - 1, 0, "9223372036854775807.000000000000000000"),
        (-(2**63) + 1, 1, "-92233720368547758070.000000000000000000"),
        (2**63 - 1, -18, "9.223372036854775807"),
        (1, -18, "0.000000000000000001"),
        (70, -19, "0.000000000000000007"),
        (0, 127, "0.000000000000000000"),
        (0, -127, "0.000000000000000000"),
        (9, 19, "90000000000000000000.000000000000000000"),
    ],
)
def test_own_exponents(
    market: Schema, encode: Encode, mantissa: int, exponent: int, meant: str
) -> None:
    """Whatever is a decimal(38, 18) is exact."""
    [row] = decoded(market, encode(rate={"mantissa": mantissa, "exponent": exponent}))
    assert row["rate"] == meant


UNFIT: list[tuple[dict[str, Any], str]] = [
    ({"rate": {"mantissa": 71, "exponent": -19}}, "rate: 71e-19 does not fit decimal(38, 18)"),
    ({"rate": {"mantissa": 1, "exponent": 20}}, "rate: 1e20 does not fit decimal(38, 18)"),
    ({"rate": {"mantissa": 1, "exponent": -127}}, "rate: 1e-127 does not fit decimal(38, 18)"),
    ({"transactTime": 2**63}, "transactTime: 9223372036854775808e-9 s from 1970 are not in"),
    ({"sent": {"time": 2**64 - 2}}, "sent: 18446744073709551614e-9 s from 1970 are not in"),
    ({"stamped": {"time": 2**62, "unit": "second"}}, "4611686018427387904e0 s from 1970"),
    ({"stamped": {"time": 1, "unit": "60"}}, "1e-60 s from 1970"),
    ({"eventTime": NS}, f"eventTime: {NS}e-6 s from 1970 are not in the years 1 to 9999"),
    ({"maturity": 20_260_301}, "maturity: 20260301 days from 1970 are not in the years 1 to 9999"),
]


@pytest.mark.parametrize(("values", "problem"), UNFIT)
def test_what_does_not_fit(
    market: Schema, encode: Encode, values: dict[str, Any], problem: str
) -> None:
    """It is malformed: never rounded, cut, or null without a word; other payloads are decoded."""
    payloads = pa.array([encode(), None, encode(**values), encode(price={"mantissa": 5})])
    schema = PayloadSchema.from_schema(market, "Refresh")
    with pytest.raises(CodecError, match="payload of row 2: ") as caught:
        schema.decode_payloads(payloads)
    assert problem in str(caught.value)
    assert "types=wire" in str(caught.value)
    dropped = schema.decode_messages(payloads, malformed="drop", keep_others=False)
    assert dropped.kept is not None
    assert dropped.kept.to_pylist() == [0, 1, 3]
    assert [row for row, _ in dropped.problems] == [2]
    assert [row["price"] for row in json_rows(dropped.batch)] == [
        MEANT["price"], None, "0.000000005"
    ]  # fmt: skip
    ended = schema.decode_messages(payloads, malformed="fail", keep_others=False)
    assert ended.batch.num_rows == 2
    with_errors = PayloadSchema.from_schema(market, "Refresh", error_column="error")
    rows = json_rows(with_errors.decode_payloads(payloads))
    assert [row["price"] for row in rows] == [MEANT["price"], None, None, "0.000000005"]
    assert [row["error"] is not None for row in rows] == [False, False, True, False]
    wire = PayloadSchema.from_schema(market, "Refresh", types="wire").decode_payloads(payloads)
    assert wire.num_rows == 4
    chosen = schema.choose(["price"]).decode_payloads(payloads)
    assert chosen.column("price").null_count == 1, "other columns are not read"


def test_entries_that_do_not_fit(market: Schema, encode: Encode) -> None:
    """In a group: the payload of the entry is malformed."""
    good = {"level": {"px": {"mantissa": 3}, "at": NS}, "rate": {"mantissa": 1, "exponent": 2}}
    bad = good | {"rate": {"mantissa": 1, "exponent": 30}}
    lists = [[], [good, good], [], [good, bad, good], [bad], [good]]
    payloads = pa.array([encode(levels=each) for each in lists], pa.binary())
    found = PayloadSchema.from_schema(market).decode_messages(
        payloads, malformed="drop", keep_others=False
    )
    assert found.kept is not None
    assert found.kept.to_pylist() == [0, 1, 2, 5]
    assert [row for row, _ in found.problems] == [3, 4]


def test_json_is_encoded_again(market: Schema, encode: Encode) -> None:
    """The encoder takes what the decoder returns; an exponent may be another one."""
    encoder = PayloadEncoder(market, "Refresh")
    for values in ({}, {"price": {"mantissa": None}, "transactTime": 2**64 - 1}):
        payload = encode(**values, rate={"mantissa": 125, "exponent": -3})
        [row] = decoded(market, payload)
        again = encoder.encode(row | {"stamped": WIRE["stamped"]})
        assert again == payload
        assert decoded(market, encoder.encode(row)) == [row]


@pytest.mark.parametrize(
    ("value", "parts"),
    [("12.50", (125, -1)), (12.5, (125, -1)), (100, (1, 2)), ("0.0", (0, 0)), ("-1e-7", (-1, -7))],
)
def test_decimals_that_are_encoded(
    market: Schema, encode: Encode, value: Any, parts: tuple[int, int]
) -> None:
    """Texts and numbers, with the shortest mantissa."""
    [row] = decoded(market, encode(rate=value), types="wire")
    assert tuple(row["rate"].values()) == parts


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"price": "1.0000000001"}, "price: expected a number that the mantissa can represent"),
        ({"price": "x"}, "price: expected a number"),
        ({"price": "NaN"}, "price: expected a number"),
        ({"price": True}, "price: expected a number"),
        ({"lots": None}, "lots: expected a number"),
        ({"price": "1e30"}, "price.mantissa: .* does not fit int64"),
        ({"transactTime": "2026-03-01"}, "transactTime: expected a time in UTC"),
        ({"eventTime": "2026-03-01T00:00:00.0000001Z"}, "eventTime: .* whole units"),
        ({"sent": 5}, "sent: expected a time in UTC"),
        ({"tradeDate": "2026-02-30"}, "tradeDate: expected a date"),
        ({"tradeDate": "1969-01-01"}, "tradeDate: .* does not fit uint16"),
    ],
)
def test_values_that_are_not_encoded(
    encode: Encode, values: dict[str, Any], problem: str
) -> None:
    """Nothing is rounded."""
    with pytest.raises(CodecError, match=problem):
        encode(**values)


def test_schema_of_sbe_tool(jars: dict[str, Path], market: Schema, tmp_path: Path) -> None:
    """What sbe-tool writes gives the same columns, but for a unit that it writes for all fields,
    and for types that only their semanticType makes timestamps.
    """
    alone = MARKET_SCHEMA.replace(' timeUnit="millisecond"/>', ' timeUnit="nanosecond"/>')
    schemas = {"market": MARKET_SCHEMA, "alone": alone}
    assert compile_schemas(schemas, tmp_path, jars["sbe-all"]) == {}
    types = PayloadSchema.from_schema(market, "Refresh").arrow_schema
    of_tool = PayloadSchema.from_file(tmp_path / "market.sbeir", "Refresh").arrow_schema
    assert of_tool.remove(of_tool.get_field_index("levels")) == types.remove(
        types.get_field_index("levels")
    )
    level = of_tool.field("levels").type.value_type.field("level").type
    assert level.field("at").type == pa.uint64()
    of_xml = PayloadSchema.from_file(tmp_path / "alone.xml", "Refresh").arrow_schema
    of_ir = PayloadSchema.from_file(tmp_path / "alone.sbeir", "Refresh").arrow_schema
    assert (of_xml.field("expires").type, of_ir.field("expires").type) == (UTC_NS, pa.int64())


TRADES = schema_text(
    'package="stream" id="3" version="1" xmlns:mbx="https://developers.binance.com/docs/spot"',
    types='<type name="mantissa64" primitiveType="int64"/>',
    messages="""\
  <sbe:message name="Trades" id="1">
    <field name="priceExponent" id="1" type="int8"/>
    <field name="qtyExponent" id="2" type="int8" presence="optional"/>
    <field name="last" id="3" type="mantissa64" mbx:exponent="priceExponent"/>
    <field name="plain" id="4" type="mantissa64" mbx:exponent="missing"/>
    <group name="trades" id="10" dimensionType="groupSizeEncoding">
      <field name="price" id="11" type="mantissa64" mbx:exponent="priceExponent"/>
      <group name="makers" id="12" dimensionType="groupSizeEncoding">
        <field name="qty" id="13" type="mantissa64" presence="optional" mbx:exponent="qtyExponent"/>
      </group>
    </group>
  </sbe:message>""",
)


def test_exponents_in_other_fields(tmp_path: Path) -> None:
    """Binance's: of the same message, of the message that a group is in, and of the one further
    out. What others call so is not read: it may be a number of decimal places."""
    (tmp_path / "trades.xml").write_text(TRADES)
    (tmp_path / "others.xml").write_text(TRADES.replace("binance", "example"))
    schema = load_schema(tmp_path / "trades.xml")
    encoder = PayloadEncoder(schema, "Trades")
    rows: list[dict[str, Any]] = [
        {"priceExponent": -2, "qtyExponent": -8, "last": 12345, "plain": 5, "trades": [
            {"price": 1, "makers": [{"qty": 3}, {"qty": None}]},
            {"price": -700, "makers": []},
        ]},
        {"priceExponent": 1, "qtyExponent": None, "last": -4, "plain": 6, "trades": [
            {"price": 2, "makers": [{"qty": 9}]},
        ]},
        {"priceExponent": 0, "qtyExponent": 0, "last": 0, "plain": 7, "trades": []},
    ]  # fmt: skip
    payloads = pa.array(map(encoder.encode, rows), pa.binary())
    found = json_rows(PayloadSchema.from_schema(schema, "Trades").decode_payloads(payloads))
    zero = f".{0:018d}"
    assert found[0]["last"] == f"123.45{0:016d}"
    assert found[0]["trades"] == [
        {"price": f"0.01{0:016d}", "makers": [{"qty": f"0.00000003{0:010d}"}, {"qty": None}]},
        {"price": f"-7{zero}", "makers": []},
    ]
    assert (found[1]["last"], found[1]["plain"]) == (f"-40{zero}", 6)
    assert found[1]["trades"] == [{"price": f"20{zero}", "makers": [{"qty": None}]}]
    assert found[2]["trades"] == []
    assert encoder.encode(found[0]) == payloads[0].as_py()
    with pytest.raises(CodecError, match=r"last: expected a number that is whole times 1e-2"):
        encoder.encode(rows[0] | {"last": "0.001"})
    only = PayloadSchema.from_schema(schema, "Trades").choose(["trades"])
    assert json_rows(only.decode_payloads(payloads))[0]["trades"] == found[0]["trades"]
    for other in (
        PayloadSchema.from_schema(schema, "Trades", types="wire"),
        PayloadSchema.from_file(tmp_path / "others.xml", "Trades"),
    ):
        assert json_rows(other.decode_payloads(payloads)) == rows


MEMBERS = schema_text(
    'package="parts" id="4" version="0"',
    types="""\
    <type name="Stamp" primitiveType="int64" timeUnit="millisecond"/>
    <composite name="Times">
      <type name="sent" primitiveType="uint64" semanticType="UTCTimestamp" timeUnit="second"/>
      <type name="received" primitiveType="int64" timeUnit="microsecond"/>
      <ref name="stored" type="Stamp"/>
      <type name="until" primitiveType="uint64" semanticType="UTCTimestamp"/>
    </composite>""",
    messages="""\
  <sbe:message name="Timed" id="1"><field name="times" id="1" type="Times"/></sbe:message>""",
)


def test_units_of_members(tmp_path: Path) -> None:
    """The timeUnit of a member, or of the type that it refers to, as that of a field."""
    (tmp_path / "parts.xml").write_text(MEMBERS)
    schema = load_schema(tmp_path / "parts.xml")
    wire = {"sent": NS // 10**9, "received": NS // 1000, "stored": NS // 10**6, "until": NS}
    encoder = PayloadEncoder(schema, "Timed")
    payloads = pa.array([encoder.encode({"times": wire})], pa.binary())
    [row] = json_rows(PayloadSchema.from_schema(schema, "Timed").decode_payloads(payloads))
    assert row["times"] == {
        "sent": "2023-11-14T22:13:20.000000Z",
        "received": "2023-11-14T22:13:20.123456Z",
        "stored": "2023-11-14T22:13:20.123000Z",
        "until": "2023-11-14T22:13:20.123456789Z",
    }
    assert encoder.encode(row) == payloads[0].as_py()
