"""Free TCP ports of the loopback interface."""

from __future__ import annotations

import socket


def free_tcp_port() -> int:
    """Return a TCP port that no socket of this machine uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
