"""Read secrets from files and standard input, never from arguments, which `ps` shows."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from aerotape.errors import ConfigurationError
from aerotape.tools._cli.output import note

_MAX_LENGTH = 64 * 1024


def read_secret(name: str) -> bytes:
    """Return the first line of a file, or of standard input for ``-``, without its line end.

    Raises:
        ConfigurationError: the file cannot be read, or the line is empty.
    """
    secret = read_secret_file(name).partition(b"\n")[0].removesuffix(b"\r")
    if not secret:
        raise ConfigurationError(f"{name}: the first line is empty: expected a secret", name)
    return secret


def read_secret_file(name: str) -> bytes:
    """Return the content of a file, or of standard input for ``-``.

    Raises:
        ConfigurationError: the file cannot be read, or is too long for a secret.
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
            note(f"warning: {name} is accessible to other users: run chmod 600 {name}")
    if len(data) > _MAX_LENGTH:
        raise ConfigurationError(f"{name}: longer than {_MAX_LENGTH} bytes", name)
    return data
