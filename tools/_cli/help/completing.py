"""Completion of the command line, as shells request it of argcomplete's scripts."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aerotape.errors import AerotapeError
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.help.overview import help_line

if TYPE_CHECKING:
    from aerotape.clients import ArchiveClient

_TIMEOUT_NS: Final = 1_000_000_000  # a shell waits for it
_RECORDING_IDS: Final = frozenset({"recording_id", "recording", "id", "extend"})
_TOPICS: Final = frozenset({"topic"})


def complete(
    files: Mapping[str, Path],
    parser_for: Callable[[str, Sequence[str]], argparse.ArgumentParser],
) -> None:
    """Print the completions of the line in the environment, and end the process.

    Args:
        files: the file of each command.
        parser_for: returns the parser of a command, given the arguments after its name.
    """
    import argcomplete
    from argcomplete.lexers import split_line

    line, point = os.environ["COMP_LINE"], int(os.environ["COMP_POINT"])
    words = split_line(line, point)[3]
    at = next((at for at, word in enumerate(words) if at and not word.startswith("-")), None)
    if at is None or words[at] not in files:
        argcomplete.autocomplete(_top_parser(files))
        return
    name, arguments = words[at], words[at + 1 :]
    parser = parser_for(name, arguments)
    _add_completers(parser, arguments)
    # The words from the command's name on are those of its parser.
    os.environ["_ARGCOMPLETE"] = str(at + 1)
    argcomplete.autocomplete(parser)


def _top_parser(files: Mapping[str, Path]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="aerotape")
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("-v", "--verbose", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers()
    for name, file in files.items():
        commands.add_parser(name, help=help_line(file))
    return parser


def _add_completers(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Let the arguments for recording ids and topics complete to those that exist."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                _add_completers(each, arguments)
        elif action.dest in _RECORDING_IDS:
            action.completer = _completer(_recording_ids, arguments)  # type: ignore[attr-defined]
        elif action.dest in _TOPICS:
            action.completer = _completer(_topics, arguments)  # type: ignore[attr-defined]


def _completer(
    find: Callable[[argparse.Namespace, Sequence[str]], Iterator[str]], arguments: Sequence[str]
) -> Callable[..., list[str]]:
    def completer(parsed_args: argparse.Namespace, **_others: Any) -> list[str]:
        try:
            return list(find(parsed_args, arguments))
        except (AerotapeError, OSError, SystemExit):  # no archive, or an invalid option
            return []

    return completer


def _recording_ids(args: argparse.Namespace, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the recording ids of the directory that is given, else of the running archive."""
    directory = getattr(args, "archive_dir", None) or getattr(args, "directory", None)
    if directory is not None:
        from aerotape.replay.offline.directory import open_directory

        for recording in open_directory(directory).recordings():
            yield str(recording.recording_id)
        return
    with _connected(arguments) as client:
        for descriptor in client.list_recordings():
            yield str(descriptor.recording_id)


def _topics(_args: argparse.Namespace, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the topics of entities that the running archive has."""
    from aerotape.entity.topic import topics_of

    with _connected(arguments) as client:
        yield from topics_of(list(client.list_recordings()))


def _connected(arguments: Sequence[str]) -> ArchiveClient:
    """Connect with the options that the line has so far."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_connection_options(parser)
    args, _ = parser.parse_known_args(arguments)
    args.timeout, args.wait = _TIMEOUT_NS, 0
    return connect(args)
