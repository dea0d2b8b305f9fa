"""Delta tables with features that a job cannot honour are refused before anything is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

from aerotape.errors import ConfigurationError, StorageError

pytest.importorskip("deltalake")

from deltalake import DeltaTable
from support.spark.table_rig import expected_rows, options, rows_of, run_here

from aerotape.spark.tables.delta import DeltaRecordingTable
from aerotape.spark.tables.job import plan_only

Change = Callable[[Path], None]


def files_below(out: Path) -> set[str]:
    return {str(path) for path in out.rglob("*")}


def commit(out: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Commit a changed protocol and changed metadata, as another writer does."""
    log = sorted((out / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for path in log for line in path.read_text().splitlines()]
    protocol = [each["protocol"] for each in actions if "protocol" in each][-1]
    metadata = [each["metaData"] for each in actions if "metaData" in each][-1]
    change(protocol, metadata)
    text = "\n".join(json.dumps(each) for each in ({"protocol": protocol}, {"metaData": metadata}))
    (out / "_delta_log" / f"{len(log):020}.json").write_text(text)


def property_is(name: str, value: str, writer: int = 7, *features: str) -> Change:
    def change(protocol: dict[str, Any], metadata: dict[str, Any]) -> None:
        metadata["configuration"][name] = value
        protocol["minWriterVersion"] = writer
        if writer == 7:
            protocol["writerFeatures"] = list(features)

    return lambda out: commit(out, change)


def column_has(writer: int, name: str | None = None, value: Any = None, **field: Any) -> Change:
    """Give the column `length` other properties and, with `name`, metadata."""

    def change(protocol: dict[str, Any], metadata: dict[str, Any]) -> None:
        schema = json.loads(metadata["schemaString"])
        [column] = [each for each in schema["fields"] if each["name"] == "length"]
        column.update(field)
        if name is not None:
            column["metadata"][name] = value
        metadata["schemaString"] = json.dumps(schema)
        protocol["minWriterVersion"] = writer

    return lambda out: commit(out, change)


def with_constraint(out: Path) -> None:
    DeltaTable(out).alter.add_constraint({"short": "length < 100000"})


def listed(name: str, *, reader: bool = False) -> Change:
    def change(protocol: dict[str, Any], metadata: dict[str, Any]) -> None:
        protocol["minWriterVersion"] = 7
        protocol["writerFeatures"] = [name]
        if reader:
            protocol["minReaderVersion"] = 3
            protocol["readerFeatures"] = [name]

    return lambda out: commit(out, change)


INVARIANT = json.dumps({"expression": {"expression": "length < 100"}})


@pytest.mark.parametrize(
    ("change", "feature"),
    [
        (with_constraint, r"the CHECK constraint short \(length < 100000\)"),
        (column_has(2, "delta.invariants", INVARIANT), r"an invariant \(length\)"),
        (column_has(2, nullable=False), "NOT NULL on column length"),
        (column_has(4, "delta.generationExpression", "1"), r"a generated column \(length\)"),
        (column_has(6, "delta.identity.start", 1), r"an identity column \(length\)"),
        (property_is("delta.columnMapping.mode", "name", 5), "column mapping"),
        (property_is("delta.enableRowTracking", "true", 7, "rowTracking"), "row tracking"),
        (listed("deletionVectors", reader=True), "deletionVectors"),
        (listed("fromTheFuture"), "fromTheFuture"),
        (listed("fromTheFuture", reader=True), "fromTheFuture"),
    ],
)
def test_a_table_with_a_feature_is_refused(
    change: Change, feature: str, archive_dir: Path, out: Path
) -> None:
    """By its name, in a job and a dry run, and no file is written."""
    add_recording(archive_dir, fill(SegmentBuilder(), 5))
    run_here("delta", archive_dir, out)
    change(out)
    before = files_below(out)
    add_recording(archive_dir, fill(SegmentBuilder(), 5))
    for run in (
        lambda: run_here("delta", archive_dir, out),
        lambda: plan_only(options(archive_dir), DeltaRecordingTable(out)),
    ):
        with pytest.raises((ConfigurationError, StorageError), match=feature) as caught:
            run()
        assert str(out) in str(caught.value)
    assert files_below(out) == before


@pytest.mark.parametrize(
    "change",
    [
        property_is("delta.appendOnly", "true", 2),
        property_is("delta.enableChangeDataFeed", "true", 4),
        property_is("delta.appendOnly", "false", 7, "appendOnly", "invariants", "checkConstraints"),
    ],
)
def test_a_table_with_other_features_is_continued(
    change: Change, archive_dir: Path, out: Path
) -> None:
    """What is not in use, or has no effect on files that are added."""
    add_recording(archive_dir, fill(SegmentBuilder(), 5))
    run_here("delta", archive_dir, out)
    change(out)
    add_recording(archive_dir, fill(SegmentBuilder(), 5))
    assert run_here("delta", archive_dir, out).total("messages") == 5
    assert rows_of("delta", out) == expected_rows(archive_dir)


@pytest.mark.parametrize("others", [{"overwrite": True}, {"replace_changed": True}])
def test_an_append_only_table_refuses_to_replace_rows(
    others: dict[str, Any], archive_dir: Path, out: Path
) -> None:
    """At the first attempt, with the reason; without the option it is continued."""
    add_recording(archive_dir, fill(SegmentBuilder(), 5))
    run_here("delta", archive_dir, out)
    DeltaTable(out).alter.set_table_properties({"delta.appendOnly": "true"})
    before = files_below(out)
    with pytest.raises(ConfigurationError, match=r"append-only \(delta.appendOnly\).*--overwrite"):
        run_here("delta", archive_dir, out, **others)
    assert files_below(out) == before
    assert [each.result for each in run_here("delta", archive_dir, out).recordings] == [
        "up to date"
    ]
