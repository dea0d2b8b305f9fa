"""Secrets for commands: from files and standard input, never from the arguments `ps` shows."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from aerotape.errors import ConfigurationError
from aerotape.tools._cli.output import note

_MAX_LENGTH = 64 * 1024


def read_secret(name: str) -> bytes:
    """Return the first line of a file, or of standard input for ``-``, without its end.

    Raises:
        ConfigurationError: it cannot be read, or the line is empty.
    """
    secret = read_secret_file(name).partition(b"\n")[0].removesuffix(b"\r")
    if not secret:
        raise ConfigurationError(f"{name}: no secret in its first line", name)
    return secret


def read_secret_file(name: str) -> bytes:
    """Return what a file holds, or standard input for ``-``.

    Raises:
        ConfigurationError: it cannot be read, or is too long for a secret.
    """
    if name == "-":
        data = sys.stdin.buffer.read(_MAX_LENGTH + 1)
    else:
        try:
            with Path(name).open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                data = file.read(_MAX_LENGTH + 1)
        except OSError as error:
            raise ConfigurationError(f"{name}: {error.strerror}", name) from error
        if stat.S_ISREG(mode) and mode & (stat.S_IRWXG | stat.S_IRWXO):
            note(f"warning: {name} is open to others: chmod 600 {name}")
    if len(data) > _MAX_LENGTH:
        raise ConfigurationError(f"{name}: longer than {_MAX_LENGTH} bytes", name)
    return data
