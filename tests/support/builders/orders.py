"""Payloads of orders, with a schema whose names clash with columns of a table."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from support.builders.sbe_text import schema_text, var_data

SCHEMA = schema_text(
    'package="orders" id="31" version="0"',
    types=var_data("text", "uint16", "UTF-8")
    + """\
    <enum name="Side" encodingType="char">
      <validValue name="BUY">B</validValue>
      <validValue name="SELL">S</validValue>
    </enum>
    <set name="Conditions" encodingType="uint8">
      <choice name="hidden">0</choice>
      <choice name="postOnly">2</choice>
    </set>""",
    messages="""\
  <sbe:message name="Order" id="1">
    <field name="orderId" id="1" type="uint32"/>
    <field name="side" id="2" type="Side"/>
    <field name="conditions" id="3" type="Conditions"/>
    <field name="position" id="4" type="int64"/>
    <field name="Length" id="5" type="uint16"/>
    <field name="price" id="6" type="int64" presence="optional"/>
    <group name="fills" id="7" dimensionType="groupSizeEncoding">
      <field name="quantity" id="8" type="int32"/>
    </group>
    <data name="note" id="9" type="text"/>
  </sbe:message>
  <sbe:message name="Cancel" id="2">
    <field name="orderId" id="1" type="uint32"/>
  </sbe:message>
  <sbe:message name="Position" id="3">
    <field name="size" id="1" type="int16"/>
  </sbe:message>""",
)

HEADER = struct.Struct("<4H")
_BLOCK = struct.Struct("<IcBqHq")
_NO_PRICE = -(1 << 63)


@dataclass(frozen=True)
class Order:
    """One order; `price` may be None, `position` and `length` are fields of the schema."""

    order_id: int
    side: str = "BUY"
    hidden: bool = False
    post_only: bool = False
    position: int = 0
    length: int = 0
    price: int | None = None
    fills: Sequence[int] = field(default=())
    note: str = ""

    def encode(self) -> bytes:
        """Encode with SBE, including the message header."""
        conditions = self.hidden | self.post_only << 2
        price = _NO_PRICE if self.price is None else self.price
        block = _BLOCK.pack(
            self.order_id, self.side[:1].encode(), conditions, self.position, self.length, price
        )
        fills = b"".join(struct.pack("<i", quantity) for quantity in self.fills)
        note = self.note.encode()
        return b"".join(
            (
                HEADER.pack(len(block), 1, 31, 0),
                block,
                struct.pack("<2H", 4, len(self.fills)),
                fills,
                struct.pack("<H", len(note)),
                note,
            )
        )

    def row(self) -> dict[str, Any]:
        """The fields by their names in the schema."""
        return {
            "orderId": self.order_id,
            "side": self.side,
            "conditions": {"hidden": self.hidden, "postOnly": self.post_only},
            "position": self.position,
            "Length": self.length,
            "price": self.price,
            "fills": [{"quantity": quantity} for quantity in self.fills],
            "note": self.note,
        }

    def columns(self) -> dict[str, Any]:
        """The fields by their column names in a table of messages."""
        names = {"position": "sbe_position", "Length": "sbe_Length"}
        return {names.get(name, name): value for name, value in self.row().items()}


def cancel(order_id: int) -> bytes:
    """A message with another template."""
    return HEADER.pack(4, 2, 31, 0) + struct.pack("<I", order_id)


def position(size: int) -> bytes:
    """A message of a template with the name of a table column."""
    return HEADER.pack(2, 3, 31, 0) + struct.pack("<h", size)


def foreign() -> bytes:
    """A message of another schema."""
    return HEADER.pack(4, 1, 99, 0) + bytes(4)


def some_orders(count: int) -> list[Order]:
    """Orders that differ in all fields, some of them longer than a frame of 1408 bytes."""
    return [
        Order(
            order_id=number,
            side="SELL" if number % 3 == 0 else "BUY",
            hidden=number % 2 == 0,
            post_only=number % 5 == 0,
            position=number * 1_000_003 - 7,
            length=number % 65_534,
            price=None if number % 4 == 0 else number * 10 - 5,
            fills=range(-1, number % 4 - 1),
            note="é" * (number % 3) + "x" * (3000 if number % 50 == 7 else 0),
        )
        for number in range(count)
    ]
