"""The examples in the docstrings of the names that people begin with."""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import ServedArchive, serve
from support.jvm.java import free_port
from support.processes import FAST_ARCHIVE, FAST_DRIVER

import aerotape

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# `extension_channel` is last: it extends the recording of the others.
BLOCKING = (
    aerotape.connect,
    aerotape.ArchiveClient.list_recordings,
    aerotape.ArchiveClient.replay,
    aerotape.open_directory,
    aerotape.ArchiveDirectory,
    aerotape.Recording,
    aerotape.Recording.messages,
    aerotape.Recording.to_batches,
    aerotape.Recording.to_arrow,
    aerotape.Recording.stats,
    aerotape.scan_polars,
    aerotape.Message,
    aerotape.Archive.launch,
    aerotape.Aeron,
    aerotape.Aeron.add_publication,
    aerotape.Aeron.add_subscription,
    aerotape.ArchiveClient.start_recording,
    aerotape.ArchiveClient,
    aerotape.extension_channel,
)
ASYNCHRONOUS = (
    aerotape.connect_async,
    aerotape.AsyncArchiveClient.list_recordings,
    aerotape.AsyncArchiveClient.replay,
    aerotape.AsyncArchiveClient.start_recording,
)


@pytest.fixture
def served() -> Iterator[ServedArchive]:
    """An archive with one recording of three messages, which has stopped."""
    with serve("aerotape") as started:
        with started.connect() as client, aerotape.Aeron(started.aeron_dir) as aeron:
            client.start_recording("aeron:ipc", 1001)
            publication = aeron.add_publication("aeron:ipc", 1001)
            for payload in (b"first", b"second", b"third"):
                publication.send(payload)
            publication.close()
            client.await_signal(aerotape.RecordingSignal.STOP)
            client.stop_recording("aeron:ipc", 1001)
        yield started


def names_of(served: ServedArchive, folder: Path) -> dict[str, Any]:
    """Return what the examples take for granted."""
    (folder / "recordings").symlink_to(served.archive_dir)
    return {
        "aerotape": aerotape,
        "aeron_dir": served.aeron_dir,
        "RecordingSignal": aerotape.RecordingSignal,
        "recording": aerotape.open_directory(served.archive_dir).recording(0),
        "properties": {
            **FAST_DRIVER,
            **FAST_ARCHIVE,
            "aeron.archive.control.channel": f"aeron:udp?endpoint=localhost:{free_port()}",
        },
    }


def docstring(name: Any) -> str:
    return inspect.getdoc(name) or ""


def test_blocking(
    served: ServedArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each prints what it says; a result that is not shown may be anything."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    names = names_of(served, tmp_path)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    with served.connect() as client, aerotape.Aeron(served.aeron_dir) as aeron:
        for each in BLOCKING:
            found = doctest.DocTestParser().get_doctest(
                docstring(each), {**names, "client": client, "aeron": aeron}, str(each), None, 0
            )
            assert found.examples, each
            failures: list[str] = []
            runner.run(found, out=failures.append)
            assert failures == [], each


def test_asynchronous(
    served: ServedArchive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The same with asyncio."""
    monkeypatch.chdir(tmp_path)
    names = names_of(served, tmp_path)

    async def run_all() -> None:
        async with aerotape.connect_async(
            aeron_dir=served.aeron_dir, control_request_channel=served.control_channel
        ) as client:
            for each in ASYNCHRONOUS:
                found = doctest.DocTestParser().get_examples(docstring(each))
                assert found, each
                variables = {**names, "client": client}
                for example in found:
                    code = compile(
                        example.source, str(each), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
                    )
                    result = eval(code, variables)
                    if inspect.isawaitable(result):
                        await result
                    printed = capsys.readouterr().out
                    checked = doctest.OutputChecker().check_output(example.want, printed, FLAGS)
                    assert checked, (each, printed)

    asyncio.run(run_all())
