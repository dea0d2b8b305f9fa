"""Benchmark: journals of entities: appends, reads, replicators, Spark.

    python bench/entities.py [--events N] [--entities N] [--cases NAME …] [--rounds N]

Events have 256 bytes of payload in JSON; each append has one event. `append` is one caller that
pipelines its appends to an archive with an embedded driver. `read` reads one of all entities with a
replicated head from SQLite, in milliseconds. `sqlite` and `postgresql` are the replicator that
follows the log, from the archive into an empty store; `spark` computes all tables from the same
archive directory with two cores, and writes them as Parquet. Figures are medians of the rounds.
"""

from __future__ import annotations

import random
import shutil
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import aerotape
from aerotape.codecs.entity import Event
from aerotape.entity.replicator import Replicator
from aerotape.entity.stores.url import open_store
from bench.running import Report, memory_folder, options_parser

CASES = ("append", "sqlite", "read", "postgresql", "spark")
LINE = "{case:10} {value:12.1f} {unit}"
TOPIC = "orders"
PROPERTIES = {
    "aeron.archive.control.channel.enabled": "false",
    "aeron.archive.recording.events.enabled": "false",
    "aeron.ipc.term.buffer.length": str(64 << 20),
    "aeron.term.buffer.sparse.file": "true",
    "aeron.archive.low.storage.space.threshold": "1m",
}
TEXT = "x" * 230


def appends(events: int, entities: int) -> Iterator[tuple[str, list[Event]]]:
    """Yield appends of one event to all entities in turn."""
    for number in range(events):
        seq_nr = number // entities + 1
        payload = b'{"price":%d,"text":"%b"}' % (number, TEXT.encode())
        yield f"entity-{number % entities}", [Event(seq_nr, payload, "json")]


class Bench:
    """An archive with a topic, and its measurements."""

    def __init__(self, folder: Path, options: Namespace) -> None:
        self.options = options
        self.folder = folder
        self.aeron_dir, self.archive_dir = folder / "aeron", folder / "archive"
        self.sqlite = f"sqlite:{folder / 'entities.db'}"

    def connect(self) -> aerotape.ArchiveClient:
        return aerotape.connect(aeron_dir=self.aeron_dir)

    def append(self) -> float:
        """Append all events; return the rate per second."""
        with self.connect() as client, client.entities(TOPIC, 1) as journal:
            given = list(appends(self.options.events, self.options.entities))
            began = time.perf_counter()
            for begin in range(0, len(given), 10_000):
                journal.append_many(given[begin : begin + 10_000])
            return len(given) / (time.perf_counter() - began)

    def replicate(self, url: str) -> float:
        """Replicate the topic into an empty store; return the rate per second."""
        began = time.perf_counter()
        with Replicator(TOPIC, self.connect, lambda: open_store(url, writable=True)) as replicator:
            events = sum(each.events for each in replicator.run(until_caught_up=True))
        assert events == self.options.events
        return events / (time.perf_counter() - began)

    def read(self) -> float:
        """Read single entities; return the median in milliseconds."""
        times = []
        chance = random.Random(1)
        with (
            open_store(self.sqlite) as store,
            self.connect() as client,
            client.entities(TOPIC, 1, store) as journal,
        ):
            for _ in range(200):
                id = f"entity-{chance.randrange(self.options.entities)}"
                began = time.perf_counter()
                assert next(journal.read(id), None) is not None
                times.append(1000 * (time.perf_counter() - began))
        return statistics.median(times)

    def spark(self) -> float:
        """Compute and write all tables; return events per second."""
        from pyspark.sql import SparkSession

        from aerotape.spark.entities.actions import read_actions
        from aerotape.spark.entities.tables import write_tables

        session = SparkSession.getActiveSession()
        assert session is not None
        tables = self.folder / "tables"
        shutil.rmtree(tables, ignore_errors=True)
        began = time.perf_counter()
        write_tables(read_actions(session, self.archive_dir, TOPIC), TOPIC, tables)
        return float(self.options.events / (time.perf_counter() - began))


def measure(bench: Bench, case: str) -> float:
    """Measure a case once."""
    if case == "append":
        return bench.append()
    if case == "read":
        return bench.read()
    if case == "spark":
        return bench.spark()
    namespace = f"?namespace=n{time.monotonic_ns()}"
    if case == "sqlite":
        url = f"sqlite:{bench.folder / f'{namespace[1:]}.db'}"
        rate = bench.replicate(url)
        bench.sqlite = url
        return rate
    from support.stores.postgresql import PostgresqlServer

    with PostgresqlServer() as server:
        return bench.replicate(f"{server.url}{namespace}")


def with_spark(run: Callable[[], None]) -> None:
    """Run with a Spark session of two cores, as a user starts one: its JVM compiles optimised."""
    from pyspark.sql import SparkSession

    from aerotape.spark import register

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
    }
    builder = SparkSession.builder.master("local[2]").appName("aerotape benchmark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        register(session)
        run()
    finally:
        session.stop()


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__, rounds=3)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    options = parser.parse_args()
    report = Report("entities", LINE, as_json=options.json)

    def run(bench: Bench, case: str, rounds: int) -> None:
        value = statistics.median(measure(bench, case) for _ in range(rounds))
        unit = "ms for a read" if case == "read" else "events/s"
        report.add({"case": case, "value": value, "unit": unit})

    with memory_folder() as folder:
        bench = Bench(folder, options)
        with aerotape.Archive.launch(
            dir=bench.archive_dir, aeron_dir=bench.aeron_dir, driver="embedded",
            properties=PROPERTIES,
        ):  # fmt: skip
            run(bench, "append", 1)  # the log that the others read
            for case in CASES[1:4]:
                if case in options.cases or (case == "sqlite" and "read" in options.cases):
                    run(bench, case, options.rounds)
        if "spark" in options.cases:
            with_spark(lambda: run(bench, "spark", options.rounds))
    report.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
