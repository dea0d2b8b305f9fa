"""`aerotape archive --print-config`, and CPU affinity of its threads."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import aerotape
from aerotape.tools._cli.main import main

CPU = "aeron.archive.recorder.cpu.affinity"


def test_settings_are_shown_and_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files, -D, options and the environment, each with its source; nothing is created."""
    monkeypatch.setenv("AERON_ARCHIVE_MAX_CONCURRENT_REPLAYS", "7")
    monkeypatch.setenv("AEROTAPE_RECORDING_SIGNALS", "all")
    monkeypatch.setenv("AEROTAPE_RECORDING_SIGNAL", "all")
    properties = tmp_path / "archive.properties"
    properties.write_text("aeron.archive.id=5\naeron.archive.segmnt.file.length=1\n")
    arguments = [
        "archive",
        "--print-config",
        "--dir",
        str(tmp_path / "archive"),
        str(properties),
        "-Daeron.archive.threading.mode=SHARED",
        "-Daeron.mtu.length=8k",
    ]
    assert main([*arguments, "--json"]) == 0
    shown = capsys.readouterr()
    rows = {row["name"]: row for row in json.loads(shown.out)}
    expected = {
        "aeron.archive.dir": (str(tmp_path / "archive"), "--dir", "aeron-archive"),
        "aeron.archive.id": ("5", str(properties), "-1"),
        "aeron.archive.threading.mode": ("SHARED", "-D", "DEDICATED"),
        "aeron.archive.max.concurrent.replays": (
            "7",
            "environment AERON_ARCHIVE_MAX_CONCURRENT_REPLAYS",
            "20",
        ),
        "aerotape.recording.signals": (
            "all",
            "environment AEROTAPE_RECORDING_SIGNALS",
            "requester",
        ),
        "aeron.archive.control.mtu.length": ("8k", "aeron.mtu.length from -D", "1408"),
        "aeron.archive.connect.timeout": ("5s", "default", "5s"),
        "aeron.mtu.length": ("8k", "-D", None),
    }
    for name, (value, origin, default) in expected.items():
        assert rows[name] == {"name": name, "value": value, "origin": origin, "default": default}
    assert "did you mean aeron.archive.segment.file.length?" in shown.err
    assert "did you mean AEROTAPE_RECORDING_SIGNALS?" in shown.err
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "value", "origin", "default"]
    assert ["aeron.archive.id", "5", str(properties), "-1"] in [line.split() for line in lines]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["archive.properties"]


def test_a_bad_setting_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, one line, with the source of the setting."""
    assert main(["archive", "--print-config", "-Daeron.archive.id=first"]) == 2
    assert capsys.readouterr().err == (
        "aerotape archive: aeron.archive.id='first': not an integer (from -D)\n"
    )
    assert main(["archive", "--print-config", "-Daerotape.recording.signals=everybody"]) == 2
    assert capsys.readouterr().err == (
        "aerotape archive: aerotape.recording.signals='everybody': must be requester or all"
        " (from -D)\n"
    )
    assert main(["archive", "--print-config", "--users", ""]) == 2
    assert capsys.readouterr().err == (
        "aerotape archive: aerotape.users.file is empty: give a file, or omit the property"
        " to accept all clients (from --users)\n"
    )
    assert main(["archive", "--print-config", "none.properties"]) == 2
    assert "none.properties: cannot be read: No such file" in capsys.readouterr().err


def _processors(name: str) -> set[str]:
    """The CPUs on which this process's threads with that name may run."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            text = (task / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
        status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        if status["Name"] == name[:15]:
            found.add(status["Cpus_allowed_list"])
    return found


def test_threads_run_on_their_processors(tmp_path: Path, aeron_dir: Path) -> None:
    """The recorder is bound to one CPU, the other threads are not."""
    allowed = os.sched_getaffinity(0)
    cpu = max(allowed)
    properties = {"aeron.archive.control.channel.enabled": "false", CPU: cpu}
    with aerotape.Archive.launch(
        dir=tmp_path / "archive", aeron_dir=aeron_dir, properties=properties
    ):
        assert _processors("archive-recorder") == {str(cpu)}
        assert _processors("archive-replayer") & {str(cpu)} == set()
        assert os.sched_getaffinity(0) == allowed
    with pytest.raises(aerotape.ConfigurationError, match=rf"{CPU}=1023: .* allowed: "):
        aerotape.Archive.launch(
            dir=tmp_path / "archive", aeron_dir=aeron_dir, properties={**properties, CPU: 1023}
        )
