"""Payloads decoded into columns, compared with the same payloads read value by value."""

from __future__ import annotations

import math
import pickle
import struct
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders.payload_schema import BIG_ENDIAN_SCHEMA, SCHEMA
from support.model.payload_reference import Malformed, Reader

from aerotape.codecs.payloads import PayloadSchema
from aerotape.codecs.schema import Group, MessageSchema, Schema
from aerotape.codecs.schema_files import load_schema
from aerotape.errors import CodecError, ConfigurationError


@pytest.fixture(scope="module", params=["little", "big"])
def schema(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Schema:
    """The schema of `payload_schema`, in either byte order."""
    folder = tmp_path_factory.mktemp("payloads")
    (folder / "garage.xml").write_text(SCHEMA if request.param == "little" else BIG_ENDIAN_SCHEMA)
    return load_schema(folder / "garage.xml")


class Writer:
    """Writes payloads of noise with a valid structure."""

    def __init__(self, schema: Schema, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.prefix = "<>"[schema.header.member("version").type.byte_order]  # type: ignore[union-attr]
        self._schema = schema
        self._draw = draw

    def payload(self) -> bytes:
        """One message of any version, newer ones with additional trailing fields."""
        message = self._draw(st.sampled_from(self._schema.messages))
        version = self._draw(st.integers(0, 5))
        schema_id = self._draw(st.sampled_from([self._schema.id] * 9 + [5]))
        extra = self._draw(st.integers(0, 3))
        length = message.block_length + extra
        header = struct.pack(f"{self.prefix}4H", length, message.id, schema_id, version)
        return bytes(header + self._body(message, length, version))

    def _body(self, body: MessageSchema | Group, length: int, version: int) -> bytes:
        parts = [self._block(length)]
        for group in body.groups:
            if group.since_version <= version:
                count = self._draw(st.integers(0, 3))
                extra = self._draw(st.integers(0, 2))
                size = group.block_length + extra
                parts.append(struct.pack(f"{self.prefix}2H", size, count))
                parts += [self._body(group, size, version) for _ in range(count)]
        for data in body.var_data:
            if data.since_version <= version:
                value = self._draw(st.binary(max_size=6))
                parts.append(struct.pack(self.prefix + data.length.primitive.code, len(value)))
                parts.append(value)
        return b"".join(parts)

    def _block(self, length: int) -> bytes:
        # Noise alone would rarely contain a null value, a letter or a known number.
        pieces = st.sampled_from(
            [bytes(8), b"\xff" * 8, b"P", b"E", b"\0\1", b"\1\0", b"\x02\xbc", b"\0\0\0\7",
             b"\7\0\0\0", b"\x80", b"\x7f\xc0\0\0", b"\0\0\xc0\x7f", b"caf\xe9\0"]
        )  # fmt: skip
        parts = self._draw(st.lists(st.one_of(pieces, st.binary(max_size=12)), max_size=20))
        noise: bytes = b"".join(parts) + self._draw(st.binary(min_size=16, max_size=16)) * 20
        return noise[:length]


def expected(schema: Schema, payloads: list[bytes | None]) -> list[tuple[str, Any] | bool | None]:
    """The values that the reference reads; False for a malformed payload."""
    rows: list[tuple[str, Any] | bool | None] = []
    for payload in payloads:
        try:
            rows.append(None if payload is None else Reader(schema, payload).message())
        except Malformed:
            rows.append(False)
    return rows


def same(ours: Any, theirs: Any) -> bool:
    """Compare values as Python objects; a NaN equals a NaN."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return type(ours) is type(theirs) and bool(ours == theirs)


MALFORMED: tuple[Literal["fail", "drop", "null"], ...] = ("fail", "drop", "null")


def check_rows(schema: Schema, payloads: list[bytes | None], template: str | None) -> None:
    """Decode only the selected rows and some of the columns, and compare each payload."""
    array = pa.array(payloads, pa.binary())
    decoder = PayloadSchema.from_schema(schema, template)
    with_errors = PayloadSchema.from_schema(schema, template, error_column="error")
    whole = with_errors.decode_payloads(array).to_pylist()
    names = decoder.arrow_schema.names[::2]
    wrong = [row for row, values in enumerate(whole) if values["error"] is not None]
    others = {
        row
        for row, values in enumerate(expected(schema, payloads))
        if payloads[row] is not None
        and row not in wrong
        and (not isinstance(values, tuple) or template not in (None, values[0]))
    }
    for malformed, keep_others in product(MALFORMED, (False, True)):
        rows = list(range(len(payloads)))
        if malformed == "fail":
            rows = rows[: next(iter(wrong), len(rows))]
        elif malformed == "drop":
            rows = [row for row in rows if row not in wrong]
        if not keep_others:
            rows = [row for row in rows if row not in others]
        decoded = decoder.choose(names).decode_messages(
            array, malformed=malformed, keep_others=keep_others
        )
        decoded.batch.validate(full=True)
        count = decoded.batch.num_rows
        retained = list(range(count)) if decoded.kept is None else decoded.kept.to_pylist()
        assert (retained, count) == (rows, len(rows))
        assert [row for row, _ in decoded.problems] == (wrong[:1] if malformed == "fail" else wrong)
        assert all(text == whole[row]["error"] for row, text in decoded.problems)
        assert decoded.batch.schema.names == names
        for row, values in zip(rows, decoded.batch.to_pylist(), strict=True):
            assert same(values, {name: whole[row][name] for name in names})


def check(schema: Schema, payloads: list[bytes | None]) -> None:
    """Decode with one template and with all, and compare each value with the reference."""
    array = pa.array(payloads, pa.binary())
    rows = expected(schema, payloads)
    every = PayloadSchema.from_schema(schema, error_column="error").decode_payloads(array)
    every.validate(full=True)
    one = PayloadSchema.from_schema(schema, "Car", error_column="error").decode_payloads(array)
    one.validate(full=True)
    for row, single, values in zip(every.to_pylist(), one.to_pylist(), rows, strict=True):
        assert (row.pop("error") is not None) is (values is False)
        error = single.pop("error")
        name, fields = values if isinstance(values, tuple) else (None, None)
        assert row.pop("template") == name
        for template, found in row.items():
            assert same(found, fields if template == name else None), template
        if name == "Car":
            assert error is None
            assert same(single, fields)
        else:
            assert set(single.values()) == {None}
    check_rows(schema, payloads, "Car")
    check_rows(schema, payloads, None)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_valid_payloads(schema: Schema, data: st.DataObject) -> None:
    """All versions, templates and null payloads: every value equals that of the reference."""
    writer = Writer(schema, data.draw)
    count = data.draw(st.integers(0, 4))
    payloads: list[bytes | None] = [writer.payload() for _ in range(count)]
    if data.draw(st.booleans()):
        payloads.insert(data.draw(st.integers(0, count)), None)
    check(schema, payloads)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_payloads(schema: Schema, data: st.DataObject) -> None:
    """Truncated, with flipped bytes, or noise: an error in the rows that the reference refuses, and
    all other rows are complete."""
    writer = Writer(schema, data.draw)
    damaged = bytearray(writer.payload())
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    check(
        schema,
        [writer.payload(), bytes(damaged), bytes(damaged[:cut]), data.draw(st.binary(max_size=40)),
         writer.payload()],
    )  # fmt: skip


def tick(schema: Schema, at: int = 1, fuel: bytes = b"P") -> bytes:
    """A message of the smallest template."""
    prefix = Writer(schema, lambda strategy: None).prefix
    return struct.pack(f"{prefix}4Hqc", 9, 2, schema.id, 3, at, fuel)


def test_batch_with_other_columns(schema: Schema) -> None:
    """The columns of a batch precede the new ones; a duplicate name is refused."""
    ticks = PayloadSchema.from_schema(schema, 2)
    assert pickle.loads(pickle.dumps(ticks)) == ticks
    batch = pa.record_batch(
        {"position": [32, 96], "payload": [tick(schema, 5), tick(schema, -6, b"\0")]}
    )
    decoded = pickle.loads(pickle.dumps(ticks)).decode(batch)
    assert decoded.to_pydict() == {"position": [32, 96], "at": [5, -6], "fuel": ["PETROL", None]}
    assert decoded.schema == pa.schema([batch.schema.field(0), *ticks.arrow_schema])
    large = pa.record_batch({"data": batch.column(1).cast(pa.large_binary())})
    assert ticks.decode(large, "data").to_pydict()["at"] == [5, -6]
    assert ticks.decode(batch.slice(1)).to_pydict()["at"] == [-6]
    with pytest.raises(ConfigurationError, match="no column 'data': expected one of position, p"):
        ticks.decode(batch, "data")
    with pytest.raises(ConfigurationError, match=r"both .* have columns named at"):
        ticks.decode(batch.rename_columns(["at", "payload"]))
    with pytest.raises(CodecError, match="payloads must be binary, not double"):
        ticks.decode_payloads(pa.array([1.5]))
    with pytest.raises(CodecError, match="an array of pyarrow, not ChunkedArray: decode each of"):
        ticks.decode_payloads(pa.chunked_array([batch.column(1)]))
    with pytest.raises(CodecError, match="not list"):
        ticks.decode_payloads([b""])


def test_numbers_instead_of_names(schema: Schema) -> None:
    """Enums and sets as numbers, on request."""
    ticks = PayloadSchema.from_schema(schema, "Tick", enums="number")
    payloads = pa.array([tick(schema, fuel=fuel) for fuel in (b"P", b"x", b"\0")])
    assert ticks.decode_payloads(payloads).to_pydict()["fuel"] == [80, 120, None]
    named = PayloadSchema.from_schema(schema, "Tick").decode_payloads(payloads)
    assert named.to_pydict()["fuel"] == ["PETROL", "120", None]
    cars = PayloadSchema.from_schema(schema, "Car", sets="number").arrow_schema
    assert (cars.field("extras").type, cars.field("wide").type) == (pa.int16(), pa.uint64())


def test_errors_have_row_and_offset(schema: Schema) -> None:
    """A truncated payload is an error with its row, or a row of nulls with the error in it."""
    payloads = pa.array([tick(schema), tick(schema)[:12], tick(schema)[:7], tick(schema)])
    message = "Tick: a block of 9 bytes at byte 8 ends after the payload, which has 12 bytes"
    with pytest.raises(CodecError, match=f"payload of row 1: {message}"):
        PayloadSchema.from_schema(schema, "Tick").decode_payloads(payloads)
    with_errors = PayloadSchema.from_schema(schema, "Tick", error_column="_corrupt")
    columns = with_errors.decode_payloads(payloads).to_pydict()
    assert columns["at"] == [1, None, None, 1]
    assert columns["_corrupt"] == [
        None, message, "a payload of 7 bytes has no whole message header (8 bytes)", None,
    ]  # fmt: skip
    with pytest.raises(CodecError, match="no message 'Tock'"):
        PayloadSchema.from_schema(schema, "Tock")
    with pytest.raises(ConfigurationError, match="already have a column 'fuel'"):
        PayloadSchema.from_schema(schema, "Tick", error_column="fuel")


def test_damaged_numbers_in_a_schema(schema: Schema) -> None:
    """A schema that the file's reader accepts but no decoder can use is a CodecError."""
    ticks = schema.message("Tick")
    fields = (replace(ticks.fields[0], offset=-3), *ticks.fields[1:])
    damaged = replace(schema, messages=(replace(ticks, fields=fields),))
    with pytest.raises(CodecError, match="the schema is damaged"):
        PayloadSchema.from_schema(damaged, "Tick").decode_payloads(pa.array([tick(schema)]))


def test_schema_of_two_files(tmp_path: Path) -> None:
    """Types may be in a separate file, beside the schema."""
    begin, end = SCHEMA.index("<types>"), SCHEMA.index("</types>") + len("</types>")
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="types.xml"/>'
    (tmp_path / "types.xml").write_text(SCHEMA[begin:end])
    (tmp_path / "garage.xml").write_text(SCHEMA[:begin] + include + SCHEMA[end:])
    ticks = PayloadSchema.from_file(tmp_path / "garage.xml", "Tick")
    assert ticks.arrow_schema.names == ["at", "fuel"]


def test_entries_without_bytes(schema: Schema) -> None:
    """A count of group entries without bytes cannot make the decoder use up the memory."""
    prefix = Writer(schema, lambda strategy: None).prefix
    car = schema.message("Car")
    start = struct.pack(f"{prefix}4H", car.block_length, car.id, schema.id, 2)
    start += bytes(car.block_length) + bytes(3 * 4)
    decoder = PayloadSchema.from_schema(schema, "Car")
    marks = struct.pack(f"{prefix}2H", 0, 3) + bytes(1 + 4)
    batch = decoder.decode_payloads(pa.array([start + marks]))
    assert batch.to_pydict()["marks"] == [[{"mark": None}] * 3]
    marks = struct.pack(f"{prefix}2H", 0, 65_535) + bytes(1 + 4)
    with pytest.raises(CodecError, match=r"marks: more group entries \(65535 here\) than"):
        decoder.decode_payloads(pa.array([start + marks]))
    marks = struct.pack(f"{prefix}2H", 3, 65_535) + bytes(1 + 4)
    with pytest.raises(CodecError, match=r"marks: a block of 3 bytes at byte \d+ ends after"):
        decoder.decode_payloads(pa.array([start + marks]))
