"""A schema with the prices, times and dates of market data as venues declare them."""

from __future__ import annotations

from typing import Any

from support.builders.sbe_text import schema_text, var_data

_NS = 1_700_000_000_123_456_789
_PRICE = '<type name="mantissa" primitiveType="int64"{0}/>'
_LEAST = ' presence="optional" nullValue="9223372036854775807"'


def _power(value: int, name: str = "exponent") -> str:
    return f'<type name="{name}" primitiveType="int8" presence="constant">{value}</type>'


MARKET_SCHEMA = schema_text(
    'package="market" id="12" version="2"',
    types=var_data("note", "uint8", "UTF-8")
    + f"""\
    <composite name="PRICE9" semanticType="Price">{_PRICE.format("")}{_power(-9)}</composite>
    <composite name="PRICENULL9">{_PRICE.format(_LEAST)}{_power(-9)}</composite>
    <composite name="DecimalQty" semanticType="Qty">
      <type name="mantissa" primitiveType="int32" presence="optional" nullValue="2147483647"/>
      {_power(0)}
    </composite>
    <composite name="Lots"><type name="mantissa" primitiveType="uint64"/>{_power(2)}</composite>
    <composite name="Tiny"><type name="mantissa" primitiveType="int64"/>{_power(-38)}</composite>
    <composite name="TooTiny"><type name="mantissa" primitiveType="int64"/>{_power(-39)}</composite>
    <composite name="Decimal">
      <type name="mantissa" primitiveType="int64" presence="optional"/>
      <type name="exponent" primitiveType="int8" presence="optional"/>
    </composite>
    <enum name="TimeUnit" encodingType="uint8">
      <validValue name="second">0</validValue>
      <validValue name="millisecond">3</validValue>
      <validValue name="microsecond">6</validValue>
      <validValue name="nanosecond">9</validValue>
    </enum>
    <composite name="UTCTimestampNanos" semanticType="UTCTimestamp">
      <type name="time" primitiveType="uint64"/>
      <type name="unit" primitiveType="uint8" presence="constant" valueRef="TimeUnit.nanosecond"/>
    </composite>
    <composite name="UTCTimestamp" semanticType="UTCTimestamp">
      <type name="time" primitiveType="uint64"/>
      <ref name="unit" type="TimeUnit"/>
    </composite>
    <composite name="UTCTimeOnlyMillis" semanticType="UTCTimeOnly">
      <type name="time" primitiveType="uint32"/>
      <type name="unit" primitiveType="uint8" presence="constant" valueRef="TimeUnit.millisecond"/>
    </composite>
    <type name="uInt64NULL" primitiveType="uint64" presence="optional"/>
    <type name="utcTimestampUs" primitiveType="int64" semanticType="UTCTimestamp"/>
    <type name="LocalMktDate" primitiveType="uint16" presence="optional"
          semanticType="LocalMktDate"/>
    <type name="LocalMktDate32" primitiveType="int32" semanticType="LocalMktDate"/>
    <composite name="MaturityMonthYear" semanticType="MonthYear">
      <type name="year" primitiveType="uint16" presence="optional"/>
      <type name="month" primitiveType="uint8" presence="optional"/>
      <type name="day" primitiveType="uint8" presence="optional"/>
      <type name="week" primitiveType="uint8" presence="optional"/>
    </composite>
    <composite name="Level"><ref name="px" type="PRICENULL9"/>
      <type name="at" primitiveType="uint64" semanticType="UTCTimestamp"/></composite>
    <type name="Ids" primitiveType="uint64" length="2"/>""",
    messages="""\
  <sbe:message name="Refresh" id="1">
    <field name="transactTime" id="60" type="uint64" semanticType="UTCTimestamp"/>
    <field name="price" id="270" type="PRICENULL9"/>
    <field name="high" id="332" type="PRICE9" presence="optional"/>
    <field name="qty" id="271" type="DecimalQty"/>
    <field name="lots" id="1" type="Lots"/>
    <field name="tiny" id="2" type="Tiny"/>
    <field name="tooTiny" id="3" type="TooTiny"/>
    <field name="rate" id="4" type="Decimal"/>
    <field name="sent" id="5" type="UTCTimestampNanos"/>
    <field name="stamped" id="6" type="UTCTimestamp"/>
    <field name="timeOfDay" id="7" type="UTCTimeOnlyMillis"/>
    <field name="eventTime" id="8" type="utcTimestampUs"/>
    <field name="expires" id="9" type="int64" timeUnit="millisecond"/>
    <field name="seconds" id="10" type="uint32" timeUnit="second" semanticType="UTCTimestamp"/>
    <field name="length" id="11" type="int64" timeUnit="nanosecond" semanticType="int"/>
    <field name="tradeDate" id="75" type="LocalMktDate"/>
    <field name="maturity" id="541" type="LocalMktDate32"/>
    <field name="monthYear" id="200" type="MaturityMonthYear"/>
    <field name="orderId" id="37" type="uInt64NULL"/>
    <field name="ids" id="12" type="Ids"/>
    <field name="added" id="13" type="PRICENULL9" sinceVersion="1"/>
    <group name="levels" id="20" dimensionType="groupSizeEncoding">
      <field name="level" id="21" type="Level"/>
      <field name="rate" id="22" type="Decimal"/>
    </group>
  </sbe:message>""",
)
"""A message with decimals (`price` … `rate`), timestamps (`transactTime`, `sent` … `seconds`),
dates, what looks like these and is not (`tooTiny`, `timeOfDay`, `length`), and a group."""

MARKET_VALUES: dict[str, Any] = {
    "transactTime": _NS,
    "price": {"mantissa": -4_512_250_000_001},
    "high": {"mantissa": 1},
    "qty": {"mantissa": 7},
    "lots": {"mantissa": 2**64 - 1},
    "tiny": {"mantissa": -(2**63) + 1},
    "tooTiny": {"mantissa": 5},
    "rate": {"mantissa": 125, "exponent": -3},
    "sent": {"time": _NS},
    "stamped": {"time": 1_700_000_000_123, "unit": "millisecond"},
    "timeOfDay": {"time": 1},
    "eventTime": 1_700_000_000_123_456,
    "expires": -1,
    "seconds": 1_700_000_000,
    "length": 5,
    "tradeDate": 19_675,
    "maturity": -1,
    "monthYear": {"year": 2026, "month": 3, "day": None, "week": None},
    "orderId": 2**64 - 2,
    "ids": [1, 2**64 - 1],
    "added": {"mantissa": 10},
    "levels": [],
}
"""Values of the message's fields as they are on the wire."""
