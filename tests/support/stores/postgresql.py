"""A PostgreSQL server of Debian's package, with its own data directory and port."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from aerotape.context import Closing
from support.processes import HarnessError
from support.stores.ports import free_tcp_port

_INSTALLATIONS: Final = Path("/usr/lib/postgresql")
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "shared_buffers": "32MB",
    "max_connections": "30",
}
_START_TIMEOUT_S: Final = 60


class PostgresqlServer(Closing):
    """A running server; the user of root's tests is `postgres`, as the server refuses root."""

    def __init__(self, primary: PostgresqlServer | None = None) -> None:
        """Create a data directory and start the server on a free port of the loopback interface.

        Args:
            primary: be a hot standby of this server.
        """
        self.port = free_tcp_port()
        self._as_user: list[str] = []
        self._directory = Path(tempfile.mkdtemp(prefix="aerotape-postgresql-", dir="/tmp"))
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self._directory, user.pw_uid, user.pw_gid)
            self._as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}"]
            self._as_user.append("--clear-groups")
        self._data = str(self._directory / "data")
        try:
            if primary is None:
                self._run("initdb", "-D", self._data, "-U", "tests", "-A", "trust", "-N")
            else:
                source = ["-h", "127.0.0.1", "-p", str(primary.port), "-U", "tests"]
                fast = ["-c", "fast", "--no-sync"]
                self._run("pg_basebackup", "-D", self._data, "-R", *source, *fast)
            self.start()
        except BaseException:
            shutil.rmtree(self._directory, ignore_errors=True)
            raise

    @property
    def url(self) -> str:
        """The URL of its database."""
        return f"postgresql://tests@127.0.0.1:{self.port}/postgres"

    def standby(self) -> PostgresqlServer:
        """Start a hot standby."""
        return PostgresqlServer(self)

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        options = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
        options += f" -c port={self.port} -c unix_socket_directories={self._directory}"
        log = str(self._directory / "log")
        wait = ["-w", "-t", str(_START_TIMEOUT_S)]
        self._run("pg_ctl", "-D", self._data, "-l", log, "-o", options, *wait, "start")

    def stop(self) -> None:
        """Stop it as in a crash: connections end at once, nothing is flushed."""
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")

    def close(self) -> None:
        """Stop it and delete its data."""
        try:
            self.stop()
        except HarnessError:
            pass  # a test has stopped it
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as_user, str(_binaries() / program), *arguments]
        # The server inherits the descriptors: a pipe would stay open until it ends.
        with (self._directory / "output").open("a+") as output:
            ended = subprocess.run(
                command, cwd=self._directory, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
            if ended.returncode:
                output.seek(0)
                raise HarnessError(f"{program} failed:\n{output.read()}")


def _binaries() -> Path:
    """Return the folder of the newest installed server's programs."""
    found = sorted(_INSTALLATIONS.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        raise HarnessError(f"no server in {_INSTALLATIONS}: apt-get install postgresql")
    return found[-1].parent
