"""A service that may open few files."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

from support.builders.offline_directory import build
from support.daemon.command_line import CommandLine

FILES = 400


def test_more_connections_than_files(own: CommandLine, tmp_path: Path) -> None:
    """They are accepted a few at a time, so that none fails, and health responds."""
    command = ["prlimit", f"--nofile={FILES}", sys.executable, "-m", "aerotape", "web"]
    with (
        subprocess.Popen(
            [*command, str(build(tmp_path / "archive")), "--http", "0", "--json"],
            env=own.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        ExitStack() as held,
    ):
        assert process.stdout is not None
        address = urlsplit(json.loads(process.stdout.readline())["url"])
        for _ in range(FILES + 100):
            held.enter_context(socket.create_connection((address.hostname, address.port), 60))
        with urlopen(f"{address.geturl()}healthz", timeout=60) as answer:
            assert answer.status == 200
        process.terminate()
        assert process.communicate(timeout=60)[1] == ""
