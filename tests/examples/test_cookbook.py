"""The commands of the cookbook, and of the page on Java's directories, print what they say."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.console_pages import blocks, in_folder, is_like, run
from support.daemon.archives import serve
from support.jvm.java import ROOT
from support.processes import FAST_ARCHIVE, FAST_DRIVER, ChildProcess, free_port

import aerotape

COOKBOOK = ROOT / "docs/cookbook.md"
WITH_JAVA = ROOT / "docs/java-directory.md"
@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the archive of the page's first command."""
    aeron_dir = tempfile.mkdtemp(prefix="aerotape-test-", dir="/dev/shm")
    in_folder(tmp_path, aeron_dir, monkeypatch)
    [(command, ready)] = blocks(COOKBOOK)[0]
    properties = {
        **FAST_DRIVER,
        **FAST_ARCHIVE,
        "aeron.archive.control.channel": f"aeron:udp?endpoint=localhost:{free_port()}",
    }
    defines = [f"-D{name}={value}" for name, value in properties.items()]
    archive = ChildProcess([*command.split(), *defines])
    try:
        assert is_like(ready, archive.receive(60.0) + "\n")
        yield tmp_path
    finally:
        archive.stop()
        shutil.rmtree(aeron_dir, ignore_errors=True)


def test_the_cookbook(folder: Path) -> None:
    tasks = blocks(COOKBOOK)[1:]
    assert len(tasks) == COOKBOOK.read_text().count("\n## ") >= 10
    run(tasks)


@pytest.mark.jvm
def test_a_directory_of_the_java_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded by Java's archive, which continues to run."""
    with serve("java") as served:
        in_folder(served.archive_dir.parent, str(served.aeron_dir), monkeypatch)
        with served.connect() as client, aerotape.Aeron(served.aeron_dir) as aeron:
            client.start_recording("aeron:ipc", 1001)
            publication = aeron.add_publication("aeron:ipc", 1001)
            for price in (b"1.50", b"2.50", b"3.50"):
                publication.send(b'{"price": %s}' % price)
            publication.close()
            client.await_signal(aerotape.RecordingSignal.STOP)
        monkeypatch.setenv("CHANNEL", served.control_channel)
        run(blocks(WITH_JAVA))
