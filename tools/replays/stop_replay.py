"""Stop a replay, all replays of a recording, or all replays.

It is a failure when no replay with the id is running. The Java archive does not report that.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.errors import ConfigurationError, UnknownReplayError
from aerotape.protocol import ErrorCode
from aerotape.tools._cli.arguments import identity, int64
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import ABSENT, Absent, emit


@dataclass(frozen=True, slots=True)
class StoppedReplay:
    """A replay, or all of a recording or archive, that was stopped.

    Attributes:
        stopped: replay or all replays.
        replay_session_id: replay session id.
        recording_id: the recording, null for all.
    """

    stopped: str
    replay_session_id: int | Absent = ABSENT
    recording_id: int | Absent | None = ABSENT


JSON_ROWS: Final = {"": StoppedReplay}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "replay_session_id",
        metavar="REPLAY_SESSION_ID",
        type=int64,
        nargs="?",
        help="the id that `replay --to` printed",
    )
    parser.add_argument(
        "--recording", metavar="ID", type=identity, help="all replays of this recording"
    )
    parser.add_argument("--all", action="store_true", help="all replays, of all clients")
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Send the request; that no replay with the id is running is a failure."""
    if sum((args.replay_session_id is not None, args.recording is not None, args.all)) != 1:
        raise ConfigurationError("give either REPLAY_SESSION_ID, --recording or --all")
    with connect(args) as client:
        if args.replay_session_id is not None:
            if not client.stop_replay(args.replay_session_id):
                raise UnknownReplayError(
                    f"no replay {args.replay_session_id}: it has ended already, or was never "
                    "started; give the id that `replay --to` has printed",
                    ErrorCode.UNKNOWN_REPLAY,
                )
            emit(StoppedReplay("replay", replay_session_id=args.replay_session_id), args)
        else:
            client.stop_all_replays(args.recording)
            emit(StoppedReplay("all replays", recording_id=args.recording), args)
