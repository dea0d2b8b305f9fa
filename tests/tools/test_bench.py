"""`aerotape bench`: plausible measurements, within limits, without leftover files."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.jvm.java import ROOT

from aerotape.errors import AerotapeError
from aerotape.tools._cli.main import main
from aerotape.tools._live_archive import LiveArchive
from aerotape.tools.bench import measurement, rounds_of

Capture = pytest.CaptureFixture[str]
COMMAND = [sys.executable, "-m", "aerotape", "bench"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def left_by(pid: int) -> list[Path]:
    return list(Path("/dev/shm").glob(f"aerotape-bench-{pid}-*"))


def test_rows_of_measurements(tmp_path: Path) -> None:
    """Each with its parameters; files and the driver's directory are deleted."""
    asked = ["scan", "replay", "record"]
    arguments = ["--bytes", "1m", "--message-bytes", "100", "--rounds", "2", "--dir", tmp_path]
    with subprocess.Popen(
        [*COMMAND, *asked, *map(str, arguments), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    result: dict[str, Any] = json.loads(out)
    assert result["dir"] == str(tmp_path)
    rows = result["measurements"]
    assert [row["what"] for row in rows] == ["record", "replay", "scan"]
    for row in rows:
        assert (row["rounds"], row["message_bytes"]) == (2, 100)
        assert 0 < row["slowest_mb_per_s"] <= row["mb_per_s"] <= row["fastest_mb_per_s"]
        # 160 bytes in a segment file each, and padding at the end of terms.
        assert row["messages_per_s"] * 160 / 1e6 == pytest.approx(
            row["mb_per_s"], rel=0.02, abs=0.06
        )
    assert list(tmp_path.iterdir()) == []
    assert left_by(process.pid) == []


def test_a_signal_ends_it_without_leftover_files(tmp_path: Path) -> None:
    """Also while it records."""
    arguments = ["record", "--bytes", "64m", "--rounds", "1000", "--dir", str(tmp_path)]
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.rglob("*.rec")) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert list(tmp_path.rglob("*.rec"))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (143, b""), err
    assert b"Traceback" not in err
    assert list(tmp_path.iterdir()) == []
    assert left_by(process.pid) == []


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["write"], 2, "unknown measurement 'write': expected record, replay, scan"),
        (["--bytes", "1023k"], 2, "is not a size from 1m to 1024g"),
        (["--bytes", "much"], 2, "is not a size"),
        (["--message-bytes", "65473"], 2, "is not between 1 and 65472"),
        (["--rounds", "0"], 2, "is not between 1 and 1000"),
        (["--dir", "no/such/place"], 1, "no such directory: no/such/place"),
        (
            ["scan", "--bytes", "1000g"],
            1,
            "give another directory with --dir, or a smaller --bytes",
        ),
    ],
)
def test_wrong_usage_is_one_line(
    tmp_path: Path, capsys: Capture, arguments: list[str], code: int, complaint: str
) -> None:
    assert main(["bench", "--dir", str(tmp_path), *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert complaint in captured.err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_scan_is_skipped_without_pyarrow(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default; on request it is an error that names the missing package."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyarrow" else find(name)
    )
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 0))
    missing = "scan: pyarrow is not installed: `pip install '.[arrow]'`"
    assert main(["bench", "--dir", str(tmp_path)]) == 1
    notes = capsys.readouterr().err.splitlines()
    assert notes[0].startswith(f"skipped: {missing}")
    assert "not enough space" in notes[1]
    assert main(["bench", "scan", "--dir", str(tmp_path)]) == 2
    assert missing in capsys.readouterr().err


def test_the_first_round_does_not_count_and_a_limit_ends_the_rounds() -> None:
    times = iter([9.0, 1.0, 3.0, 2.0])
    assert rounds_of(lambda: next(times), 3) == [1.0, 3.0, 2.0]
    assert rounds_of(lambda: 1.0, 1000, time_limit_s=0.0) == [1.0]
    row = measurement("it", 300, 6_000_000, [1.0, 3.0, 2.0], 100)
    assert asdict(row) == {
        "what": "it",
        "message_bytes": 100,
        "rounds": 3,
        "messages_per_s": 150,
        "mb_per_s": 3.0,
        "slowest_mb_per_s": 2.0,
        "fastest_mb_per_s": 6.0,
    }


def test_a_wrong_result_is_an_error(tmp_path: Path) -> None:
    """A reader that skips messages would seem fast."""
    with LiveArchive(tmp_path / "archive", tmp_path / "aeron", 1 << 20, 1000) as archive:
        assert archive.scan() > 0
        found = archive.messages
        archive.messages += 1
        with pytest.raises(AerotapeError, match=f"scan found {found} messages, expected"):
            archive.scan()
