"""Replicate a recording from another archive, the source.

The command ends when copying has begun, and the archive continues; with --follow it shows the
progress and ends with the replication. Interrupting the command does not stop the replication:
`aerotape stop-replication` does, with the id that is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aerotape.errors import AeronTimeoutError, AerotapeError, ConfigurationError
from aerotape.tools._cli.arguments import byte_length, channel, identity, int32
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import ABSENT, Absent, Progress, emit, note

if TYPE_CHECKING:
    from aerotape.clients import ArchiveClient

_LOOK_NS: Final = 200_000_000


@dataclass(frozen=True, slots=True)
class Replication:
    """A replication; with --follow its outcome.

    Attributes:
        replication_id: replication id.
        src_recording_id: recording id in the source archive.
        src_control_channel: control channel of the source archive.
        dst_recording_id: recording id in this archive.
        position: up to where it is replicated, bytes.
        signals: recording signals received.
    """

    replication_id: int
    src_recording_id: int
    src_control_channel: str
    dst_recording_id: int | Absent | None = ABSENT
    position: int | Absent = ABSENT
    signals: Sequence[str] | Absent = ABSENT


JSON_ROWS: Final = {"": Replication}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "src_recording_id",
        metavar="SOURCE_ID",
        type=identity,
        help="the recording id in the source archive",
    )
    parser.add_argument(
        "src_control_channel",
        metavar="SOURCE_CHANNEL",
        type=channel,
        help="the source archive's control channel, as reached from the archive",
    )
    parser.add_argument(
        "--source-stream-id",
        metavar="ID",
        type=int32,
        default=10,
        help="the source archive's control stream (default: 10)",
    )
    parser.add_argument(
        "--extend", metavar="ID", type=identity, help="extend this stopped recording of the archive"
    )
    parser.add_argument(
        "--stop-position", metavar="P", type=identity, help="the position at which to stop, bytes"
    )
    parser.add_argument(
        "--live-destination",
        metavar="CHANNEL",
        type=channel,
        help="join the live stream at this destination once the copy has caught up",
    )
    parser.add_argument(
        "--replication-channel",
        metavar="CHANNEL",
        type=channel,
        help="the channel to which the source replays (default: the archive's setting)",
    )
    parser.add_argument(
        "--channel-tag", metavar="ID", type=identity, help="the channel tag of the subscription"
    )
    parser.add_argument(
        "--subscription-tag",
        metavar="ID",
        type=identity,
        help="the subscription tag of the subscription",
    )
    parser.add_argument(
        "--session-id", metavar="ID", type=int32, help="the session id of the replay (default: any)"
    )
    parser.add_argument(
        "--file-io-max-length",
        metavar="N",
        type=byte_length,
        help="the most the source reads at a time, bytes",
    )
    parser.add_argument(
        "--source-credentials-file",
        metavar="F",
        type=Path,
        help="send the content of F to the source as credentials",
    )
    parser.add_argument(
        "--source-response-channel",
        metavar="CHANNEL",
        type=channel,
        help="the channel for responses of the source",
    )
    parser.add_argument("--follow", action="store_true", help="wait until the replication ends")
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Send the request, wait for the begin, or with --follow for the end, and print the outcome."""
    if args.live_destination is not None and args.session_id is not None:
        raise ConfigurationError(
            "--session-id cannot be used with --live-destination", "--session-id"
        )
    credentials = b""
    if args.source_credentials_file is not None:
        credentials = args.source_credentials_file.read_bytes()
    with connect(args) as client:
        replication_id = client.replicate(
            args.src_recording_id,
            args.src_control_channel,
            args.source_stream_id,
            dst_recording_id=args.extend,
            stop_position=args.stop_position,
            live_destination=args.live_destination,
            replication_channel=args.replication_channel,
            channel_tag_id=args.channel_tag,
            subscription_tag_id=args.subscription_tag,
            file_io_max_length=args.file_io_max_length,
            replication_session_id=args.session_id,
            encoded_credentials=credentials,
            src_response_channel=args.source_response_channel,
        )
        note(f"replication {replication_id} was requested")
        follower = _Follower(client, replication_id, args.stop_position)
        outcome: dict[str, Any] = {}
        if args.follow:
            outcome = follower.follow()
        else:
            follower.await_begin()
        emit(
            Replication(
                replication_id=replication_id,
                src_recording_id=args.src_recording_id,
                src_control_channel=args.src_control_channel,
                **outcome,
            ),
            args,
        )


class _Follower:
    """Follows a replication until it ends."""

    def __init__(
        self, client: ArchiveClient, replication_id: int, stop_position: int | None
    ) -> None:
        self._client = client
        self._replication_id = replication_id
        self._stop_position = stop_position
        self._recording_id: int | None = None
        self._signals: list[str] = []
        self._position = -1

    def await_begin(self) -> None:
        """Wait for the first signal (ArchiveError: the replication failed)."""
        while not self._signals:
            self._poll()

    def follow(self) -> dict[str, Any]:
        """Return the outcome of the replication.

        Raises:
            ArchiveError: the replication failed.
            AerotapeError: the replication ended before the stop position.
        """
        label = f"replication {self._replication_id}"
        with Progress(self._stop_position, label, unit="bytes") as progress:
            while "replicate_end" not in self._signals:
                self._poll()
                if self._recording_id is not None:
                    recorded = self._client.max_recorded_position(self._recording_id)
                    self._position = max(self._position, recorded)
                progress.update(max(self._position, 0))
        self._raise_error()
        if self._stop_position is not None and self._position < self._stop_position:
            raise AerotapeError(
                f"replication {self._replication_id} ended at position {self._position}, before "
                f"{self._stop_position}: it was stopped, or the source has no more"
            )
        return {
            "dst_recording_id": self._recording_id,
            "position": self._position,
            "signals": self._signals,
        }

    def _poll(self) -> None:
        with suppress(AeronTimeoutError):
            event = self._client.await_signal(
                correlation_id=self._replication_id, timeout_ns=_LOOK_NS
            )
            self._signals.append(event.signal.name.lower())
            if event.recording_id >= 0:
                self._recording_id = event.recording_id
            self._position = max(self._position, event.position)
        self._raise_error()

    def _raise_error(self) -> None:
        for error in self._client.poll_for_errors():
            if error.correlation_id == self._replication_id:
                raise error
