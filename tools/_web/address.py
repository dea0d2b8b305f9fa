"""Where the web service listens, as `aerotape web` and `aerotape archive` take it."""

from __future__ import annotations

import argparse
import importlib.util
import ipaddress
from pathlib import Path
from typing import Final

from aerotape.errors import ConfigurationError
from aerotape.formatting import not_installed

LOCAL_HOST: Final = "127.0.0.1"
_MAX_PORT: Final = 65_535


def web_address(text: str) -> tuple[str, int]:
    """Parse `PORT` or `HOST:PORT`, with brackets around IPv6 addresses.

    Raises:
        argparse.ArgumentTypeError: it is neither.
    """
    host, colon, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _MAX_PORT or (colon and not host):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected PORT or HOST:PORT, with a port up to {_MAX_PORT}"
        )
    return (host.removeprefix("[").removesuffix("]") or LOCAL_HOST), int(port)


def check_web_service(address: tuple[str, int], users: Path | None) -> None:
    """Check that a web service can be started there, and may be without users.

    Raises:
        ConfigurationError: other machines can reach it without a user, or packages are missing.
    """
    host, port = address
    if users is None and not _is_local(host):
        raise ConfigurationError(
            f"--http {host}:{port}: other machines can reach it: require users with --users FILE",
            "--http",
        )
    for module in ("fastapi", "jinja2", "prometheus_client", "uvicorn"):
        if importlib.util.find_spec(module) is None:
            raise ConfigurationError(not_installed(module, "web"), "--http")


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
