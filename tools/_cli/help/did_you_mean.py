"""The similar name that an error proposes for an unknown command, option or choice."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Iterator

_CHOICE = re.compile(r"invalid choice: '(.+?)' \(choose from (.+)\)")


def hint(name: str, known: Iterable[str]) -> str:
    """Return ``: did you mean …?`` with the most similar known name, or an empty text."""
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f": did you mean {found[0]}?" if found else ""


def hint_for(message: str, parser: argparse.ArgumentParser) -> str:
    """Return the hint for an error of argparse about an option or a choice."""
    unknown = message.removeprefix("unrecognized arguments: ")
    if unknown != message:
        names = (word.partition("=")[0] for word in unknown.split() if word.startswith("--"))
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
