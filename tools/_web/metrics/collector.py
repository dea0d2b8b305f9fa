"""The metrics of an archive at one time, and their text for Prometheus."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    UnknownMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.cnc import CounterRecord
from aerotape.counter_keys import LONGER, CounterType, key_fields
from aerotape.formatting import printable
from aerotape.tools._web.metrics import families
from aerotape.tools._web.metrics.families import COUNTERS, Family
from aerotape.tools._web.observed import Snapshot, lag

MAX_SERIES: Final = 1_000
_THREAD: Final = re.compile(r"^archive-(\w+) ")
_KIND_OF_ERROR: Final = re.compile(r"\A(?:[\w$]+\.)*([A-Za-z_][\w$]*(?:Error|Exception))\b")
_NOT_ASCII: Final = re.compile(r"[^\n -~]")
_WORD: Final = re.compile(r"[A-Za-z0-9]+")


class ArchiveMetrics(Collector):
    """The metrics of an archive at one time."""

    def __init__(self, snapshot: Snapshot, max_series: int = MAX_SERIES) -> None:
        """Create it.

        Args:
            snapshot: what the archive's files said.
            max_series: the most recordings that have series of their own.
        """
        self._snapshot = snapshot
        self._max_series = max_series

    def describe(self) -> list[Metric]:
        return []  # known only when read

    def collect(self) -> Iterator[Metric]:
        snapshot = self._snapshot
        yield from _archive(snapshot)
        yield from _recordings(snapshot, self._max_series)
        yield from _lags(snapshot)
        yield from _syncs(snapshot)
        yield from _counters(snapshot)
        yield _error_logs(snapshot)
        yield _one(families.FREE, snapshot.free_bytes)
        yield _one(families.SIZE, snapshot.total_bytes)
        yield _one(families.PROBLEMS, len(snapshot.problems))
        yield from _driver_counters(snapshot)


@lru_cache(maxsize=2)
def exposition(
    snapshot: Snapshot, accept: str = "", max_series: int = MAX_SERIES
) -> tuple[bytes, str]:
    """Return the metrics as text and its content type.

    A label of hostile text, as a channel may be, has its control characters escaped as in Python,
    because people read the text on terminals. The backslash is doubled, as the format demands.

    Args:
        snapshot: what the archive's files said.
        accept: the HTTP header of that name; OpenMetrics is written when it asks for it.
        max_series: the most recordings that have series of their own.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ArchiveMetrics(snapshot, max_series))
    encode, content_type = choose_encoder(accept)
    text = _NOT_ASCII.sub(_escape, encode(registry).decode())
    return text.encode(), content_type


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return character if character.isprintable() else "\\" + printable(character)


def _family(family: Family) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    return kind(family.name, family.help, labels=family.labels)


def _one(family: Family, value: float, *labels: object) -> Metric:
    metric = _family(family)
    metric.add_metric([str(label) for label in labels], value)
    return metric


def _archive(snapshot: Snapshot) -> Iterator[Metric]:
    yield _one(families.UP, snapshot.is_active)
    if snapshot.mark is not None:
        header = snapshot.mark.header
        version = ".".join(str(header.version >> shift & 0xFF) for shift in (16, 8, 0))
        labels = (header.archive_id, header.pid, header.control_channel, version)
        yield _one(families.INFO, 1, *labels)
        yield _one(families.STARTED, header.start_timestamp_ms / 1e3)
    driver = snapshot.driver
    yield _one(families.DRIVER_UP, driver is not None and driver.is_active)


def _recordings(snapshot: Snapshot, max_series: int) -> Iterator[Metric]:
    positions = snapshot.positions()
    yield _one(families.RECORDINGS, len(snapshot.recordings))
    yield _one(families.LIVE, len(positions))
    yield _one(families.SUSPECT, len(snapshot.suspect))
    if snapshot.verification is not None:
        yield _one(families.VERIFIED, snapshot.verification.timestamp_ms / 1e3)
        yield _one(families.FAILED, len(snapshot.verification.failed))

    def rank(descriptor: RecordingDescriptor) -> tuple[bool, int]:
        return descriptor.recording_id in positions, descriptor.recording_id

    shown = sorted(snapshot.recordings, key=rank, reverse=True)[:max_series]
    yield _one(families.OMITTED, len(snapshot.recordings) - len(shown))
    position, start = _family(families.POSITION), _family(families.START)
    for each in shown:
        labels = [str(each.recording_id), str(each.stream_id), each.stripped_channel]
        start.add_metric(labels, each.start_position)
        # Without a counter and a stop position, the archive is starting or has crashed.
        known = positions.get(each.recording_id, each.stop_position)
        if known >= 0:
            position.add_metric(labels, known)
    yield position
    yield start
    ledgers = _family(families.UNCONFIRMED)
    for counter in snapshot.counters:
        if counter.type_id == CounterType.CONFIRMED_POSITION:
            recording_id = key_fields(counter.type_id, counter.key)["recording_id"]
            if recording_id in positions:
                behind = positions[recording_id] - counter.value
                ledgers.add_metric([str(recording_id)], max(behind, 0))
    yield ledgers


def _counters(snapshot: Snapshot) -> Iterator[Metric]:
    by_type: dict[int, list[CounterRecord]] = {}
    for counter in snapshot.counters:
        by_type.setdefault(counter.type_id, []).append(counter)
    for counter_type, (family, scale) in COUNTERS.items():
        metric = _family(family)
        for counter in by_type.get(counter_type, ()):
            value = counter.value / 1e9 if scale == "ns" else counter.value
            metric.add_metric([_thread(counter.label)] if family.labels else [], value)
        if metric.samples:
            yield metric


def _lags(snapshot: Snapshot) -> Iterator[Metric]:
    ends = snapshot.ends()
    replays = _family(families.REPLAY_LAG)
    for each in snapshot.replays:
        labels = (each.recording_id, each.session_id, each.stream_id)
        behind = lag(ends, each.recording_id, each.position)
        replays.add_metric([str(label) for label in labels], behind)
    yield replays
    stored: dict[tuple[str, str, int], int] = {}
    for counter in snapshot.counters:
        words = counter.label.split()
        # Any client of the driver can add such a counter, with another label.
        if counter.type_id == CounterType.ENTITY_REPLICATION and len(words) > 2:
            topic, partition = words[1:3]
            recording_id = key_fields(counter.type_id, counter.key)["recording_id"]
            key = (topic, partition, recording_id)
            stored[key] = min(counter.value, stored.get(key, counter.value))
    entities = _family(families.ENTITY_LAG)
    for (topic, partition, recording_id), position in stored.items():
        behind = lag(ends, recording_id, position)
        entities.add_metric([topic, partition, str(recording_id)], behind)
    yield entities


def _syncs(snapshot: Snapshot) -> Iterator[Metric]:
    total_ns = snapshot.value(CounterType.SYNC_TIME)
    if total_ns is None:
        return
    counts = {
        key_fields(each.type_id, each.key)["bound_ns"]: each.value
        for each in snapshot.counters
        if each.type_id == CounterType.SYNCS
    }
    metric = HistogramMetricFamily(families.SYNC.name, families.SYNC.help)
    bounds = sorted(counts)
    sums = accumulate(counts[bound] for bound in bounds)
    names = ("+Inf" if bound == LONGER else repr(bound / 1e9) for bound in bounds)
    metric.add_metric([], list(zip(names, sums, strict=True)), total_ns / 1e9)
    yield metric


def _thread(label: str) -> str:
    found = _THREAD.match(label)
    return found[1] if found else "conductor"


def _error_logs(snapshot: Snapshot) -> Metric:
    counts: dict[tuple[str, str], int] = {}
    for source, errors in snapshot.error_logs():
        for error in errors:
            found = _KIND_OF_ERROR.match(error.text)
            kind = (source, found[1] if found else "other")
            counts[kind] = counts.get(kind, 0) + error.count
    metric = _family(families.ERROR_LOG)
    for labels, count in counts.items():
        metric.add_metric(labels, count)
    return metric


def _driver_counters(snapshot: Snapshot) -> Iterator[Metric]:
    seen = set()
    for counter in snapshot.own_counters:
        label = counter.label.partition(":")[0]
        name = "_".join(["aeron", *_WORD.findall(label.lower().removeprefix("aeron "))])
        if name not in seen:
            seen.add(name)
            yield UnknownMetricFamily(name, f"Aeron's counter: {label}", value=counter.value)
