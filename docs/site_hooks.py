"""Hooks of mkdocs: what pages of the site have that those in the repository do not.

Links to files beside docs/, which are not on the site, become text. The comment `commands` is
replaced by the help of every command, `properties` by the table of the archive's properties.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from aerotape.tools import entity, journal, ledger, tool
from aerotape.tools._cli.help.overview import GROUPS
from aerotape.tools._cli.main import main

_OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+(?!docs/)[^)]*\)")
_SUBCOMMANDS = {
    "tool": (("tool", "DIR"), tool.MODULES),
    "ledger": (("ledger",), ledger.MODULES),
    "entity": (("entity",), entity.MODULES),
    "journal": (("journal",), journal.MODULES),
}


def on_page_markdown(markdown: str, **_others: Any) -> str:
    """Return the Markdown of a page for the site."""
    markdown = _OUTSIDE.sub(r"\1", markdown)
    for name, made in (("commands", _commands), ("properties", _properties)):
        comment = f"<!-- {name} -->"
        if comment in markdown:
            markdown = markdown.replace(comment, "\n".join(made()))
    return markdown


def _printed(*arguments: str) -> str:
    """Return what a command prints."""
    out = io.StringIO()
    os.environ["COLUMNS"] = "100"
    with contextlib.redirect_stdout(out):
        code = main(arguments)
    assert code == 0, arguments
    return out.getvalue()


def _commands() -> Iterator[str]:
    for group, names in GROUPS.items():
        yield f"\n## {group[0].upper()}{group[1:]}"
        for name in names:
            before, modules = _SUBCOMMANDS.get(name, ((), {}))
            for command in [(name,), *((*before, each) for each in modules)]:
                shown = " ".join(word for word in command if word != "DIR")
                yield f"\n### aerotape {shown}\n\n```text\n{_printed(*command, '--help')}```"


def _properties() -> Iterator[str]:
    yield "| property | default |\n| --- | --- |"
    for row in json.loads(_printed("archive", "--print-config", "--json")):
        yield f"| `{row['name']}` | {row['default']} |"
