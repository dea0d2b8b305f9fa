"""`aerotape web` in a process of its own, and requests to it."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.forked import Forked

MAX_BYTES = 256 << 20
"""The most memory that the service may need."""


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def basic(user: str, secret: str) -> str:
    """Return the value of the header `Authorization`."""
    return "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode()


def certificate(folder: Path) -> tuple[Path, Path]:
    """Create a certificate for localhost, signed by itself; return its file and its key's."""
    made, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    command += ["-keyout", str(key), "-out", str(made), "-days", "2"]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


def peak_bytes(pid: int) -> int:
    """Return the most resident memory that a process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    [found] = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(found) * 1024


class WebService:
    """A running service. Use as a context manager.

    Attributes:
        url: of the service.
        errors: what it has printed to standard error, once it has ended.
    """

    def __init__(self, cli: CommandLine, directory: Path, *options: object) -> None:
        args = ("web", directory, "--http", 0, "--json", *options)
        self.process = Forked([str(arg) for arg in args], cli.environment)
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.url = json.loads(line)["url"]
        self.errors = ""

    def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Make a request; `_` in the names of headers stands for `-`."""
        url = urlsplit(self.url)
        assert url.hostname is not None
        if url.scheme == "https":
            trusting = ssl._create_unverified_context()
            made: http.client.HTTPConnection = http.client.HTTPSConnection(
                url.hostname, url.port, timeout=180, context=trusting
            )
        else:
            made = http.client.HTTPConnection(url.hostname, url.port, timeout=180)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        made.request(method, path, headers=named)
        response = made.getresponse()
        answer = Answer(response.status, dict(response.getheaders()), response.read())
        made.close()
        return answer

    def get_soon(self, path: str, **headers: str) -> Answer:
        """Make a request, again while it is 503: on a busy machine it may take too long."""
        answers: list[Answer] = []

        def is_answered() -> bool:
            answers.append(self.get(path, **headers))
            return answers[-1].status != 503

        await_true(is_answered)
        return answers[-1]

    def await_metrics(self) -> None:
        """Wait until metrics and health are not 503: the archive's files were read."""
        self.get_soon("/metrics")

    def await_state(self, recording_id: int, *, live: bool) -> None:
        """Wait until the service has read that a recording is live, or that it is stopped."""

        def is_read() -> bool:
            found = self.get(f"/api/v1/recordings/{recording_id}")
            return found.status == 200 and found.json["live"] is live

        await_true(is_read)

    def __enter__(self) -> WebService:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.errors = self.process.communicate(timeout=30)[1]
