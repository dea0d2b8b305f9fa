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
        await_true(lambda: value(samples(web.get("/metrics").text), name, **labels) == end)
        found = samples(web.get("/metrics").text)
        assert value(found, "aerotape_archive_up") == value(found, "aerotape_driver_up") == 1
        assert value(found, "aerotape_recordings_live") == 1
        assert value(found, "aerotape_recorder_written_bytes_total") >= end
        assert value(found, "aerotape_control_sessions") >= 1
        assert value(found, "aerotape_duty_cycle_max_seconds", thread="conductor") > 0
        assert value(found, "aerotape_storage_free_bytes") > 0
        assert value(found, "aeron_bytes_currently_mapped") > 0
        printed = samples(cli.run("metrics", directory).stdout.decode())
        assert printed.keys() == found.keys()
        publication.close()
        client.await_signal(package.RecordingSignal.STOP)
        await_true(
            lambda: value(samples(web.get("/metrics").text), "aerotape_recordings_live") == 0
        )
        assert value(samples(web.get("/metrics").text), name, **labels) == end


def test_openmetrics_if_asked_for(cli: CommandLine) -> None:
    with WebService(cli, cli.archive.archive_dir) as web:
        answer = web.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
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
