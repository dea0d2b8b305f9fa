"""A pseudo-terminal of a given width, on which a command is run."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence


def run_on_terminal(
    arguments: Sequence[str], environment: Mapping[str, str], columns: int = 80
) -> str:
    """Run `aerotape` with both outputs on a terminal; return what it has printed there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    hidden = ("COLUMNS", "LINES", "NO_COLOR", "TERM")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    process = subprocess.Popen(
        [sys.executable, "-m", "aerotape", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**env, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    printed = b""
    try:
        while block := os.read(ours, 1 << 16):
            printed += block
    except OSError:  # EIO: the process has closed the terminal
        pass
    finally:
        os.close(ours)
        process.wait(60)
    return printed.decode().replace("\r\n", "\n")
