"""Batches of decoded payloads are valid, and pass unchanged through writers of Parquet."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from support.arrow_nulls import check_batch
from support.builders.random_payloads import RandomPayloads
from support.builders.random_schema import random_schema

from aerotape.codecs.payload_plan import Types
from aerotape.codecs.payloads import PayloadSchema
from aerotape.codecs.schema import Schema
from aerotape.codecs.schema_files import load_schema
from aerotape.errors import SchemaError

ROWS = 24
# A few random schemas have blocks of 100 MB: 24 of these do not fit in an array.
MAX_BYTES = 1 << 24
# A seed cannot be made simpler.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def through_pyarrow(table: pa.Table, folder: Path) -> pa.Table:
    pq.write_table(table, folder / "file")
    return pq.read_table(folder / "file")


def through_delta(table: pa.Table, folder: Path) -> pa.Table:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(folder / "table"), table)
    return deltalake.DeltaTable(str(folder / "table")).to_pyarrow_table()


def through_polars(table: pa.Table, folder: Path) -> pa.Table:
    polars = pytest.importorskip("polars")
    polars.from_arrow(table).write_parquet(folder / "file")
    return polars.read_parquet(folder / "file").to_arrow()


def through_duckdb(table: pa.Table, folder: Path) -> pa.Table:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("batch", table)
        connection.execute(f"COPY batch TO '{folder / 'file'}' (FORMAT parquet)")
    return pq.read_table(folder / "file")


WRITERS: dict[str, Callable[[pa.Table, Path], pa.Table]] = {
    "pyarrow": through_pyarrow,
    "deltalake": through_delta,
    "polars": through_polars,
    "duckdb": through_duckdb,
}


def valid_schema(seed: int, folder: Path) -> Schema:
    """A random schema; not every one that is generated is valid."""
    path = folder / "schema.xml"
    path.write_text(random_schema(seed))
    try:
        return load_schema(path)
    except SchemaError:
        assume(False)
        raise


def batches(
    schema: Schema, seed: int, types: Types = "semantic"
) -> Iterator[pa.RecordBatch]:
    """Decode payloads with each choice of columns and rows."""
    rng = random.Random(seed)
    made = RandomPayloads(schema, rng).batch(ROWS)
    assume(sum(len(payload) for payload in made if payload) <= MAX_BYTES)
    payloads = pa.array(made, pa.binary())
    for template in (None, *(message.name for message in schema.messages)):
        decoder = PayloadSchema.from_schema(
            schema,
            template,
            enums=rng.choice(("name", "number")),
            sets=rng.choice(("struct", "struct", "number")),
            types=types,
        )
        for malformed in ("drop", "null"):
            for keep_others in (True, False):
                yield decoder.decode_messages(
                    payloads, malformed=malformed, keep_others=keep_others
                ).batch
        some = frozenset(name for name in decoder.arrow_schema.names if rng.random() < 0.5)
        chosen = decoder.choose(some)
        yield chosen.decode_messages(payloads, malformed="null", keep_others=True).batch
        errors = PayloadSchema.from_schema(schema, template, error_column="_error", types=types)
        yield errors.decode_payloads(payloads)


@settings(max_examples=25, deadline=None, phases=PHASES)
@given(st.integers(0, 1 << 32), st.integers(0, 1 << 32))
def test_batches_are_valid(
    tmp_path_factory: pytest.TempPathFactory, schema_seed: int, seed: int
) -> None:
    """Of random schemas, with payloads of several messages, of others and of none."""
    schema = valid_schema(schema_seed, tmp_path_factory.mktemp("schema"))
    for batch in batches(schema, seed):
        check_batch(batch)


@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=5, deadline=None, phases=PHASES)
@given(schema_seed=st.integers(0, 1 << 32), seed=st.integers(0, 1 << 32))
def test_batches_pass_through_writers(writer: str, schema_seed: int, seed: int) -> None:
    """What each of them writes has the same rows and, converted back, the same types."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        schema = valid_schema(schema_seed, folder)
        # Delta tables have no nanoseconds.
        made = batches(schema, seed, "wire" if writer == "deltalake" else "semantic")
        found = [each for each in made if each.num_rows and each.num_columns]
        for number, batch in enumerate(random.Random(seed).sample(found, min(len(found), 3))):
            (folder / str(number)).mkdir()
            table = pa.Table.from_batches([batch])
            read = WRITERS[writer](table, folder / str(number))
            # As text, because NaN is not equal to itself.
            assert repr(read.to_pylist()) == repr(table.to_pylist())
            assert repr(read.cast(table.schema).to_pylist()) == repr(table.to_pylist())
            if writer in ("pyarrow", "deltalake"):
                assert read.schema.equals(table.schema)
