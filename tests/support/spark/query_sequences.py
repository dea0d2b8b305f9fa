"""Random sequences of queries that use the same relations again and again.

The expected rows of each query are computed from `Recording.messages`.

Run as ``python -m support.spark.query_sequences URL ARCHIVE_DIR FOLDER SEED QUERIES`` with the URL
of a session of Spark Connect; it prints the number of queries with the expected rows.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aerotape.replay.offline.directory import open_directory
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
NAMES: Final = (
    "recording_id", "position", "end_position", "stream_id", "session_id", "length"
)  # fmt: skip


class Row(NamedTuple):
    """The columns of a message that queries use."""

    recording_id: int
    position: int
    end_position: int
    stream_id: int
    session_id: int
    length: int


Rows = Counter[Row]
Condition = tuple[str, Callable[[Row], bool]]


@dataclass
class Relation:
    """A relation that queries share.

    Attributes:
        frame: its DataFrame, of which all queries are derived unless they use the name.
        rows: the expected rows.
        name: of the table or view; "" if there is none.
    """

    frame: DataFrame
    rows: Rows
    name: str = ""


def add_recordings(archive_dir: Path) -> None:
    """Add three recordings of two streams, one with a part of its positions, and an empty one."""
    add_recording(archive_dir, fill(SegmentBuilder(stream_id=10, session_id=5), 30))
    add_recording(archive_dir, fill(SegmentBuilder(stream_id=11), 20, seed=2))
    builder = fill(SegmentBuilder(stream_id=10, start_position=98_304), 12, seed=3)
    add_recording(archive_dir, builder)
    add_recording(archive_dir, SegmentBuilder(stream_id=12))


def rows_of(archive_dir: Path) -> Rows:
    """Return a row for each message of a directory."""
    return Counter(
        Row(*(getattr(message, name) for name in NAMES))
        for recording in open_directory(archive_dir).recordings()
        for message in recording.messages()
    )


class Sequence:
    """A sequence of queries of shared relations of one archive directory."""

    def __init__(self, spark: SparkSession, archive_dir: Path, seed: int) -> None:
        self._spark = spark
        self._archive_dir = archive_dir
        self._random = Random(seed)
        self._all = rows_of(archive_dir)
        self._relations: list[Relation] = []
        self._earlier: list[tuple[DataFrame, Rows, str]] = []

    def run(self, queries: int, pushdown: bool | None) -> None:
        """Make relations and query them (AssertionError: a row is wrong, missing or repeated).

        Args:
            pushdown: whether Spark passes filters to data sources; None: chosen for each query.
        """
        for make in (self._load, self._table, self._view, self._temporary, self._named, self._load):
            self._relations.append(make())
        done = []
        for _ in range(queries):
            pushes = self._random.random() < 0.5 if pushdown is None else pushdown
            self._spark.conf.set(PUSHDOWN, str(pushes).lower())
            frame, expected, text = self._random.choice([self._query] * 4 + [self._again])()
            found = Counter(Row(*row) for row in frame.select(*NAMES).collect())
            done.append(f"{text} (pushdown {pushes}): {found.total()} rows")
            assert found == expected, "\n".join(
                [*done, f"expected {expected.total()} rows", f"missing: {expected - found}",
                 f"too many: {found - expected}"]
            )  # fmt: skip
            self._earlier.append((frame, expected, text))

    def _query(self) -> tuple[DataFrame, Rows, str]:
        """Filter one or two relations, often the same one, and combine them."""
        first = self._random.choice(self._relations)
        second = self._random.choice([first, self._random.choice(self._relations)])
        a, rows, left = self._filtered(first)
        b, others, right = self._filtered(second)
        kind = self._random.choice(
            ["alone", "union", "exceptAll", "intersectAll", "left_semi", "left_anti", "counts"]
        )
        text = f"{left} {kind} {right}"
        match kind:
            case "union":
                return a.union(b), rows + others, text
            case "exceptAll":
                return a.exceptAll(b), rows - others, text
            case "intersectAll":
                return a.intersectAll(b), rows & others, text
            case "left_semi" | "left_anti":
                there = {row[:2] for row in others}
                is_wanted = kind == "left_semi"
                joined = a.join(b.select("recording_id", "position"), list(NAMES[:2]), kind)
                kept = {r: n for r, n in rows.items() if (r[:2] in there) is is_wanted}
                return joined, Counter(kept), text
            case "counts":
                return *self._counts(a, rows, b, others), text
        return a, rows, left

    def _counts(
        self, a: DataFrame, rows: Rows, b: DataFrame, others: Rows
    ) -> tuple[DataFrame, Rows]:
        """Count two relations in subqueries of one statement, as a row of two numbers."""
        a.createOrReplaceTempView("counted_a")
        b.createOrReplaceTempView("counted_b")
        counted = self._spark.sql(
            "SELECT (SELECT count(*) FROM counted_a) AS recording_id, "
            "(SELECT count(*) FROM counted_b) AS position, "
            "0 AS end_position, 0 AS stream_id, 0 AS session_id, 0 AS length"
        )
        return counted, Counter([Row(rows.total(), others.total(), 0, 0, 0, 0)])

    def _again(self) -> tuple[DataFrame, Rows, str]:
        """Run an earlier query again, or store a relation's rows in memory, or no longer."""
        if self._earlier and self._random.random() < 0.5:
            frame, rows, text = self._random.choice(self._earlier)
            return frame, rows, f"again {text}"
        relation = self._random.choice(self._relations)
        is_stored = self._random.random() < 0.6
        if relation.name and self._random.random() < 0.5:
            self._spark.sql(f"{'CACHE' if is_stored else 'UNCACHE'} TABLE {relation.name}")
        elif is_stored:
            relation.frame.cache()
        else:
            relation.frame.unpersist()
        return relation.frame, relation.rows, f"{'cache' if is_stored else 'uncache'}"

    def _filtered(self, relation: Relation) -> tuple[DataFrame, Rows, str]:
        """Apply up to two conditions to a relation, in SQL if it has a name."""
        rows, texts = relation.rows, []
        for text, holds in self._conditions(self._random.randrange(3)):
            rows = Counter({row: count for row, count in rows.items() if holds(row)})
            texts.append(f"({text})")
        condition = " AND ".join(texts) or "true"
        name = relation.name or f"frame {self._relations.index(relation)}"
        if relation.name and self._random.random() < 0.7:
            frame = self._spark.sql(f"SELECT * FROM {relation.name} WHERE {condition}")
        else:
            frame = relation.frame.where(condition) if texts else relation.frame
        return frame.select(*NAMES), rows, f"{name}[{condition}]"

    def _conditions(self, count: int) -> Iterator[Condition]:
        """Yield conditions on values of some row: some are passed to a data source, some not."""
        for _ in range(count):
            row, other = self._random.choices(list(self._all), k=2)
            yield self._random.choice(_conditions_of(row, other))

    def _options(self) -> tuple[dict[str, str], Rows]:
        """Choose options that select rows, and what they select."""
        row = self._random.choice(list(self._all))
        choices: list[tuple[dict[str, str], Callable[[Row], bool]]] = [
            ({}, lambda _: True),
            ({}, lambda _: True),
            ({"partitionBytes": "64k"}, lambda _: True),
            ({"recordingIds": str(row.recording_id)}, _same(row, "recording_id")),
            ({"streamId": str(row.stream_id)}, _same(row, "stream_id")),
            ({"fromPosition": str(row.position)}, lambda r: r.position >= row.position),
            ({"toPosition": str(row.position)}, lambda r: r.position < row.position),
        ]
        options, holds = self._random.choice(choices)
        return options, Counter({r: count for r, count in self._all.items() if holds(r)})

    def _load(self) -> Relation:
        options, rows = self._options()
        reader = self._spark.read.format("aerotape").options(**options)
        return Relation(reader.load(str(self._archive_dir)), rows)

    def _table(self) -> Relation:
        """A table of the catalog."""
        name, rows = self._create("TABLE")
        return Relation(self._spark.table(name), rows, name)

    def _view(self) -> Relation:
        """A view of the catalog with a filter, of a table that queries use too."""
        table = self._relations[-1]
        [(text, holds)] = self._conditions(1)
        name = f"view_{len(self._relations)}"
        self._spark.sql(f"CREATE VIEW {name} AS SELECT * FROM {table.name} WHERE {text}")
        rows = Counter({row: count for row, count in table.rows.items() if holds(row)})
        return Relation(self._spark.table(name), rows, name)

    def _temporary(self) -> Relation:
        """A temporary view that is made by a statement."""
        name, rows = self._create("TEMPORARY VIEW")
        return Relation(self._spark.table(name), rows, name)

    def _named(self) -> Relation:
        """A temporary view of a DataFrame that queries use too."""
        relation = self._relations[0]
        name = f"named_{len(self._relations)}"
        relation.frame.createOrReplaceTempView(name)
        return Relation(self._spark.table(name), relation.rows, name)

    def _create(self, kind: str) -> tuple[str, Rows]:
        options, rows = self._options()
        name = f"made_{len(self._relations)}"
        given = "".join(f", {key} '{value}'" for key, value in options.items())
        self._spark.sql(
            f"CREATE {kind} {name} USING aerotape OPTIONS (path '{self._archive_dir}'{given})"
        )
        return name, rows


def _same(row: Row, name: str) -> Callable[[Row], bool]:
    return lambda each: bool(getattr(each, name) == getattr(row, name))


def _conditions_of(row: Row, other: Row) -> list[Condition]:
    low, high = sorted((row.position, other.position))
    among = {row.position, other.position}
    return [
        *((f"{n} = {getattr(row, n)}", _same(row, n)) for n in NAMES),
        *((f"{n} = {getattr(row, n)}", _same(row, n)) for n in ("recording_id", "stream_id") * 3),
        (f"recording_id <> {row.recording_id}", lambda r: r.recording_id != row.recording_id),
        (f"position BETWEEN {low} AND {high}", lambda r: low <= r.position <= high),
        (f"position IN ({low}, {high})", lambda r: r.position in among),
        (f"end_position <= {row.end_position}", lambda r: r.end_position <= row.end_position),
        (f"length % 2 = {row.length % 2}", lambda r: r.length % 2 == row.length % 2),
        (
            f"recording_id = {row.recording_id} OR position > {other.position}",
            lambda r: r.recording_id == row.recording_id or r.position > other.position,
        ),
        ("recording_id IS NULL", lambda _: False),
    ]


@contextmanager
def database(spark: SparkSession, folder: Path, name: str = "sequences") -> Iterator[None]:
    """Use a database in a folder; afterwards nothing of the queries is left in the session."""
    spark.sql(f"CREATE DATABASE {name} LOCATION '{folder}'")
    spark.sql(f"USE {name}")
    try:
        yield
    finally:
        spark.catalog.clearCache()
        for table in spark.catalog.listTables():
            if table.isTemporary:
                spark.catalog.dropTempView(table.name)
        spark.conf.unset(PUSHDOWN)
        spark.sql("USE default")
        spark.sql(f"DROP DATABASE {name} CASCADE")


def main() -> None:
    """Run sequences in a session of Spark Connect."""
    from pyspark.sql import SparkSession

    url, archive_dir, folder, seed, queries = sys.argv[1:]
    spark: Any = SparkSession.builder.remote(url).getOrCreate()
    for number, pushdown in enumerate((True, False)):
        with database(spark, Path(folder, str(number))):
            Sequence(spark, Path(archive_dir), int(seed)).run(int(queries), pushdown)
    print(2 * int(queries), "queries")
    spark.stop()


if __name__ == "__main__":
    main()
