"""How table jobs compress payloads."""

from __future__ import annotations

import random
import struct

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

import pyarrow

from aerotape.spark.tables.writer import payload_level

RNG = random.Random(3)
NUMBERS = [struct.pack("<q", number) + RNG.randbytes(56) for number in range(20_000)]
WORDS = [b" ".join(RNG.choices((b"bid", b"ask", b"trade", b"cancel"), k=12)) for _ in range(20_000)]


def column(payloads: list[bytes | None]) -> pyarrow.ChunkedArray:
    return pyarrow.chunked_array([pyarrow.array(payloads, pyarrow.binary())])


def test_incompressible_payloads_use_a_faster_compression() -> None:
    assert payload_level(column([*NUMBERS])) == -1
    assert payload_level(column([*WORDS])) == 1


def test_without_a_sample() -> None:
    assert payload_level(column([])) == 1
    assert payload_level(column([b""])) == 1
    assert payload_level(column([None])) == 1
