"""Hooks of mkdocs: pages of the site that are made from the code and from files beside docs/.

README.md becomes "Getting started", and the notebook, CONTRIBUTING.md and CHANGELOG.md are pages,
too; links to other files outside docs/ become text. Each command has a page with its help. The
comment `properties` is replaced by the table of the archive's properties.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from aerotape.tools import entity, journal, ledger, tool
from aerotape.tools._cli.help.overview import GROUPS
from aerotape.tools._cli.main import main

_ROOT: Final = Path(__file__).resolve().parents[1]
_PAGES: Final = {  # of files beside docs/
    "README.md": "getting-started.md",
    "examples/recordings.ipynb": "notebook.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\(((?!https?:|data:|#|mailto:)[^)#]+)(#[^)]*)?\)")
_SUBCOMMANDS: Final[Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]]] = {
    "tool": (("tool", "DIR"), tool.MODULES),
    "ledger": (("ledger",), ledger.MODULES),
    "entity": (("entity",), entity.MODULES),
    "journal": (("journal",), journal.MODULES),
}
# The width of a box of code on the site, in characters.
_COLUMNS: Final = "100"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the commands below that of all commands."""
    for section in config.nav or ():
        for entry in section.get("Reference", ()):
            if "Commands" in entry:
                pages = [{name: f"commands/{name}.md"} for name in _all_commands()]
                entry["Commands"] = ["commands.md", *pages]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    made = {page: _page_of(_ROOT / name) for name, page in _PAGES.items()}
    made |= {f"commands/{name}.md": "\n".join(_command(name)) for name in _all_commands()}
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_others: Any) -> str:
    """Return the Markdown of a page for the site."""
    comment = "<!-- properties -->"
    if comment in markdown:
        markdown = markdown.replace(comment, "\n".join(_properties()))
    # Pages that are made are at the top of the site, as docs/ is.
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))
    return _LINK.sub(lambda link: _on_site(link, folder), markdown)


def _on_site(link: re.Match[str], folder: str) -> str:
    """Return a link of a page in a folder of the repository: to the site, or its text."""
    image, text, path, anchor = link.groups()
    target = posixpath.normpath(posixpath.join(folder, path))
    if target in _PAGES:
        target = f"docs/{_PAGES[target]}"
    if not target.startswith("docs/"):
        return text
    return f"{image}[{text}]({posixpath.relpath(target, folder)}{anchor or ''})"


def _page_of(file: Path) -> str:
    """Return a file beside docs/ as Markdown, with links as if it was in docs/."""
    if file.suffix == ".ipynb":
        text = "\n\n".join(_cells(json.loads(file.read_text())["cells"]))
    else:
        text = file.read_text()
        if file.name == "README.md":
            text = text[text.index("## Install") : text.index("## State and")]
            text = f"# Getting started\n\n{text}"
    folder = posixpath.relpath(file.parent, _ROOT)

    def moved(link: re.Match[str]) -> str:
        image, text, path, anchor = link.groups()
        place = posixpath.relpath(posixpath.normpath(posixpath.join(folder, path)), "docs")
        return f"{image}[{text}]({place}{anchor or ''})"

    return _LINK.sub(moved, text)


def _cells(cells: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the cells of a notebook and their outputs."""
    for cell in cells:
        source = "".join(cell["source"])
        yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                yield f"![Plot](data:image/png;base64,{''.join(data['image/png']).strip()})"
            elif text := "".join(data.get("text/plain", output.get("text", ()))):
                yield f"```text\n{text.rstrip()}\n```"


def _printed(*arguments: str) -> str:
    """Return what a command prints."""
    out = io.StringIO()
    os.environ["COLUMNS"] = _COLUMNS
    with contextlib.redirect_stdout(out):
        code = main(arguments)
    assert code == 0, arguments
    return out.getvalue()


def _all_commands() -> list[str]:
    return [name for names in GROUPS.values() for name in names]


def _command(name: str) -> Iterator[str]:
    """Yield the page of a command: its help, and those of its own commands."""
    yield f"# aerotape {name}\n\n```text\n{_printed(name, '--help')}```"
    before, modules = _SUBCOMMANDS.get(name, ((), {}))
    for each in modules:
        shown = " ".join((*before, each)).replace(" DIR", "")
        yield f"\n## aerotape {shown}\n\n```text\n{_printed(*before, each, '--help')}```"
    if name == "help":
        yield f"\n## The connection to an archive\n\n```text\n{_printed('help', 'connection')}```"


def _properties() -> Iterator[str]:
    yield "| property | default |\n| --- | --- |"
    for row in json.loads(_printed("archive", "--print-config", "--json")):
        yield f"| `{row['name']}` | {row['default']} |"
