"""Alert rules and the dashboard, with the real Prometheus where it is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.builders.offline_directory import build
from support.daemon.archives import Kind, ServedArchive, serve
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
def test_each_alert_fires(tmp_path: Path) -> None:
    """By promtool's own evaluation, and not while all is well."""
    tests = [
        {
            "name": alert,
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})',
                    "eval_time": "10m",
                    "exp_samples": [{"labels": "{}", "value": 1}],
                }
            ],
        }
        for alert, series in SERIES.items()
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
    targets = [instance(each) for each in services]
    rules = folder / "rules.yml"
    rules.write_text(re.sub(r"for: \w+", "for: 0s", RULES.read_text()))
    config = {
        "global": {"scrape_interval": "250ms", "evaluation_interval": "250ms"},
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


def instance(service: WebService) -> str:
    """Return what Prometheus calls it."""
    url: str = service.url
    return url.removeprefix("http://").rstrip("/")


def alerts(url: str, service: WebService) -> set[str]:
    """Return the alerts that fire for a service."""
    found = (asked(f"{url}/api/v1/alerts") or {"alerts": []})["alerts"]
    labels = [each["labels"] for each in found]
    return {each["alertname"] for each in labels if each["instance"] == instance(service)}


def scrapes(url: str, services: Iterable[WebService]) -> float:
    """Return how often Prometheus has read the metrics of each of these services at least."""
    query = f"{url}/api/v1/query?query=count_over_time(aerotape_archive_up[1h])"
    found = (asked(query) or {"result": []})["result"]
    counts = {each["metric"]["instance"]: float(each["value"][1]) for each in found}
    return min(counts.get(instance(each), 0) for each in services)


@needs_prometheus
@pytest.mark.jvm
def test_the_alerts_of_archives(
    tmp_path: Path, free_port: Callable[[], int], own: CommandLine
) -> None:
    """None of running ones, ours and the Java archive; of others, what is wrong with them.

    A stopped one gives no sign of life, nor does its driver, whose files are gone. Two are brought
    into each other state: little space in the one, all else in the other. They share a Prometheus,
    which looks for services no sooner than after five seconds.
    """
    stopped_wrong = {"AerotapeArchiveDown", "AerotapeDriverDown", "AerotapeFilesUnreadable"}
    wrong = set(SERIES) - stopped_wrong
    verified = tmp_path / "verified.json"
    failed = build(tmp_path / "failed")
    (failed / "0-0.rec").unlink()
    verified.write_bytes(own.run("tool", failed, "verify", "--dry-run", "--json", expect=3).stdout)
    low = {"aeron.archive.low.storage.space.threshold": str(1 << 60)}
    slow = {"aeron.archive.conductor.cycle.threshold": "1us"}
    with ExitStack() as exits:

        def service(archive: ServedArchive, *options: object) -> WebService:
            made = WebService(CommandLine(archive), archive.archive_dir, *options)
            return exits.enter_context(made)

        kinds: tuple[Kind, ...] = ("aerotape", "java")
        running = [service(exits.enter_context(serve(kind))) for kind in kinds]
        stopped = exits.enter_context(WebService(own, build(tmp_path / "archive")))
        full = service(exits.enter_context(serve("aerotape", low)))
        troubled = exits.enter_context(serve("aerotape", slow))
        in_trouble = service(troubled, "--verification", verified)
        services = (*running, stopped, full, in_trouble)
        url = exits.enter_context(prometheus(tmp_path, free_port(), *services))
        client = exits.enter_context(troubled.connect())
        ledger = exits.enter_context(client.create_ledger("VD_JOURNAL"))
        await_true(lambda: scrapes(url, services) >= 4)
        note = {"outcome": "torn frames", "detail": "", "position": 0, "timestamp_ms": 1}
        mark = troubled.archive_dir / mark_file_name(0)  # of the ledger
        mark.write_text(json.dumps({"notes": [note]}))
        control = client.aeron.add_publication(troubled.control_channel, 10)
        control.send(b"not a control message")
        for _ in range(9_000):  # more than 64 MiB, none of it confirmed
            ledger.add(bytes(8_000))
        await_true(lambda: alerts(url, full) | alerts(url, in_trouble) == wrong)
        await_true(lambda: alerts(url, stopped) == stopped_wrong)
        for each in running:
            assert alerts(url, each) == set()
