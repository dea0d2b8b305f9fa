"""Expressions of Spark SQL that compute what the codecs and stores of entities do in Python."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

from aerotape.codecs.entity.durations import FACTORS

if TYPE_CHECKING:
    from pyspark.sql import Column

_NS_PER_MS: Final = 1_000_000
_MS_PER_DAY: Final = 86_400_000
_INT32: Final = 1 << 32
_UUID: Final = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


def text(name: str) -> Column:
    """Return a binary column in UTF-8 as text; not checked."""
    return fn.col(name).cast("string")


def or_null(value: Column, nothing: object) -> Column:
    """Return a value, null instead of `nothing`."""
    return fn.when(value != nothing, value)


def record_id(partition: str, offset: str, id: str) -> Column:
    """Return the id of an incarnation: `aerotape.archive.entity.transitions.record_id`."""
    digest = fn.md5(fn.encode(fn.concat_ws("/", partition, offset, id), "UTF-8"))
    return fn.concat_ws("-", *(fn.substring(digest, begin, length) for begin, length in _UUID))


def head_segment(id: str, segments: int) -> Column:
    """Return the segment of a head: `aerotape.codecs.entity.head_segment`."""

    def unit(value: Column, code: Column) -> Column:
        return fn.pmod(value * 31 + code, fn.lit(_INT32))

    def character(value: Column, each: Column) -> Column:
        code = fn.ascii(each).cast("bigint")
        beyond = code - 0x10000  # two units of UTF-16
        return fn.when(
            code >= 0x10000,
            unit(
                unit(value, fn.floor(beyond / 0x400) + 0xD800),
                fn.pmod(beyond, fn.lit(0x400)) + 0xDC00,
            ),
        ).otherwise(unit(value, code))

    characters = fn.filter(fn.split(fn.lower(id), ""), lambda each: each != "")
    value = fn.aggregate(characters, fn.lit(0).cast("bigint"), character)
    signed = fn.when(value >= _INT32 // 2, value - _INT32).otherwise(value)
    return fn.abs(signed) % segments


def expire_after(is_json: Column, payload: str) -> Column:
    """Return the nanoseconds of expiry in an append's payload in JSON; null: none."""
    has_any = is_json & fn.contains(payload, fn.lit(b'"expireAfter"'))
    return fn.when(
        has_any, _nanoseconds(fn.get_json_object(text(payload), "$.metadata.expireAfter"))
    )


def _nanoseconds(duration: Column) -> Column:
    """Return the nanoseconds of a duration: a text such as ``1 day``, or milliseconds."""
    factors = fn.create_map(
        *chain.from_iterable((fn.lit(k), fn.lit(v)) for k, v in FACTORS.items())
    )
    pattern = r"^\s*([0-9]+(?:\.[0-9]+)?) *([a-zµμ]*)\s*$"
    unit = fn.regexp_extract(duration, pattern, 2)
    number = fn.regexp_extract(duration, pattern, 1).cast("decimal(28,9)")
    factor = fn.when(unit == "", fn.lit(_NS_PER_MS)).otherwise(fn.element_at(factors, unit))
    wrong = fn.raise_error(fn.concat(duration, fn.lit(" is not a duration"))).cast("bigint")
    found = fn.coalesce((number * factor).cast("bigint"), wrong)
    return fn.when(duration.isNotNull(), found)


def expire_on(timestamp_ms: str, after_ns: str) -> Column:
    """Return the day (UTC) of a time plus a duration, as text; null without one."""
    sum_ms = fn.col(timestamp_ms) + fn.expr(f"{after_ns} div {_NS_PER_MS}")
    days = fn.floor(sum_ms / _MS_PER_DAY).cast("int")
    return fn.date_add(fn.lit("1970-01-01").cast("date"), days).cast("string")


def is_plain_json(payload: str) -> Column:
    """Return whether no event of an append in JSON has a JSON text as payload.

    A parsed text and JSON of other types cannot be told apart. False also for some that have none.
    """
    return ~fn.rlike(text(payload), fn.lit(r'(?<!"payloadType":"text",)"payload"\s*:\s*"'))


def metadata_of_events(metadata: str, of_events: str) -> Column:
    """Return the column `metadata` of events: that of the append and of its events."""
    expire, data = fn.col(f"{of_events}.expireAfter"), fn.col(f"{of_events}.data")
    fields = fn.concat_ws(
        ",",
        fn.when(expire.isNotNull(), fn.concat(fn.lit('"expireAfter":"'), expire, fn.lit('"'))),
        fn.when(data.isNotNull(), fn.concat(fn.lit('"data":'), data)),
    )
    header = fn.coalesce(or_null(fn.col(metadata), ""), fn.lit("null"))
    both = fn.concat(fn.lit('{"header":'), header, fn.lit(',"payload":{'), fields, fn.lit("}}"))
    return fn.when((fn.col(metadata) != "") | (fields != ""), both)
