"""Recordings as tables with the fields of their payloads as columns, without Spark."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording
from support.builders.orders import SCHEMA, cancel, foreign, position, some_orders
from support.builders.segment_builder import SegmentBuilder, crc32

from aerotape.codecs.payloads import PayloadSchema
from aerotape.codecs.sbe_tool import run_sbe_tool
from aerotape.errors import CodecError, ConfigurationError, SegmentError
from aerotape.replay.offline.directory import Recording, open_directory
from aerotape.replay.offline.reader import COLUMNS

pa = pytest.importorskip("pyarrow")

TYPED = ["orderId", "side", "conditions", "sbe_position", "sbe_Length", "price", "fills", "note"]
ORDERS = some_orders(120)


@pytest.fixture(scope="module")
def ir(jars: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The IR that sbe-tool generates from the schema of orders."""
    folder = tmp_path_factory.mktemp("orders")
    (folder / "orders.xml").write_text(SCHEMA)
    return run_sbe_tool(folder / "orders.xml", jars["sbe-all"], folder)


def record(archive_dir: Path, *payloads: bytes, **settings: Any) -> SegmentBuilder:
    """Write a recording of these payloads."""
    builder = SegmentBuilder(start_position=98_304, **settings)
    for number, payload in enumerate(payloads):
        builder.message(payload, reserved_value=number)
    add_recording(archive_dir, builder)
    return builder


def recording(archive_dir: Path) -> Recording:
    return open_directory(archive_dir).recording(0)


def test_fields_are_additional_columns(ir: Path, tmp_path: Path) -> None:
    """Fields have their names, except for names that the table uses; in batches of any size; all
    else as without a schema, and no payload."""
    record(tmp_path, *(order.encode() for order in ORDERS))
    plain = [name for name in COLUMNS if name not in ("payload", "_corrupt")]
    untyped = recording(tmp_path).to_arrow(columns=plain).to_pylist()
    expected = [row | order.columns() for row, order in zip(untyped, ORDERS, strict=True)]
    table = recording(tmp_path).to_arrow(schema=ir, template="Order")
    assert table.column_names == plain + TYPED
    assert table.to_pylist() == expected
    reader = recording(tmp_path).to_batches(schema=ir, template=1, batch_rows=7)
    assert reader.schema == table.schema
    assert pa.Table.from_batches(reader).to_pylist() == expected


def test_columns_are_chosen_among_all(ir: Path, tmp_path: Path) -> None:
    """Columns of either kind in the given order, the payload only if selected; a group or text that
    is left out does not shift the fields after it."""
    record(tmp_path, *(order.encode() for order in ORDERS))
    columns = ["note", "length", "payload", "orderId", "position"]
    table = recording(tmp_path).to_arrow(schema=ir, template="Order", columns=columns)
    assert table.column_names == columns
    untyped = recording(tmp_path).to_arrow(columns=columns[1:3] + columns[4:]).to_pylist()
    assert table.to_pylist() == [
        {"note": order.note, "orderId": order.order_id, **row}
        for order, row in zip(ORDERS, untyped, strict=True)
    ]
    only = recording(tmp_path).to_arrow(schema=ir, template="Order", columns=["fills"])
    assert only.to_pydict() == {"fills": [order.row()["fills"] for order in ORDERS]}
    counted = recording(tmp_path).to_arrow(schema=ir, template="Order", columns=["length"])
    assert counted.num_rows == len(ORDERS)
    with pytest.raises(ConfigurationError, match=r"unknown column 'Price', do you mean price\?"):
        recording(tmp_path).to_arrow(schema=ir, template="Order", columns=["Price"])
    with pytest.raises(ConfigurationError, match="duplicate column in note, note"):
        recording(tmp_path).to_arrow(schema=ir, template="Order", columns=["note", "note"])
    with pytest.raises(ConfigurationError, match="'note' is not a list of names"):
        recording(tmp_path).to_arrow(schema=ir, template="Order", columns="note")


MIXED = (
    cancel(8), ORDERS[1].encode(), foreign(), ORDERS[2].encode(), position(-3), ORDERS[3].encode(),
)  # fmt: skip


def test_other_messages_are_no_rows_or_rows_of_nulls(ir: Path, tmp_path: Path) -> None:
    """Messages of other templates are left out, or null with `others`."""
    builder = record(tmp_path, *MIXED)
    positions = [message.position for message in builder.messages]
    columns = ["orderId", "position", "note"]
    dropped = recording(tmp_path).to_arrow(schema=ir, template="Order", columns=columns)
    assert dropped.to_pydict() == {
        "orderId": [1, 2, 3],
        "position": [positions[1], positions[3], positions[5]],
        "note": [order.note for order in ORDERS[1:4]],
    }
    rows = recording(tmp_path).to_arrow(schema=ir, template="Order", columns=columns, others="null")
    assert rows.to_pydict() == {
        "orderId": [None, 1, None, 2, None, 3],
        "position": positions,
        "note": [None, ORDERS[1].note, None, ORDERS[2].note, None, ORDERS[3].note],
    }
    cancels = recording(tmp_path).to_arrow(schema=ir, template="Cancel", columns=["orderId"])
    assert cancels.to_pydict() == {"orderId": [8]}
    with pytest.raises(ConfigurationError, match="others: 'keep' is not one of drop, null"):
        recording(tmp_path).to_arrow(schema=ir, others="keep")  # type: ignore[arg-type]


def test_all_templates_are_structs(ir: Path, tmp_path: Path) -> None:
    """Without a template each message is a struct, and the column `template` has its name."""
    record(tmp_path, *MIXED)
    columns = ["template", "Order", "Cancel", "sbe_Position", "reserved_value"]
    table = recording(tmp_path).to_arrow(schema=ir, columns=columns)
    nothing = {"Order": None, "Cancel": None, "sbe_Position": None}
    expected: list[dict[str, Any]] = [
        {"template": "Cancel", "Cancel": {"orderId": 8}, "reserved_value": 0},
        {"template": "Order", "Order": ORDERS[1].row(), "reserved_value": 1},
        {"template": "Order", "Order": ORDERS[2].row(), "reserved_value": 3},
        {"template": "Position", "sbe_Position": {"size": -3}, "reserved_value": 4},
        {"template": "Order", "Order": ORDERS[3].row(), "reserved_value": 5},
    ]
    assert table.to_pylist() == [nothing | row for row in expected]
    whole = recording(tmp_path).to_arrow(schema=ir, others="null")
    assert whole.column_names[-4:] == ["template", "Order", "Cancel", "sbe_Position"]
    assert whole.column("template").to_pylist()[2] is None
    sizes = recording(tmp_path).to_arrow(schema=ir, columns=["sbe_Position"])
    assert sizes.to_pydict() == {"sbe_Position": [None, None, None, {"size": -3}, None]}


def test_the_mode_decides_about_malformed_payloads(ir: Path, tmp_path: Path) -> None:
    """A payload cut short is an error with recording and position, after the rows before it; or
    is left out; or a row of nulls with its payload and the error."""
    whole = [order.encode() for order in ORDERS[:6]]
    builder = record(tmp_path, cancel(1), *whole[:3], whole[3][:20], b"short", *whole[4:])
    positions = [message.position for message in builder.messages]
    complaints = [
        f"recording 0, position {positions[4]}: the payload does not match its schema: Order: a "
        "block of 24 bytes at byte 8 ends after the payload, which has 20 bytes",
        f"recording 0, position {positions[5]}: the payload does not match its schema: a payload "
        "of 5 bytes has no whole message header (8 bytes)",
    ]

    batches = recording(tmp_path).to_batches(schema=ir, template="Order", columns=["orderId"])
    assert next(batches).to_pydict() == {"orderId": [0, 1, 2]}
    with pytest.raises(CodecError) as error:
        next(batches)
    assert str(error.value) == complaints[0]

    dropped = recording(tmp_path).to_arrow(
        schema=ir, template="Order", columns=["orderId", "position"], mode="DROPMALFORMED"
    )
    assert dropped.to_pydict() == {
        "orderId": [0, 1, 2, 4, 5],
        "position": positions[1:4] + positions[6:],
    }

    permissive = recording(tmp_path).to_arrow(schema=ir, template="Order", mode="PERMISSIVE")
    assert permissive.column_names[-1] == "_corrupt"
    chosen = ["orderId", "note", "payload", "_corrupt", "position"]
    rows = recording(tmp_path).to_arrow(
        schema=ir, template="Order", columns=chosen, mode="PERMISSIVE"
    )
    assert rows.column("_corrupt").to_pylist() == [None] * 3 + complaints + [None] * 2
    assert rows.column("orderId").to_pylist() == [0, 1, 2, None, None, 4, 5]
    assert rows.column("position").to_pylist() == positions[1:]
    assert rows.column("payload").to_pylist() == [
        *whole[:3],
        whole[3][:20],
        b"short",
        *whole[4:],
    ]
    table = recording(tmp_path).to_arrow(
        schema=ir, template="Order", columns=chosen, mode="PERMISSIVE", others="null"
    )
    assert table.column("orderId").to_pylist() == [None, 0, 1, 2, None, None, 4, 5]
    assert table.column("_corrupt").to_pylist() == [None] * 4 + complaints + [None] * 2


def test_damaged_frames_and_malformed_payloads_together(ir: Path, tmp_path: Path) -> None:
    """With a checksum as well, `_corrupt` has both kinds, and FAILFAST ends at the first."""
    whole = [order.encode() for order in ORDERS[:4]]
    builder = record(tmp_path, whole[0], whole[1], whole[2][:9], whole[3], checksum=crc32)
    victim = builder.messages[1].position
    path = builder.segment_path(tmp_path, victim)
    data = bytearray(path.read_bytes())
    data[victim - builder.segment_base(victim) + 33] ^= 1
    path.write_bytes(data)

    def table(mode: str) -> Any:
        return recording(tmp_path).to_arrow(
            checksum="crc-32", schema=ir, template="Order", mode=mode,  # type: ignore[arg-type]
            columns=["orderId", "_corrupt"],
        ).to_pydict()  # fmt: skip

    assert table("DROPMALFORMED") == {"orderId": [0, 3], "_corrupt": [None, None]}
    rows = table("PERMISSIVE")
    assert rows["orderId"] == [0, None, None, 3]
    assert "frame checksum does not match" in rows["_corrupt"][1]
    assert f"position {builder.messages[2].position}: the payload" in rows["_corrupt"][2]
    with pytest.raises(SegmentError, match="frame checksum does not match"):
        table("FAILFAST")


def test_xml_and_ir_are_distinguished_by_content(ir: Path, tmp_path: Path) -> None:
    """Any file name and any XML encoding work, with the same columns; other files are refused."""
    record(tmp_path, ORDERS[5].encode())
    expected = recording(tmp_path).to_arrow(schema=ir, template="Order")
    utf16 = tmp_path / "orders-16.xml"
    utf16.write_text(SCHEMA.replace("UTF-8", "UTF-16", 1), encoding="utf-16")
    schema = PayloadSchema.from_file(utf16, "Order")
    assert recording(tmp_path).to_arrow(schema=schema) == expected
    renamed = tmp_path / "orders.xml"
    renamed.write_bytes(ir.read_bytes())
    assert recording(tmp_path).to_arrow(schema=renamed, template="Order") == expected
    renamed.write_bytes(b"orders: yes")
    with pytest.raises(CodecError, match=r"orders\.xml:1: not well-formed XML"):
        PayloadSchema.from_file(renamed)
    with pytest.raises(ConfigurationError, match=r"cannot read the SBE schema .*directory"):
        PayloadSchema.from_file(tmp_path)
    with renamed.open("wb") as file:
        file.truncate((8 << 20) + 1)
    with pytest.raises(CodecError, match=r"orders\.xml: the schema is larger than 8 MiB"):
        PayloadSchema.from_file(renamed)


def test_bad_arguments_are_refused(ir: Path, tmp_path: Path) -> None:
    """Invalid arguments are refused before anything is read."""
    record(tmp_path, ORDERS[0].encode())
    read = PayloadSchema.from_file(ir, "Order")
    with pytest.raises(CodecError, match=r"no message 'Trade'; it has Order \(1\), Cancel \(2\)"):
        recording(tmp_path).to_arrow(schema=ir, template="Trade")
    with pytest.raises(ConfigurationError, match=r"cannot read the SBE schema .*No such file"):
        recording(tmp_path).to_arrow(schema=tmp_path / "none.xml")
    with pytest.raises(ConfigurationError, match="template is of a schema: give schema too"):
        recording(tmp_path).to_arrow(template="Order")
    with pytest.raises(ConfigurationError, match="the schema was read already"):
        recording(tmp_path).to_arrow(schema=read, template="Order")
    with_errors = PayloadSchema.from_file(ir, "Order", error_column="wrong")
    with pytest.raises(ConfigurationError, match="read the schema without error_column"):
        recording(tmp_path).to_arrow(schema=with_errors)
    with pytest.raises(ConfigurationError, match="unknown column 'price'"):
        recording(tmp_path).to_arrow(columns=["price"])


def test_the_table_has_the_arguments_of_the_stream() -> None:
    """The defaults are the same, too."""
    stream = inspect.signature(Recording.to_batches).parameters
    table = inspect.signature(Recording.to_arrow).parameters
    assert list(table.values()) == list(stream.values())


def test_duckdb_reads_the_stream(ir: Path, tmp_path: Path) -> None:
    """DuckDB queries typed columns."""
    duckdb = pytest.importorskip("duckdb")
    record(tmp_path, *(order.encode() for order in ORDERS))
    orders = recording(tmp_path).to_batches(schema=ir, template="Order")  # noqa: F841
    rows = duckdb.sql(
        "SELECT side, count(*), sum(price), sum(len(fills)) FROM orders GROUP BY side ORDER BY side"
    ).fetchall()
    sides = {side: [order for order in ORDERS if order.side == side] for side in ("BUY", "SELL")}
    assert rows == [
        (side, len(some), sum(o.price or 0 for o in some), sum(len(o.fills) for o in some))
        for side, some in sides.items()
    ]
