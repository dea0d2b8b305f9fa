"""Metrics of both archives, as printed and as served."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from support.builders.held_recordings import add_recording
from support.daemon.command_line import CommandLine, aerotape
from support.daemon.control_rig import await_true
from support.jvm.java import ROOT
from support.web import WebService

import aerotape as package
from aerotape.codecs.entity.actions import Event
from aerotape.entity.replicator import Replicator
from aerotape.entity.stores.url import open_store
from aerotape.tools._web.metrics import families
from aerotape.tools._web.metrics.families import FAMILIES

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str) -> Samples:
    """Return the values by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, tuple(sorted(labels.items()))]


def test_a_recording(cli: CommandLine, client: package.ArchiveClient) -> None:
    """Positions, bytes, sessions and the driver's counters are those of the archive."""
    directory = cli.archive.archive_dir
    with WebService(cli, directory) as web, package.Aeron(cli.archive.aeron_dir) as aeron:
        client.start_recording("aeron:ipc", 7001)
        publication = aeron.add_publication("aeron:ipc", 7001)
        started = client.await_signal(package.RecordingSignal.START)
        end = publication.send(b"x" * 1000)
        labels = {
            "recording_id": str(started.recording_id),
            "stream_id": "7001",
            "channel": "aeron:ipc",
        }
        name = "aerotape_recording_position_bytes"
        key = name, tuple(sorted(labels.items()))
        written = "aerotape_recorder_written_bytes_total"
        await_true(lambda: samples(web.get_soon("/metrics").text).get(key) == end)
        # The recorder's own counter follows the recording's.
        await_true(lambda: value(samples(web.get_soon("/metrics").text), written) >= end)
        found = samples(web.get_soon("/metrics").text)
        assert value(found, "aerotape_archive_up") == value(found, "aerotape_driver_up") == 1
        assert value(found, "aerotape_recordings_live") == 1
        assert value(found, "aerotape_control_sessions") >= 1
        assert value(found, "aerotape_duty_cycle_max_seconds", thread="conductor") > 0
        assert value(found, "aerotape_storage_free_bytes") > 0
        assert value(found, "aeron_bytes_currently_mapped") > 0
        printed = samples(cli.run("metrics", directory).stdout.decode())
        assert printed.keys() == found.keys()
        publication.close()
        client.await_signal(package.RecordingSignal.STOP)
        await_true(
            lambda: value(samples(web.get_soon("/metrics").text), "aerotape_recordings_live") == 0
        )
        assert value(samples(web.get_soon("/metrics").text), name, **labels) == end


def test_lag_of_a_replay(own: CommandLine) -> None:
    """A subscriber that does not poll is behind by what flow control lets it be."""
    payload = b"x" * 1000
    with own.archive.connect() as client, WebService(own, own.archive.archive_dir) as web:

        def lag() -> float | None:
            found = samples(web.get_soon("/metrics").text)
            lags = (
                value
                for (name, labels), value in found.items()
                if name == "aerotape_replay_lag_bytes"
                and ("recording_id", str(recording_id)) in labels
            )
            return next(lags, None)

        with package.Aeron(own.archive.aeron_dir) as aeron:
            client.start_recording("aeron:ipc?term-length=64k", 7002)
            publication = aeron.add_publication("aeron:ipc?term-length=64k", 7002)
            recording_id = client.await_signal(package.RecordingSignal.START).recording_id
            assert lag() is None
            for _ in range(1000):
                end = publication.send(payload)
            await_true(lambda: client.recording_position(recording_id) == end)
            replay = client.replay(recording_id, 0, follow=True)
            assert next(replay).payload == payload
            await_true(lambda: end - 256 * 1024 < (lag() or 0) < end)
            for _ in range(999):
                next(replay)
            await_true(lambda: lag() == 0)
            replay.close()
            await_true(lambda: lag() is None)
            publication.close()


def test_lag_of_the_slowest_replicator(
    cli: CommandLine, client: package.ArchiveClient, tmp_path: Path
) -> None:
    """It is what has been appended since the last batch."""
    name = "aerotape_entity_replication_lag_bytes"

    def lags() -> list[float]:
        found = samples(web.get_soon("/metrics").text)
        return [
            value
            for (metric, labels), value in found.items()
            if metric == name and ("topic", "lagging") in labels
        ]

    def replicator(file: str) -> Replicator:
        url = f"sqlite:{tmp_path / file}"
        return Replicator("lagging", cli.archive.connect, lambda: open_store(url, writable=True))

    with (
        WebService(cli, cli.archive.archive_dir) as web,
        client.entities("lagging") as entities,
        replicator("one.db") as one,
        replicator("two.db") as two,
    ):
        entities.append("a", [Event(1, b"1", "text")])
        first, second = one.run(), two.run()
        next(first)
        begin = next(second).pointer.next_position
        await_true(lambda: lags() == [0])
        entities.append("a", [Event(2, b"2", "text")])
        end = next(first).pointer.next_position
        await_true(lambda: lags() == [end - begin])
        next(second)
        await_true(lambda: lags() == [0])
    await_true(lambda: lags_of_none(cli, name))


def lags_of_none(cli: CommandLine, name: str) -> bool:
    printed = cli.run("metrics", cli.archive.archive_dir).stdout.decode()
    return not any(metric == name for metric, _ in samples(printed))


def test_syncs_are_counted_by_how_long_they_took(own: CommandLine) -> None:
    """Each add of a PD_JOURNAL waits for one; the buckets are cumulative."""
    name = "aerotape_recorder_sync_seconds"

    def read() -> Samples:
        return samples(own.run("metrics", own.archive.archive_dir).stdout.decode())

    before = read()
    wanted = value(before, f"{name}_count") + 10
    with own.archive.connect() as client, client.create_ledger("PD_JOURNAL") as writer:
        for _ in range(10):
            writer.add(b"x")
    await_true(lambda: value(read(), f"{name}_count") >= wanted)
    found = read()
    count = value(found, f"{name}_count")
    assert value(found, f"{name}_sum") > value(before, f"{name}_sum")
    buckets = [
        (float(dict(labels)["le"]), value)
        for (metric, labels), value in found.items()
        if metric == f"{name}_bucket"
    ]
    assert [bound for bound, _ in buckets[-2:]] == [1.0, float("inf")]
    counts = [value for _, value in sorted(buckets)]
    assert counts == sorted(counts) and counts[-1] == count


def test_openmetrics_if_asked_for(own: CommandLine) -> None:
    with WebService(own, own.archive.archive_dir) as web:
        web.await_metrics()
        answer = web.get_soon("/metrics", Accept="application/openmetrics-text; version=1.0.0")
        assert answer.headers["content-type"].startswith("application/openmetrics-text")
        found = openmetrics(answer.text)  # type: ignore[no-untyped-call]
        assert "aerotape_archive_up" in {family.name for family in found}


def test_series_are_limited(tmp_path: Path) -> None:
    """The newest recordings have series, and the others are counted."""
    for _ in range(5):
        add_recording(tmp_path, [], now_ns=1)
    found = samples(aerotape("metrics", tmp_path, "--max-series", 2).out)
    shown = [dict(labels)["recording_id"] for name, labels in found if "position_bytes" in name]
    assert set(shown) == {"3", "4"}
    assert value(found, "aerotape_recording_series_omitted") == 3
    assert value(found, "aerotape_archive_up") == 0


def test_a_directory_without_an_archive_is_refused(tmp_path: Path) -> None:
    assert "no archive: " in aerotape("metrics", tmp_path, expect=2).err


def test_the_page_has_the_table_of_the_code() -> None:
    """`python -m aerotape.tools._web.metrics.families` prints it."""
    assert families.table() in (ROOT / "docs/metrics.md").read_text()
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_names_follow_the_conventions(family: families.Family) -> None:
    """Base units; counters are exposed with _total, which is not in their names."""
    assert family.name.startswith("aerotape_")
    assert not family.name.endswith(("_total", "_ms", "_ns", "_mb"))
