"""Options of the data source."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.builders.orders import SCHEMA
from support.selections import texts_of, values_of

from aerotape.errors import ConfigurationError
from aerotape.replay.offline.columns.names import COLUMN_TYPES, SCOPE_NAMES, table_columns
from aerotape.replay.offline.reader import COLUMNS
from aerotape.replay.offline.selection import OPTIONS, Selection
from aerotape.spark.source.options import (
    DEFAULT_PARTITION_BYTES,
    ReadOptions,
    parse_partition_bytes,
    spell,
)


def test_defaults() -> None:
    """Without options all columns but `_corrupt` are read, without checks."""
    assert ReadOptions.parse({"path": "/a"}) == ReadOptions(
        archive_dir="/a",
        columns=COLUMNS[:-1],
        checksum="none",
        partition_bytes=DEFAULT_PARTITION_BYTES,
    )


def test_spark_and_native_columns_are_the_same() -> None:
    """The scan builds the columns of the Spark schema, in the same order."""
    assert tuple(COLUMN_TYPES) == COLUMNS


def test_every_option_is_parsed_in_any_case() -> None:
    """Names may be in any case, lists may have spaces; ids are sorted and unique."""
    options = ReadOptions.parse(
        {
            "PATH": "file:///a/b",
            "recordingids": "7, 3,3",
            "fromPosition": "64",
            "TOPOSITION": "128",
            "channel": "alias=prices",
            "streamId": "-5",
            "columns": "payload, position",
            "checksum": "CRC-32C",
            "mode": "permissive",
            "partitionBytes": "2m",
        }
    )
    assert options == ReadOptions(
        archive_dir="/a/b",
        recording_ids=(3, 7),
        from_position=64,
        to_position=128,
        channel="alias=prices",
        stream_id=-5,
        columns=("payload", "position"),
        checksum="crc-32c",
        mode="PERMISSIVE",
        partition_bytes=2 << 20,
    )


def test_remote_directories_have_storage_options() -> None:
    """URLs remain URLs, relative paths become absolute, and secrets are not shown."""
    options = ReadOptions.parse(
        {"path": "s3://bucket/a", "storage.region": "eu-west-1", "STORAGE.secret_key": "hush-hush"}
    )
    assert options.archive_dir == "s3://bucket/a"
    assert dict(options.storage.items) == {"region": "eu-west-1", "secret_key": "hush-hush"}
    assert "hush-hush" not in repr(options)
    assert ReadOptions.parse({"path": "tapes"}).archive_dir == str(Path.cwd() / "tapes")


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_is_passed_on(name: str, tmp_path: Path) -> None:
    """Under the name of the data source, in one selection; its schema is read."""
    (tmp_path / "orders.xml").write_text(SCHEMA)
    texts = {spell(each): text for each, text in texts_of(name).items()}
    if "schema" in texts:
        pytest.importorskip("pyspark")
        texts["schema"] = str(tmp_path / "orders.xml")
    options = ReadOptions.parse({"path": "/a", **texts})
    expected = Selection(**(values_of(name) | {k: v for k, v in texts.items() if k == "schema"}))
    assert options.values | {"columns": expected.columns} == expected.values
    assert options.columns == (
        ("position", "length")
        if name == "columns"
        else (
            *table_columns(options.mode, options.payloads),
            *(SCOPE_NAMES if name == "scope_ids" else ()),
        )
    )
    assert (options.payloads is not None) == ("schema" in texts or name == "payload")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"path": ""}, "no archive directory"),
        ({"path": "file://host/a"}, "another machine"),
        ({"path": "s3://"}, "path: 's3://' names no bucket; write s3://BUCKET/FOLDER"),
        ({"recordingId": "1"}, "unknown option 'recordingId', do you mean recordingIds"),
        ({"header": "true"}, "unknown option 'header'"),
        ({"recordingIds": "1,x"}, "recordingIds: 'x' is not a whole number"),
        ({"recordingIds": ","}, "no recording id"),
        ({"fromPosition": "-1"}, "fromPosition: '-1' is not a whole number from 0 to"),
        ({"fromPosition": "64", "toPosition": "32"}, "fromPosition 64 is after toPosition 32"),
        ({"streamId": ""}, "not a whole number"),
        ({"streamId": "2147483648"}, "streamId: '2147483648' is not a whole number"),
        ({"columns": "payload,colour"}, "unknown column 'colour'"),
        ({"columns": "length,length"}, "duplicate column"),
        ({"columns": " "}, "no column"),
        ({"checksum": "md5"}, "checksum: 'md5' is not one of none, crc-32, crc-32c"),
        ({"mode": "LENIENT", "checksum": "crc-32"}, "mode: unknown mode 'LENIENT'"),
        ({"partitionBytes": "0"}, "is not a positive number"),
        ({"partitionBytes": "1" * 5000}, "is not a positive number"),
        ({"schema": "/none.xml"}, "cannot read the SBE schema /none.xml"),
        ({"schema": "file://host/car.xml"}, "schema: .* names a file of another machine"),
        ({"template": "1"}, "template is of a schema: give schema too"),
        ({"schema": "/car.xml", "sets": "bits"}, "sets: 'bits' is not one of struct, number"),
        ({"payload": "raft-journal", "columns": "term,price"}, "unknown column 'price'"),
    ],
)
def test_bad_options_are_refused(given: dict[str, str], complaint: str) -> None:
    """The error names the option and the reason."""
    with pytest.raises(ConfigurationError, match=complaint):
        ReadOptions.parse({"path": "/a", **given})


@pytest.mark.parametrize(("text", "count"), [("1", 1), ("64k", 65_536), ("1G", 1 << 30)])
def test_partition_bytes_take_suffixes(text: str, count: int) -> None:
    """Sizes are bytes, or have a suffix k, m or g."""
    assert parse_partition_bytes(text, "partitionBytes") == count
