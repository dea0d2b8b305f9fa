"""Serve metrics, health and the state of an archive over HTTP.

Stands beside an archive, ours or the Java archive, and reads its files: it needs no connection to
it, and runs on when the archive restarts. Without --users it binds to this machine only.

    aerotape web /var/lib/aeron-archive --http 8080
    curl http://localhost:8080/metrics        # Prometheus; also /healthz and /readyz
"""

from __future__ import annotations

import argparse
from pathlib import Path

from aerotape.errors import ConfigurationError
from aerotape.tools._cli.arguments import count
from aerotape.tools._cli.connection import add_driver_option
from aerotape.tools._cli.web_address import check_web_service, web_address


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="the archive directory")
    parser.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        type=web_address,
        default=("127.0.0.1", 8080),
        help="where to listen (default: 127.0.0.1:8080); port 0: one that is free",
    )
    parser.add_argument(
        "--users", metavar="FILE", type=Path, help="require a user of this file (`aerotape users`)"
    )
    parser.add_argument(
        "--allowed-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name by which the service is reached (repeatable)",
    )
    parser.add_argument("--certificate", metavar="FILE", type=Path, help="TLS certificate, PEM")
    parser.add_argument("--key", metavar="FILE", type=Path, help="its private key, PEM")
    parser.add_argument(
        "--max-series",
        metavar="N",
        type=count,
        default=1_000,
        help="the most recordings with metrics of their own (default: 1000)",
    )
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)  # end with this process
    add_driver_option(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    check_web_service(args.http, args.users)
    from aerotape.tools._web.observed import ObservedArchive
    from aerotape.tools._web.server import serve
    from aerotape.tools._web.service import WebSettings

    host, port = args.http
    if (args.certificate is None) != (args.key is None):
        raise ConfigurationError("--certificate and --key are used together: give both", "--key")
    settings = WebSettings(
        host=host,
        port=port,
        users=args.users,
        allowed_hosts=args.allowed_host,
        certificate=args.certificate,
        key=args.key,
        max_series=args.max_series,
    )
    if not args.directory.is_dir():
        raise ConfigurationError(f"{args.directory} is not a directory", "DIR")
    return serve(ObservedArchive(args.directory, args.aeron_dir), settings, args)
