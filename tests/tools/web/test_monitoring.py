"""Alert rules and the dashboard, with the real Prometheus where it is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.builders.offline_directory import build
from support.daemon.archives import serve
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.jvm.java import ROOT
from support.web import WebService

from aerotape.catalog.recovery.suspect_marks import mark_file_name
from aerotape.tools._web.metrics.families import FAMILIES

MONITORING = ROOT / "examples/monitoring"
RULES = MONITORING / "aerotape-alerts.yml"
NAMES = {family.shown_name for family in FAMILIES} | {
    f"{family.name}_bucket" for family in FAMILIES if family.kind == "histogram"
}
USED = re.compile(r"\baerotape_\w+")
needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="Prometheus is not installed",
)
# The alert, and series that bring it about: for 10 minutes, each minute.
SERIES = {
    "AerotapeArchiveDown": {"aerotape_archive_up": "0x10"},
    "AerotapeDriverDown": {"aerotape_driver_up": "0x10"},
    "AerotapeStorageLow": {"aerotape_storage_low": "1x10"},
    "AerotapeErrors": {"aerotape_archive_errors_total": "0+1x10"},
    "AerotapeRecordingsSuspect": {"aerotape_recordings_suspect": "2x10"},
    "AerotapeVerificationFailed": {"aerotape_verification_failed_recordings": "1x10"},
    "AerotapeLedgerUnconfirmed": {'aerotape_ledger_unconfirmed_bytes{recording_id="7"}': "1e9x10"},
    "AerotapeDutyCycleSlow": {'aerotape_duty_cycle_exceeded_total{thread="recorder"}': "0+10x10"},
    "AerotapeFilesUnreadable": {"aerotape_unreadable_files": "1x10"},
}


def test_the_dashboard_has_metrics_that_exist() -> None:
    dashboard = json.loads((MONITORING / "aerotape-dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = {name for query in queries for name in USED.findall(query)}
    assert used <= NAMES
    assert len(used) > 15


def test_the_rules_have_metrics_that_exist() -> None:
    expressions = re.findall(r"expr: (.*)", RULES.read_text())
    assert {name for text in expressions for name in USED.findall(text)} <= NAMES
    assert set(re.findall(r"alert: (\w+)", RULES.read_text())) == set(SERIES)


@needs_prometheus
@pytest.mark.parametrize("alert", SERIES)
def test_each_alert_fires(alert: str, tmp_path: Path) -> None:
    """By promtool's own evaluation, and not while all is well."""
    tests = [
        {
            "interval": "1m",
            "input_series": [
                {"series": name, "values": values} for name, values in SERIES[alert].items()
            ],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})',
                    "eval_time": "10m",
                    "exp_samples": [{"labels": "{}", "value": 1}],
                }
            ],
        }
    ]
    file = tmp_path / "tests.yml"  # JSON is YAML
    file.write_text(json.dumps({"rule_files": [str(RULES)], "tests": tests}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_prometheus
def test_promtool_accepts_rules_and_metrics(cli: CommandLine) -> None:
    """The names of our metrics have nothing to complain of; Aeron's are Aeron's."""
    subprocess.run(["promtool", "check", "rules", str(RULES)], check=True, capture_output=True)
    printed = cli.run("metrics", cli.archive.archive_dir).stdout
    done = subprocess.run(["promtool", "check", "metrics"], input=printed, capture_output=True)
    complaints = [line for line in done.stderr.decode().splitlines() if line.startswith("aerotape")]
    assert complaints == []


@contextmanager
def prometheus(folder: Path, port: int, *services: WebService) -> Iterator[str]:
    """Run Prometheus with our rules, without the times that they wait; yield its URL."""
    targets = [each.url.removeprefix("http://").rstrip("/") for each in services]
    rules = folder / "rules.yml"
    rules.write_text(re.sub(r"for: \w+", "for: 0s", RULES.read_text()))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {"job_name": "aerotape", "static_configs": [{"targets": targets}]},
        ],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    command = ["prometheus", f"--config.file={folder}/prometheus.yml"]
    command += [f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def asked(url: str) -> Any:
    """Return the data of a response of Prometheus; None while it starts."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return json.loads(response.read())["data"]
    except OSError:
        time.sleep(0.1)
        return None


def alerts(url: str) -> set[str]:
    """Return the alerts that fire."""
    found = (asked(f"{url}/api/v1/alerts") or {"alerts": []})["alerts"]
    return {each["labels"]["alertname"] for each in found}


def scrapes(url: str) -> float:
    """Return how often Prometheus has read the metrics of each service at least."""
    query = f"{url}/api/v1/query?query=count_over_time(aerotape_archive_up[1h])"
    found = (asked(query) or {}).get("result")
    return min(float(each["value"][1]) for each in found) if found else 0


@needs_prometheus
def test_nothing_fires_for_a_running_archive(
    cli: CommandLine, tmp_path: Path, free_port: Callable[[], int]
) -> None:
    with (
        WebService(cli, cli.archive.archive_dir) as web,
        prometheus(tmp_path, free_port(), web) as url,
    ):
        await_true(lambda: scrapes(url) >= 4)
        assert alerts(url) == set()


@needs_prometheus
def test_alerts_fire_for_a_stopped_archive(
    cli: CommandLine, tmp_path: Path, free_port: Callable[[], int]
) -> None:
    """It gives no sign of life, nor does its driver, whose files are gone."""
    wrong = {"AerotapeArchiveDown", "AerotapeDriverDown", "AerotapeFilesUnreadable"}
    with (
        WebService(cli, build(tmp_path / "archive")) as web,
        prometheus(tmp_path, free_port(), web) as url,
    ):
        await_true(lambda: alerts(url) == wrong)


@needs_prometheus
def test_alerts_fire_for_archives_in_trouble(
    tmp_path: Path, free_port: Callable[[], int], own: CommandLine
) -> None:
    """Brought into each state: little space in the one, all else in the other."""
    verified = tmp_path / "verified.json"
    failed = build(tmp_path / "failed")
    (failed / "0-0.rec").unlink()
    verified.write_bytes(own.run("tool", failed, "verify", "--dry-run", "--json", expect=3).stdout)
    wrong = set(SERIES) - {"AerotapeArchiveDown", "AerotapeDriverDown", "AerotapeFilesUnreadable"}
    low = {"aeron.archive.low.storage.space.threshold": str(1 << 60)}
    slow = {"aeron.archive.conductor.cycle.threshold": "1us"}
    with (
        serve("aerotape", low) as full,
        serve("aerotape", slow) as troubled,
        WebService(CommandLine(full), full.archive_dir) as first,
        WebService(
            CommandLine(troubled), troubled.archive_dir, "--verification", verified
        ) as second,
        prometheus(tmp_path, free_port(), first, second) as url,
        troubled.connect() as client,
        client.create_ledger("VD_JOURNAL") as ledger,
    ):
        await_true(lambda: scrapes(url) >= 4)
        note = {"outcome": "torn frames", "detail": "", "position": 0, "timestamp_ms": 1}
        mark = troubled.archive_dir / mark_file_name(0)  # of the ledger
        mark.write_text(json.dumps({"notes": [note]}))
        control = client.aeron.add_publication(troubled.control_channel, 10)
        control.send(b"not a control message")
        for _ in range(9_000):  # more than 64 MiB, none of it confirmed
            ledger.add(bytes(8_000))
        await_true(lambda: alerts(url) == wrong)
