"""The similar name that an error proposes for an unknown command, option or choice."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Iterator

from aerotape.tools._cli.selecting import command_with

_UNRECOGNIZED = "unrecognized arguments: "
_CHOICE = re.compile(r"invalid choice: '(.+?)' \(choose from (.+)\)")


def hint(name: str, known: Iterable[str]) -> str:
    """Return ``: did you mean …?`` with the most similar known name, or an empty text."""
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f": did you mean {found[0]}?" if found else ""


def without_values(message: str) -> str:
    """Return an error of argparse about unknown options without their values: one may be secret."""
    unknown = message.removeprefix(_UNRECOGNIZED)
    options = [word.partition("=")[0] for word in unknown.split() if word.startswith("-")]
    return f"{_UNRECOGNIZED}{' '.join(options)}" if unknown != message and options else message


def hint_for(message: str, parser: argparse.ArgumentParser) -> str:
    """Return the hint for an error of argparse about an option or a choice."""
    unknown = message.removeprefix(_UNRECOGNIZED)
    if unknown != message:
        names = [word.partition("=")[0] for word in unknown.split() if word.startswith("--")]
        for name in names:
            if (command := command_with(name)) is not None:
                return f": it is an option of `aerotape {command}`" if command else ""
        known = list(_options(parser))
        return next((text for name in names if (text := hint(name, known))), "")
    if found := _CHOICE.search(message):
        return hint(found[1], re.findall(r"[\w.-]+", found[2]))
    return ""


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the long options of a parser and of the parsers of its commands."""
    for action in parser._actions:
        yield from (name for name in action.option_strings if name.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _options(each)
