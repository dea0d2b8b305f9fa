"""The options of every command that connects to a running archive, and `connect`.

As for Aeron's clients, an option overrides `-D`, which overrides the environment variable of the
same name (upper case, underscores for dots), which overrides the default.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from aerotape.errors import AeronError, AeronTimeoutError, ConfigurationError
from aerotape.tools._cli.arguments import (
    ascii_text,
    channel,
    duration_ns,
    int32,
    property_duration_ns,
)
from aerotape.tools._cli.connection_help import DESCRIPTION, TITLE
from aerotape.tools._cli.output import note
from aerotape.tools._cli.secrets import read_secret, read_secret_file
from aerotape.units import parse_size

if TYPE_CHECKING:
    from aerotape.client.credentials import UserSecret
    from aerotape.clients import ArchiveClient

_T = TypeVar("_T")
_WAIT_NS: Final = 60_000_000_000
_RETRY_SLEEP_S: Final = 0.1
_AERON_DIR_HELP: Final = "the media driver's directory (default: $AERON_DIR, or Aeron's)"

AERON_DIR: Final = "aeron.dir"
CONTROL_CHANNEL: Final = "aeron.archive.control.channel"
CONTROL_STREAM_ID: Final = "aeron.archive.control.stream.id"
RESPONSE_CHANNEL: Final = "aeron.archive.control.response.channel"
RESPONSE_STREAM_ID: Final = "aeron.archive.control.response.stream.id"
TIMEOUT: Final = "aeron.archive.message.timeout"
CLIENT_NAME: Final = "aeron.archive.client.name"
# Parameters of control streams whose channels lack them: URI parameter by property.
_STREAM_PARAMETERS: Final = {
    "aeron.archive.control.term.buffer.length": "term-length",
    "aeron.archive.control.mtu.length": "mtu",
    "aeron.archive.control.term.buffer.sparse": "sparse",
}
# Properties of this package.
USER: Final = "aerotape.user"
SECRET_FILE: Final = "aerotape.secret.file"
CREDENTIALS_FILE: Final = "aerotape.credentials.file"


def add_connection_options(
    parser: argparse.ArgumentParser, description: str = DESCRIPTION
) -> None:
    """Add the options of the connection to the archive.

    Args:
        description: of their group in the help; with the default, the help has only this.
    """
    group = parser.add_argument_group(TITLE, description)
    group.add_argument("--aeron-dir", metavar="DIR", help=_AERON_DIR_HELP)
    group.add_argument(
        "--control-channel",
        metavar="CHANNEL",
        type=channel,
        help="the archive's control request channel (default: aeron:ipc)",
    )
    group.add_argument(
        "--control-stream-id",
        metavar="ID",
        type=int32,
        help="the control request stream (default: 10)",
    )
    group.add_argument(
        "--response-channel",
        metavar="CHANNEL",
        type=channel,
        help="the channel for responses (default: derived from the control channel)",
    )
    group.add_argument(
        "--response-stream-id",
        metavar="ID",
        type=int32,
        help="the stream for responses (default: 20)",
    )
    group.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration_ns,
        help="limit for the connect and for each request: 5, 5s, 500ms (default: 10s)",
    )
    group.add_argument(
        "--wait",
        metavar="TIME",
        nargs="?",
        type=duration_ns,
        const=_WAIT_NS,
        default=0,
        help="wait for the media driver and the archive to start, by default 60s; place it after "
        "other arguments, or write --wait=TIME",
    )
    group.add_argument("--user", metavar="NAME", help="the user name")
    group.add_argument(
        "--secret-file", metavar="F", help="read the secret from the first line of F (-: stdin)"
    )
    group.add_argument(
        "--credentials-file",
        metavar="F",
        help="send the content of F (-: stdin) as credentials, for archives with another "
        "authenticator",
    )
    group.add_argument(
        "-D",
        dest="properties",
        metavar="name=value",
        action="append",
        default=[],
        help="set a property of the Java client (repeatable)",
    )


def add_driver_option(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands that read a media driver's files."""
    parser.add_argument("--aeron-dir", metavar="DIR", help=_AERON_DIR_HELP)


def driver_directory(args: argparse.Namespace) -> str:
    """Return the media driver's directory given by this module's options."""
    from aerotape.media_driver import default_aeron_dir

    given = args.aeron_dir
    if "properties" in args:
        given = _Settings(args).get(given, AERON_DIR, str)
    return given or default_aeron_dir()


def connect(
    args: argparse.Namespace, defaults: Mapping[str, Any] = MappingProxyType({})
) -> ArchiveClient:
    """Connect to the archive.

    Args:
        args: the options of `add_connection_options`.
        defaults: arguments of `aerotape.connect` that neither options nor properties set.

    Raises:
        ConfigurationError: an option or property has an invalid value.
        AerotapeError: there is no media driver or no archive.
    """
    settings = _Settings(args)
    chosen: dict[str, Any] = {
        "aeron_dir": settings.get(args.aeron_dir, AERON_DIR, str),
        "control_request_channel": settings.get(args.control_channel, CONTROL_CHANNEL, channel),
        "control_request_stream_id": settings.get(args.control_stream_id, CONTROL_STREAM_ID, int32),
        "control_response_channel": settings.get(args.response_channel, RESPONSE_CHANNEL, channel),
        "control_response_stream_id": settings.get(
            args.response_stream_id, RESPONSE_STREAM_ID, int32
        ),
        "timeout_ns": settings.get(args.timeout, TIMEOUT, property_duration_ns),
        "credentials": _credentials(args, settings),
    }
    given = {**defaults, **{name: value for name, value in chosen.items() if value is not None}}
    given["client_name"] = settings.get(None, CLIENT_NAME, ascii_text) or "aerotape-cli"
    _put_stream_parameters(given, settings)
    return _connected(given, args.wait)


def _connected(given: Mapping[str, Any], wait_ns: int) -> ArchiveClient:
    """Connect; retry for `wait_ns` while there is no driver or no archive."""
    # The client loads the native core, which --help does not need.
    from aerotape.clients import connect as connect_client

    deadline_ns = time.monotonic_ns() + wait_ns
    left_ns = wait_ns
    while True:
        try:
            return connect_client(**given, start_timeout_ns=left_ns)
        except (AeronError, AeronTimeoutError):
            left_ns = deadline_ns - time.monotonic_ns()
            if left_ns <= 0:
                raise
        time.sleep(_RETRY_SLEEP_S)


def _put_stream_parameters(given: dict[str, Any], settings: _Settings) -> None:
    """Add to both channels the parameters of control streams that properties set."""
    from aerotape.client import channels

    wanted = {
        parameter: value
        for name, parameter in _STREAM_PARAMETERS.items()
        if (value := settings.get(None, name, _PARSERS[parameter])) is not None
    }
    if not wanted:
        return
    request = given.get("control_request_channel", channels.DEFAULT_CONTROL_CHANNEL)
    response = given.get("control_response_channel") or channels.default_response_channel(request)
    for name, text in (
        ("control_request_channel", request),
        ("control_response_channel", response),
    ):
        given[name] = channels.with_parameters(text, wanted)


def _size(text: str) -> str:
    try:
        return str(parse_size("size", text))
    except ConfigurationError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size like 64k or 1408") from None


def _boolean(text: str) -> str:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} must be true or false")
    return text


_PARSERS: Final = {"term-length": _size, "mtu": _size, "sparse": _boolean}


def _credentials(args: argparse.Namespace, settings: _Settings) -> bytes | UserSecret | None:
    from aerotape.client.credentials import UserSecret

    user = settings.get(args.user, USER, str)
    secret_file = settings.get(args.secret_file, SECRET_FILE, str)
    credentials_file = settings.get(args.credentials_file, CREDENTIALS_FILE, str)
    if (user is None) != (secret_file is None):
        raise ConfigurationError("--user and --secret-file are used together: give both", "--user")
    if credentials_file is not None:
        if user is not None:
            raise ConfigurationError(
                "--credentials-file replaces --user and --secret-file: give one of them",
                "--credentials-file",
            )
        return read_secret_file(credentials_file)
    if user is None or secret_file is None:
        return None
    return UserSecret(user, read_secret(secret_file))


def _warn_of_unknown(name: str) -> None:
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.config.property import properties_of
    from aerotape.archive.config.property_names import (
        ARCHIVE_PREFIX,
        CLIENT_PROPERTIES,
        OWN_PREFIX,
        WITHOUT_EFFECT,
        nearest,
    )
    from aerotape.archive.features.built_in import SECTIONS

    known = {*properties_of(ArchiveConfig, *SECTIONS), *WITHOUT_EFFECT, *CLIENT_PROPERTIES}
    if name.startswith((ARCHIVE_PREFIX, OWN_PREFIX)) and name not in known:
        note(f"warning: {name} is not a property of archives or clients{nearest(name, known)}")


class _Settings:
    def __init__(self, args: argparse.Namespace) -> None:
        self._properties: dict[str, str] = {}
        for text in args.properties:
            name, equals, value = text.partition("=")
            if not equals or not name.startswith(("aeron.", "aerotape.")):
                raise ConfigurationError(
                    f"-D{text}: expected -Daeron.…=value or -Daerotape.…=value", name
                )
            self._properties[name] = value
            _warn_of_unknown(name)

    def get(self, option: _T | None, name: str, parse: Callable[[str], _T]) -> _T | None:
        """Return the option's value, else that of the property `name`; None when unset."""
        if option is not None:
            return option
        variable = name.upper().replace(".", "_")
        value = self._properties.get(name) or os.environ.get(variable)
        if not value:
            return None
        try:
            return parse(value)
        except argparse.ArgumentTypeError as error:
            where = f"-D{name}" if self._properties.get(name) else f"environment {variable}"
            raise ConfigurationError(f"{where}: {error}", name) from error
