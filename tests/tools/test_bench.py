"""`aerotape bench`: plausible measurements, within limits, without leftover files."""

from __future__ import annotations

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
from support.damage.overwriting import overwrite
from support.jvm.java import ROOT
from support.spark.table_rig import TasksHere

from aerotape.errors import AerotapeError
from aerotape.replay.offline.directory import open_directory
from aerotape.tools._bench.measurement import Measurement, rounds_of
from aerotape.tools._bench.offline import WrittenArchive
from aerotape.tools._bench.written import SEGMENT_LENGTH, TERM_LENGTH, write_recording
from aerotape.tools._cli.main import main

Capture = pytest.CaptureFixture[str]
COMMAND = [sys.executable, "-m", "aerotape", "bench"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def left_by(pid: int) -> list[Path]:
    return list(Path("/dev/shm").glob(f"aerotape-bench-{pid}-*"))


def test_rows_of_measurements_without_spark(tmp_path: Path) -> None:
    """Each with its parameters; files and the driver's directory are deleted."""
    asked = ["verify", "replay", "record", "scan"]
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
    assert [row["what"] for row in rows] == [
        "record",
        "replay",
        "replay into Python",
        "record, CRC-32C",
        "scan, all columns",
        "scan, position and payload",
        "scan, all columns, CRC-32C",
        "verify",
        "verify, CRC-32C",
    ]
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
        (
            ["write"],
            2,
            "unknown measurement 'write': expected record, replay, scan, verify, parquet",
        ),
        (["--bytes", "1023k"], 2, "is not a size from 1m to 1024g"),
        (["--bytes", "much"], 2, "is not a size"),
        (["--message-bytes", "65473"], 2, "is not between 4 and 65472"),
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


def test_unavailable_measurements_are_skipped(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default; on request it is an error that names the missing package, or the JDK."""
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyarrow" else find(name)
    )
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 0))
    assert main(["bench", "--dir", str(tmp_path)]) == 1
    notes = capsys.readouterr().err.splitlines()
    assert notes[0].startswith("skipped: scan: pyarrow is not installed: `pip install '.[arrow]'`")
    assert notes[1].startswith("skipped: parquet: pyarrow is not installed")
    assert "not enough space" in notes[2]
    monkeypatch.undo()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert main(["bench", "parquet", "--dir", str(tmp_path)]) == 2
    assert "parquet: Spark needs a JDK 17" in capsys.readouterr().err


def test_the_first_round_does_not_count_and_a_limit_ends_the_rounds() -> None:
    times = iter([9.0, 1.0, 3.0, 2.0])
    assert rounds_of(lambda: next(times), 3) == [1.0, 3.0, 2.0]
    assert rounds_of(lambda: 1.0, 1000, time_limit_s=0.0) == [1.0]
    row = Measurement("it", 300, 6_000_000, [1.0, 3.0, 2.0]).row(100)
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
    folder = tmp_path / "archive"
    recording_id, messages = write_recording(folder, b"x" * 1000, TERM_LENGTH, "crc-32c")
    archive = WrittenArchive(folder, messages)
    assert archive.scan(checksum="crc-32c") > 0
    assert archive.verify("crc-32c") > 0
    assert archive.convert(tmp_path / "table", TasksHere()) > 0
    assert not (tmp_path / "table").exists()
    wrong = WrittenArchive(folder, messages + 1)
    with pytest.raises(AerotapeError, match=f"scan found {messages} messages, expected"):
        wrong.scan(("position",))
    with pytest.raises(AerotapeError, match=f"parquet found {messages} messages"):
        wrong.convert(tmp_path / "table", TasksHere())
    overwrite(folder / f"{recording_id}-0.rec", 100, b"\xff")
    with pytest.raises(AerotapeError, match="verify found damage"):
        archive.verify("crc-32c")


def test_a_written_recording_has_the_described_messages(tmp_path: Path) -> None:
    """Recordings of whole terms over several segments; payloads alternate and are counted per
    term."""
    payloads = [b"\0\0\0\0" + b"a" * 60_000, b"\0\0\0\0" + b"b" * 60_000]
    recording_id, messages = write_recording(tmp_path, payloads, SEGMENT_LENGTH + 1, "crc-32c")
    recording = open_directory(tmp_path).recording(recording_id)
    assert recording.recorded_position == SEGMENT_LENGTH + TERM_LENGTH
    table = recording.to_arrow(columns=["term_id", "payload"], checksum="crc-32c")
    assert table.num_rows == messages
    per_term = messages // 9
    for number, (term_id, payload) in enumerate(
        zip(*(table.column(i).to_pylist() for i in range(2)), strict=True)
    ):
        assert term_id == number // per_term
        assert int.from_bytes(payload[:4], "little") == number % per_term
        assert payload[4:5] == b"ab"[number % per_term % 2 :][:1]
