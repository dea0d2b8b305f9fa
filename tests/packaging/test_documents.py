"""Commands in documents."""

from __future__ import annotations

import html
import re
import subprocess
from pathlib import Path

import pytest
from support.jvm.java import ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FROM_AN_INDEX = re.compile(r"pip install[^`\n]*?[ '\"\\]aerotape(?![-\w]|/)")
SPECIAL = re.compile(r"[?|&*<>]")


def test_nothing_is_installed_from_an_index() -> None:
    """aerotape is not in a package index: documents name the checkout or a wheel."""
    listed = subprocess.run(
        ["git", "ls-files", "-cz", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    names = [Path(name) for name in listed.stdout.decode().split("\0") if name]
    wrong = [
        f"{name}: {found.group()}"
        for name in names
        if name.suffix in (".py", ".md", ".ipynb", ".toml") and (ROOT / name).is_file()
        for found in FROM_AN_INDEX.finditer((ROOT / name).read_text())
        if "tests" not in name.parts
    ]
    assert wrong == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_channels_in_commands_are_quoted(document: Path) -> None:
    """Shells interpret unquoted ? and |."""
    unquoted = [
        line
        for line in document.read_text().splitlines()
        if re.match(r"\s*(aerotape |'?-D|export )", line)
        for bare in [re.sub(r"'[^']*'|\"[^\"]*\"|#.*", "", line)]
        if "aeron:" in bare and SPECIAL.search(bare)
    ]
    assert unquoted == []


def anchors(document: Path) -> set[str]:
    """Return the anchors of a document: its own, and those that forges make of headings."""
    content = document.read_text()
    made = {re.sub(r"[^\w\- ]", "", text.lower()) for text in HEADING.findall(content)}
    return {text.replace(" ", "-") for text in made} | set(re.findall(r'<a id="(.*?)">', content))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    """Within the repository: to files that are there, and to headings that they have."""
    broken = []
    for name, anchor in LINK.findall(document.read_text()):
        if name.startswith(("http:", "https:")):
            continue
        target = (document.parent / name).resolve() if name else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{name}#{anchor}")
    assert broken == []


def test_every_page_is_listed() -> None:
    """In docs/README.md, where a reader looks for it."""
    listed = {name for name, _ in LINK.findall((ROOT / "docs/README.md").read_text())}
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"} <= listed
    decisions = (ROOT / "docs/decisions/README.md").read_text()
    made = {path.name for path in (ROOT / "docs/decisions").glob("*.md")} - {"README.md"}
    assert made == {name for name, _ in LINK.findall(decisions)}


@pytest.mark.parametrize(
    "source", sorted((ROOT / "docs/pictures").glob("*.dot")), ids=lambda path: path.name
)
def test_pictures_are_made_of_their_texts(source: Path) -> None:
    """Each line of each label is in the picture: docs/pictures/make.py makes it."""
    labels = re.findall(r'label="([^"]*)"', source.read_text())
    picture = html.unescape(source.with_suffix(".svg").read_text())
    assert [line for label in labels for line in label.split(r"\n") if line not in picture] == []
