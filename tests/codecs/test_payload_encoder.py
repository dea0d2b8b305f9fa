"""Payloads encoded from JSON, compared with those of the Java codecs of sbe-tool."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.builders.payload_schema import BIG_ENDIAN_SCHEMA, SCHEMA
from support.jvm.java import ROOT
from support.jvm.java_payloads import encode_with_java

from aerotape.codecs.payload_encoder import PayloadEncoder
from aerotape.codecs.payload_values import json_rows
from aerotape.codecs.payloads import PayloadSchema
from aerotape.codecs.schema import Schema
from aerotape.codecs.schema_files import load_schema
from aerotape.errors import CodecError

TRADE = {"time_ns": -5, "symbol": "ABC", "side": "BUY", "price": 0.5, "quantity": 7}


@pytest.fixture(scope="module")
def market() -> Schema:
    """The schema of the example notebook."""
    return load_schema(ROOT / "examples" / "market.xml")


@pytest.mark.parametrize("text", [SCHEMA, BIG_ENDIAN_SCHEMA], ids=["little", "big"])
def test_the_bytes_are_those_of_java(text: str, jars: dict[str, Path], tmp_path: Path) -> None:
    """What is decoded from them is encoded as the same bytes, each type, null or not, in both byte
    orders."""
    schema_file = tmp_path / "garage.xml"
    schema_file.write_text(text)
    schema = load_schema(schema_file)
    encoded = encode_with_java(schema_file, "CarWriter", jars["sbe-all"], tmp_path / "stubs")
    for payload, template in zip(encoded, ("Car", "Car", "Tick", "Empty"), strict=True):
        decoder = PayloadSchema.from_schema(schema, template)
        [row] = json_rows(decoder.decode_payloads(pa.array([payload], pa.binary()))) or [{}]
        fields = json.loads(json.dumps(row))
        assert PayloadEncoder(schema, template).encode(fields).hex() == payload.hex()


def test_a_message_with_a_group(market: Schema) -> None:
    """Groups are lists; a missing one is empty."""
    encoder = PayloadEncoder(market, 2)
    fields = {"time_ns": 3, "symbol": "A", "bids": [{"price": 2, "quantity": 4}]}
    head = struct.pack("<4Hq8s", 16, 2, 7, 0, 3, b"A")
    assert encoder.encode(fields) == head + struct.pack("<2HdI", 12, 1, 2.0, 4)
    del fields["bids"]
    assert encoder.encode(fields) == head + struct.pack("<2H", 12, 0)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_lacks(market: Schema, value: str) -> None:
    """They are texts."""
    encoded = PayloadEncoder(market, "Trade").encode(TRADE | {"price": value})
    assert struct.pack("<d", float(value)) in encoded


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"time_ns": None}, "time_ns: expected an integer, got nothing"),
        ({"time_ns": 1.0}, "time_ns: expected an integer, got 1.0"),
        ({"time_ns": True}, "time_ns: expected an integer, got True"),
        ({"time_ns": 1 << 63}, "time_ns: 9223372036854775808 does not fit int64"),
        ({"quantity": -1}, "quantity: -1 does not fit uint32"),
        ({"price": "1"}, "price: expected a number, got '1'"),
        ({"price": 10**400}, "does not fit double"),
        ({"symbol": "ABCDEFGHI"}, "symbol: expected 8 bytes, got 9"),
        ({"symbol": 5}, "symbol: expected a text, got 5"),
        ({"symbol": "\ud800"}, "symbol: expected text in utf-8"),
        ({"side": "HOLD"}, "side: expected one of BUY, SELL, got 'HOLD'"),
        ({"side": "300"}, "side: 300 does not fit char"),
        ({"other": 1}, "unknown member 'other': expected time_ns, symbol, side, price, quantity"),
    ],
)
def test_values_that_cannot_be_encoded(market: Schema, changes: dict[str, Any], words: str) -> None:
    """The error names the field, and what is expected."""
    with pytest.raises(CodecError) as caught:
        PayloadEncoder(market, "Trade").encode(TRADE | changes)
    assert words in str(caught.value)


def test_values_of_another_structure(market: Schema) -> None:
    """The error names the place in a group."""
    encoder = PayloadEncoder(market, "Book")
    for fields, words in (
        ([], "message: expected an object, got []"),
        ({"bids": {}}, "bids: expected a list of objects"),
        ({"bids": [{"price": 1, "quantity": 1}, 5]}, "bids[1]: expected an object, got 5"),
        ({"bids": [{"price": 1}]}, "bids[0].quantity: expected an integer, got nothing"),
        ({"bids": [{"price": 1, "quantity": 1}] * 65_536}, "numInGroup: 65536 does not fit uint16"),
    ):
        given = {"time_ns": 1, "symbol": ""} | fields if isinstance(fields, dict) else fields
        with pytest.raises(CodecError) as caught:
            encoder.encode(given)
        assert words in str(caught.value)


def test_an_unknown_template(market: Schema) -> None:
    """The error lists the known ones."""
    with pytest.raises(CodecError, match=r"no message 'Order'; it has Trade \(1\), Book \(2\)"):
        PayloadEncoder(market, "Order")
