"""Commands in documents."""

from __future__ import annotations

import ast
import html
import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from support.jvm.java import ROOT

from aerotape import errors
from aerotape.protocol import ErrorCode
from aerotape.tools._cli.main import _parser_for

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FROM_AN_INDEX = re.compile(r"pip install[^`\n]*?[ '\"\\]aerotape(?![-\w]|/)")
# Indented by four spaces, or between fences.
EXAMPLE = re.compile(r"^    .*\n|^```.*\n(?:(?!```).*\n)*", re.MULTILINE)
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


def commands(text: str) -> Iterator[list[str]]:
    """Yield the arguments of each `aerotape` in examples, up to a pipe or redirection."""
    text = re.sub(r"\\\n(> )?", " ", "".join(EXAMPLE.findall(text)))
    for command in re.findall(r"^[ $]*aerotape (.*)$", text, re.MULTILINE):
        if "[--" in command:  # a synopsis
            continue
        words = shlex.shlex(command, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        yield list(takewhile(lambda word: not set(word) <= set("|&;<>()"), words))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_are_understood(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the parsers of the commands; those of the cookbook are also run."""
    for arguments in commands(document.read_text()):
        given = ["aeron:ipc" if word == "$CHANNEL" else word for word in arguments if word != "…"]
        if not given or given[0].endswith(":"):  # aerotape alone; an error
            continue
        try:
            _parser_for(given[0], given[1:]).parse_args(given[1:])
        except SystemExit:
            pytest.fail(f"{given}: {capsys.readouterr().err}")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_examples_are_python(document: Path) -> None:
    """Those of `tests/examples`, and that of docs/entities.md, are also run."""
    for example in re.findall(r"^```python\n(.*?)^```", document.read_text(), re.M | re.S):
        compile(example, document.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


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
    titles = {
        path.name: path.read_text().partition("\n")[0].removeprefix("# ")
        for path in (ROOT / "docs/decisions").glob("*.md")
        if path.name != "README.md"
    }
    links = re.findall(r"^- \[(.*)\]\((.*)\)$", decisions, re.MULTILINE)
    assert {name: text for text, name in links} == titles


@pytest.mark.parametrize(
    "source", sorted((ROOT / "docs/pictures").glob("*.dot")), ids=lambda path: path.name
)
def test_pictures_are_made_of_their_texts(source: Path) -> None:
    """Each line of each label is in the picture: docs/pictures/make.py makes it."""
    labels = re.findall(r'label="([^"]*)"', source.read_text())
    picture = html.unescape(source.with_suffix(".svg").read_text())
    assert [line for label in labels for line in label.split(r"\n") if line not in picture] == []


@pytest.mark.parametrize(
    "source", sorted((ROOT / "docs/pictures").glob("*.term")), ids=lambda path: path.name
)
def test_pictures_of_terminals_have_their_lines(source: Path) -> None:
    """As docs/pictures/make.py makes them."""
    picture = html.unescape(source.with_suffix(".svg").read_text())
    texts = re.findall(r"<text [^>]*>(.*?)</text>", picture)
    shown = [text.replace("\u00a0", " ") for text in texts]
    assert shown == [line for line in source.read_text().splitlines() if line]


def test_every_error_is_explained() -> None:
    """Each class and code that there is, and none that there is not."""
    page = (ROOT / "docs/errors.md").read_text()
    named = set(re.findall(r"`(?:aerotape\.)?(\w+Error)`", page))
    classes: dict[str, Any] = {
        name: each
        for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, errors.AerotapeError)
    }
    assert named == classes.keys()
    codes = {(code.value, code.name) for code in ErrorCode}
    for each in classes.values():
        if getattr(each, "code", 0) >= 1_000:
            codes |= {
                (each.code, name) for name in re.findall(r"\(([A-Z_]+)\)", each.__doc__ or "")
            }
    assert codes == {
        (int(number), name) for number, name in re.findall(r"^\| (\d+) `(\w+)`", page, re.MULTILINE)
    }
    by_number = re.findall(r"^\| (\d{4}) `\w+` \| `(\w+)`", page, re.MULTILINE)
    assert {(classes[name].code, name) for _, name in by_number} == {
        (int(number), name) for number, name in by_number
    }
