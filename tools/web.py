"""Serve metrics, health and the state of an archive over HTTP.

Stands beside an archive, ours or the Java archive, and reads its files; only ledgers and changes
take a control session. It runs on when the archive restarts. Without --users it binds to
this machine only.

    aerotape web /var/lib/aeron-archive --http 8080
    curl http://localhost:8080/metrics                  # Prometheus; also /healthz and /readyz
    curl http://localhost:8080/api/v1/recordings        # REST; /openapi.json describes it
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.errors import ConfigurationError
from aerotape.protocol import NULL_VALUE
from aerotape.tools._cli.arguments import count
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.selecting import OF_DECODING, add_selection_options
from aerotape.tools._web.address import check_web_service, web_address
from aerotape.tools._web.proxies import network, root_path

if TYPE_CHECKING:
    from aerotape.clients import ArchiveClient
    from aerotape.tools._web.observed import ObservedArchive

_TIMEOUT_NS: Final = 5_000_000_000
_NICENESS: Final = 10


JSON_ROWS: Final = {"": "aerotape.tools._web.server:ReadyService"}


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
    parser.add_argument(
        "--root-path",
        metavar="PREFIX",
        type=root_path,
        default="",
        help="the prefix, such as /tape, that a reverse proxy removes from the paths of requests",
    )
    parser.add_argument(
        "--trusted-proxy",
        metavar="ADDRESS",
        action="append",
        type=network,
        default=[],
        help="a reverse proxy, or a network of them, whose header X-Forwarded-Prefix is the prefix "
        "(repeatable)",
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
    parser.add_argument(
        "--allow-changes",
        action="store_true",
        help="let requests stop, truncate and delete recordings and ledgers",
    )
    parser.add_argument(
        "--retention",
        metavar="POLICY",
        type=Path,
        help="show what this retention policy, a TOML file, would delete",
    )
    parser.add_argument(
        "--verification",
        metavar="FILE",
        type=Path,
        help="show what a verification found: the output of `aerotape tool DIR verify --json`",
    )
    parser.add_argument(
        "--schema",
        metavar="FILE",
        action="append",
        default=[],
        type=Path,
        help="an SBE schema, XML or .sbeir, with which payloads can be shown (repeatable)",
    )
    add_selection_options(parser, OF_DECODING)
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)  # end with this process
    add_connection_options(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    check_web_service(args.http, args.users)
    os.nice(_NICENESS)  # the archive comes first
    from aerotape.tools._web.observed import ObservedArchive
    from aerotape.tools._web.schemas import schema_selections
    from aerotape.tools._web.server import serve
    from aerotape.tools._web.service import WebSettings
    from aerotape.tools._web.session import ControlSession

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
        allow_changes=args.allow_changes,
        retention=args.retention,
        schemas=schema_selections(
            args.schema,
            {name: value for name in OF_DECODING if (value := getattr(args, name)) is not None},
        ),
        root_path=args.root_path,
        trusted_proxies=args.trusted_proxy,
    )
    if not args.directory.is_dir():
        raise ConfigurationError(f"{args.directory} is not a directory", "DIR")
    observed = ObservedArchive(args.directory, args.aeron_dir, args.verification)
    with ControlSession(partial(_connected, observed, args)) as session:
        return serve(observed, session, settings, args)


def _connected(observed: ObservedArchive, args: argparse.Namespace) -> ArchiveClient:
    """Connect to the archive of the directory, where its mark file says unless options do.

    Raises:
        ConfigurationError: the options lead to another archive.
        AerotapeError: there is no media driver or no archive.
    """
    mark = observed.snapshot().mark
    if mark is None:
        return connect(args, {"timeout_ns": _TIMEOUT_NS})
    given = argparse.Namespace(**vars(args))
    given.aeron_dir = args.aeron_dir or mark.header.aeron_directory
    if args.control_channel is None:
        given.control_channel = mark.header.local_control_channel
        given.control_stream_id = mark.header.local_control_stream_id
    client = connect(given, {"timeout_ns": _TIMEOUT_NS})
    if mark.header.archive_id not in (client.archive_id, NULL_VALUE):
        client.close()
        raise ConfigurationError(
            f"{given.control_channel} in {given.aeron_dir} leads to archive {client.archive_id}, "
            f"and {args.directory} is of archive {mark.header.archive_id}: correct the options",
            "--control-channel",
        )
    return client
