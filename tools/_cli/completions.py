"""Completion of a command line that a shell has begun, by argcomplete."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from aerotape.errors import AerotapeError
from aerotape.tools._cli.connection import connect

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor

_TIMEOUT_NS: Final = 1_000_000_000


def complete() -> None:
    """Print the completions of the line in the environment, and end the process."""
    try:
        import argcomplete
    except ImportError:  # the script was made by another installation
        sys.exit(1)
    line, point = os.environ["COMP_LINE"], int(os.environ["COMP_POINT"])
    words = argcomplete.lexers.split_line(line, point)[3][1:]
    argcomplete.autocomplete(_parser(words), always_complete_options="long")


def _parser(words: list[str]) -> argparse.ArgumentParser:
    """Return a parser of the command among these words, or of the names of all commands."""
    from aerotape.tools._cli.main import add_arguments, command_files, load

    parser = argparse.ArgumentParser(prog="aerotape")
    commands = parser.add_subparsers()
    files = command_files()
    given = next((word for word in words if word in files), None)
    for name in files if given is None else [given]:
        command = commands.add_parser(name)
        if given is not None:
            add_arguments(command, load(files[name]), words)
            _add_completers(command)
    return parser


def _add_completers(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                _add_completers(each)
        elif action.dest in _COMPLETERS:
            action.completer = _COMPLETERS[action.dest]  # type: ignore[attr-defined]


def _recording_ids(parsed_args: argparse.Namespace, **_: Any) -> dict[str, str]:
    """Return recording ids, and what a shell may show beside them."""
    return {
        str(each.recording_id): f"{each.stripped_channel} stream {each.stream_id}"
        for each in _recordings(parsed_args)
    }


def _topics(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    from aerotape.archive.entity.partition import partition_in

    found = map(partition_in, _recordings(parsed_args))
    return sorted({partition.topic for partition in found if partition is not None})


def _recordings(args: argparse.Namespace) -> Iterator[RecordingDescriptor]:
    """Yield the recordings of the directory or the archive; none if there is an error."""
    try:
        if getattr(args, "directory", None):
            from aerotape.replay.offline.directory import open_directory

            for recording in open_directory(args.directory).recordings():
                yield recording.descriptor
        else:
            args.timeout = _TIMEOUT_NS
            with connect(args) as client:
                yield from client.list_recordings()
    except (AerotapeError, AttributeError, OSError):
        return  # there is nothing to complete from, and no place for an error


_COMPLETERS: Final[dict[str, Callable[..., Any]]] = {
    "recording_id": _recording_ids,
    "recording": _recording_ids,
    "topic": _topics,
}
