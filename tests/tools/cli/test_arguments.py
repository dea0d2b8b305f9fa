"""Arguments that no archive could accept: usage errors, before any connect."""

from __future__ import annotations

from pathlib import Path

import pytest

from aerotape.tools._cli.main import main

WAYS_TO_STOP = "give either CHANNEL STREAM_ID, --subscription or --recording"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["record", "bogus", 1], "aeron:"),
        (["record", "aeron:ipc?alias=\u00f6", 1], "ASCII"),
        (["record", "aeron:ipc", 1 << 31], "STREAM_ID"),
        (["stop", "--recording", 1 << 63], "--recording"),
        (["list", "--count", -1], "--count"),
        (["list", "--id", 0, "--stream-id", 1], "--id"),
        (["list", "--control-channel", "bogus"], "--control-channel"),
        (["replay", 0, "--position", 1 << 63], "--position"),
        (["replay", 0, "--framing", "length"], "--framing"),
        (["extend", -1, "aeron:ipc", 1], "RECORDING_ID"),
        (["extend", 0, "bogus", 1], "CHANNEL"),
        (["truncate", 0, -64, "-y"], "POSITION"),
        (["truncate", 0], "POSITION"),
        (["purge", "x", "-y"], "RECORDING_ID"),
        (["segments"], "ACTION"),
        (["segments", "migrate", 0], "TARGET_ID"),
        (["segments", "detach", 0, -1], "POSITION"),
        (["subscriptions", "--channel", "\u00f6"], "ASCII"),
        (["update-channel", 0, "aeron:tcp"], "CHANNEL"),
        (["position", -1], "RECORDING_ID"),
        (["find", "x", 1 << 31, 0], "STREAM_ID"),
        (["replicate", 0, "bogus"], "SOURCE_CHANNEL"),
        (["replicate", 0, "aeron:ipc", "--file-io-max-length", 0], "--file-io-max-length"),
        (
            ["replicate", 0, "aeron:ipc", "--live-destination", "aeron:ipc", "--session-id", 1],
            "--session-id",
        ),
        (["stop-replication", "x"], "REPLICATION_ID"),
        (["signals", "--interval", "soon"], "--interval"),
        (["replay", 0, "--limit-counter", -1], "--limit-counter"),
        (["stop"], WAYS_TO_STOP),
        (["stop", "aeron:ipc", 1, "--recording", 2], WAYS_TO_STOP),
        (["stop", "--recording", 1, "--subscription", 2], WAYS_TO_STOP),
        (["stop-replay", 1, "--all"], "give either"),
        (["replay", 0, "--to", "aeron:ipc"], "are used together"),
        (["replay", 0, "--force"], "--force requires --out"),
        (["ping", "--count", 0], "--count"),
        (["list", "--timeout", "soon"], "soon"),
        (["list", "--timeout", 0], "must be positive"),
        (["list", "-Daeron.archive.control.stream.id=x"], "control.stream.id"),
        (["list", "-Daeron.archive.control.mtu.length=big"], "mtu.length: 'big' is not a size"),
        (["list", "-Dnonsense"], "expected -Daeron"),
        (["counters", "--interval", "9" * 400], "is longer than 1000000000 s"),
        (["counters", "--interval", "99999999999s"], "is longer than 1000000000 s"),
    ],
)
def test_wrong_arguments_are_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[object],
    complaint: str,
) -> None:
    """The exit code is 2, and the one line has the name of the argument."""
    monkeypatch.setenv("AERON_DIR", str(tmp_path / "no-driver"))
    assert main([*map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert complaint in err
