"""The Python examples of pages that need an archive or its directory."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import re
from collections.abc import Iterator
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import ServedArchive, serve
from support.jvm.java import ROOT

import aerotape

MESSAGES = [b"first", b"second", b"third"]


def examples(page: str) -> list[str]:
    """Return the Python examples of a page."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.M | re.S)


def run(example: str, **names: Any) -> dict[str, Any]:
    """Run an example, which may await; return its variables."""
    variables: dict[str, Any] = {"aerotape": aerotape, "asyncio": asyncio, **names}
    code = compile(example, "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, variables)
    if isawaitable(result):
        asyncio.run(_awaited(result))
    return variables


async def _awaited(result: Any) -> None:
    await result


@pytest.fixture(scope="module")
def served() -> Iterator[ServedArchive]:
    """An archive with the recordings 0 to 3."""
    with serve("aerotape") as started:
        with started.connect() as client, aerotape.Aeron(started.aeron_dir) as aeron:
            for stream_id in (1001, 1002, 1003, 1004):
                client.start_recording("aeron:ipc", stream_id)
                publication = aeron.add_publication("aeron:ipc", stream_id)
                for message in MESSAGES:
                    publication.send(message)
                publication.close()
                client.await_signal(aerotape.RecordingSignal.STOP)
                client.stop_recording("aeron:ipc", stream_id)
        yield started


def test_client(served: ServedArchive, capsys: pytest.CaptureFixture[str]) -> None:
    """The blocking one waits for a publication and replays what is there; asyncio does the same."""
    given = {"directory": served.aeron_dir, "channel": served.control_channel}
    blocking, asynchronous = examples("client.md")
    with (
        aerotape.Aeron(served.aeron_dir) as aeron,
        contextlib.closing(aeron.add_publication("aeron:ipc", 1001)),
    ):
        started = run(blocking, **given)["started"]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{started.recording_id} 0"
    assert f"recording_id={started.recording_id}," in "".join(printed)
    ends = run(asynchronous, **given)["ends"]
    assert ends == [192, 192, 192]
    assert [f"b'{each.decode()}'" for each in MESSAGES] == [
        line.split(" ", 1)[1] for line in capsys.readouterr().out.splitlines()[-3:]
    ]


def test_ledgers(
    served: ServedArchive, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = served.connect()
    monkeypatch.setattr(aerotape, "connect", lambda: client)
    (example,) = examples("ledgers.md")
    run(example)
    assert capsys.readouterr().out.splitlines() == [
        "0 b'first'",
        "1 b'second'",
        "2 b'third'",
        "3 b'fourth'",
    ]


def test_statistics(
    served: ServedArchive,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By position, over time, and as pictures."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    (tmp_path / "recordings").symlink_to(served.archive_dir)
    monkeypatch.chdir(tmp_path)
    by_position, over_time, pictures = examples("statistics.md")
    stats = run(by_position)["stats"]
    assert stats.messages == len(MESSAGES)
    assert len(capsys.readouterr().out.splitlines()) == len(stats.bins)
    recording = aerotape.open_directory("recordings").recording(3)
    assert run(over_time, recording=recording)["stats"].messages == len(MESSAGES)
    _, ax = __import__("matplotlib.pyplot").pyplot.subplots()
    run(pictures, recording=recording, ax=ax)
    assert Path("day.png").stat().st_size > 1_000
