"""`Archive.launch`: an archive in the process of a script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.daemon.control_rig import RawClient

from aerotape import _native
from aerotape.archive.archive import Archive
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.mark.mark_file import MarkFile
from aerotape.catalog.mark.ownership import unused
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ConfigurationError
from aerotape.protocol import PROTOCOL_VERSION

ROOT = Path(__file__).resolve().parents[2]
LOCAL = "aeron:ipc?term-length=64k"


def test_requests_wait_while_recordings_are_recovered(
    tmp_path: Path, aeron_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client can send its first request during recovery; the response comes afterwards."""
    sent = []

    def refresh(*_: Any, **__: Any) -> list[Any]:
        raw = RawClient(_native.AeronClient(str(aeron_dir)), LOCAL)
        request = codecs.AuthConnectRequest(
            correlation_id=5,
            version=PROTOCOL_VERSION,
            response_stream_id=raw.response_stream_id,
            response_channel=raw.response_channel,
        )
        raw.send(request)
        sent.append(raw)
        return []

    monkeypatch.setattr("aerotape.archive.archive.refresh", refresh)
    properties = {
        "aeron.archive.control.channel.enabled": "false",
        "aeron.threading.mode": "SHARED",
    }
    with Archive.launch(tmp_path / "a", aeron_dir, properties=properties):
        assert sent[0].response(5).code == codecs.ControlResponseCode.OK
        sent[0].client.close()


def test_a_start_that_is_interrupted_frees_the_directory(
    tmp_path: Path, aeron_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after the mark file says that the directory is in use, too."""
    acquire = MarkFile.acquire

    def interrupted(mark_file: MarkFile) -> None:
        acquire(mark_file)
        raise KeyboardInterrupt

    monkeypatch.setattr(MarkFile, "acquire", interrupted)
    properties = {"aeron.archive.control.channel.enabled": "false"}
    with pytest.raises(KeyboardInterrupt):
        Archive.launch(tmp_path, aeron_dir, properties=properties)
    with unused(tmp_path, 10_000):
        pass


@pytest.mark.parametrize("properties", [[("aeron.archive.id", 5)], {5: "aeron.archive.id"}])
def test_launch_with_invalid_properties(tmp_path: Path, properties: Any) -> None:
    """Invalid properties are refused before anything is created."""
    with pytest.raises(ConfigurationError, match="properties"):
        Archive.launch(dir=tmp_path / "archive", properties=properties)
    assert list(tmp_path.iterdir()) == []


def test_launch_with_an_unknown_driver_kind(tmp_path: Path) -> None:
    """The argument is checked before anything is created."""
    with pytest.raises(ConfigurationError, match="embedded or external"):
        Archive.launch(tmp_path / "a", driver="remote")  # type: ignore[arg-type]
    assert not (tmp_path / "a").exists()


def test_an_archive_that_was_not_closed_writes_stop_positions(
    tmp_path: Path, aeron_dir: Path
) -> None:
    """When a script ends without closing its archive, positions are written and the directory is
    unlocked."""
    script = """
import sys, time, aerotape
archive = aerotape.Archive.launch(dir=sys.argv[1], aeron_dir=sys.argv[2], properties={
    "aeron.archive.control.channel.enabled": False,
    "aeron.archive.recording.events.enabled": False,
    "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
})
client = aerotape.connect(aeron_dir=archive.aeron_dir)
client.start_recording("aeron:ipc", 5)
publication = client.aeron.add_publication("aeron:ipc", 5)
end = publication.send(b"kept")
while not [r for r in client.list_recordings() if client.max_recorded_position(0) == end]:
    time.sleep(0.01)
"""
    directory = tmp_path / "archive"
    subprocess.run(
        [sys.executable, "-c", script, str(directory), str(aeron_dir)],
        check=True, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    with Catalog.open(directory, read_only=True) as catalog:
        assert catalog.descriptor(0).stop_position == 64
    assert not MarkFile.read(directory).is_active()
