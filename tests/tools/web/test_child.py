"""`aerotape archive --http`: the web service beside an archive."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.daemon.command_line import aerotape
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive
from support.processes import FAST_ARCHIVE


class WithWeb(AerotapeArchive):
    """An archive with --http."""

    port = 0

    def _arguments(self) -> list[str]:
        return ["--http", str(self.port)]


def children(pid: int) -> list[int]:
    """Return the child processes of a process that are web services."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            arguments = (stat.parent / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if int(fields[1]) == pid and b"web" in arguments:
            found.append(int(stat.parent.name))
    return found


def is_ready(port: int | None) -> bool:
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/readyz", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def started(folder: Path, aeron_dir: Path, port: int) -> WithWeb:
    channels = {"aeron.archive.control.channel": "aeron:udp?endpoint=localhost:0"}
    policy = folder / "policy.toml"
    policy.write_text("[[rule]]\nmax_age = '1d'\n")
    retention = {"aerotape.retention.file": str(policy)}
    properties = FAST_ARCHIVE | channels | retention
    archive = WithWeb(folder / "archive", aeron_dir, properties=properties)
    archive.port = port
    return archive


def test_it_is_restarted_and_ends_with_the_archive(
    tmp_path: Path, aeron_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the archive's retention policy.

    Its address is printed after the archive's own line, and again when it is started again, to a
    pipe too.
    """
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with started(tmp_path, aeron_dir, 0) as archive:
        urls, seen = [], []
        for _ in range(2):
            line = json.loads(archive.process.receive(60))
            assert line["event"] == "ready"
            urls.append(line["url"])
            await_true(lambda: is_ready(urlsplit(urls[-1]).port))
            with urllib.request.urlopen(f"{urls[-1]}api/v1/retention") as response:
                found = json.load(response)
                assert (found["removals"], found["kept"]) == ([], [])
            [child] = children(archive.process.pid)
            seen.append(child)
            if len(seen) == 1:
                os.kill(child, signal.SIGKILL)
        assert all(url.startswith("http://127.0.0.1:") for url in urls)
        assert seen[0] != seen[1]
        assert re.search("web service has ended, exit code -9", archive.log())
        assert archive.stop() == 0
        assert not is_running(seen[1])


def test_it_ends_with_a_killed_archive(
    tmp_path: Path, aeron_dir: Path, free_port: Callable[[], int]
) -> None:
    port = free_port()
    with started(tmp_path, aeron_dir, port) as archive:
        await_true(lambda: is_ready(port))
        [child] = children(archive.process.pid)
        archive.process.kill()
        await_true(lambda: not is_running(child))


def test_other_machines_need_users(tmp_path: Path) -> None:
    """The archive does not start."""
    done = aerotape("archive", "--dir", tmp_path / "new", "--http", "0.0.0.0:0", expect=2)
    assert "require users with --users FILE" in done.err
    assert not (tmp_path / "new").exists()
