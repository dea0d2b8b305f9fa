"""The site of the documentation."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.jvm.java import ROOT

import aerotape
from aerotape.tools._cli.help.overview import GROUPS

pytest.importorskip("mkdocs")
LOADED = (
    re.compile(r'<(?:script|img|iframe)[^>]* src="((?:https?:)?//[^"]*)"'),
    re.compile(r'<link[^>]* href="((?:https?:)?//[^"]*)"[^>]* rel="(?:stylesheet|preconnect)"'),
    re.compile(r'<link[^>]* rel="(?:stylesheet|preconnect)"[^>]* href="((?:https?:)?//[^"]*)"'),
)
LOADED_BY_STYLES = re.compile(r'@import[^;]*|url\("?(?:https?:)?//[^)]*')
DOCUMENTED = re.compile(r'<h[2-5] id="[\w.]*?(\w+)" class="doc')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does: strictly, so links and anchors lead somewhere."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(out)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def test_pages_load_nothing_from_outside(site: Path) -> None:
    """No scripts, styles, fonts or images of other servers."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    found = {
        page.name: address
        for page in pages
        for pattern in LOADED
        for address in pattern.findall(page.read_text())
    }
    assert found == {}
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert LOADED_BY_STYLES.findall(styles) == []


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    pages = (site / "api").glob("*.html")
    documented = {name for page in pages for name in DOCUMENTED.findall(page.read_text())}
    public = {name for name in aerotape.__all__ if not name.startswith("_")}
    assert public - documented == set()
    assert {"launch", "start_recording", "stop_recording"} <= documented


def test_commands_and_properties_are_those_of_the_code(site: Path) -> None:
    assert "usage: aerotape publish" in (site / "commands/publish.html").read_text()
    assert "usage: aerotape tool DIR describe" in (site / "commands/tool.html").read_text()
    assert {page.stem for page in (site / "commands").glob("*.html")} == {
        name for names in GROUPS.values() for name in names
    }
    assert "aeron.archive.segment.file.length" in (site / "configuration.html").read_text()


def test_the_front_page_has_lists_and_leads_to_the_first_minute(site: Path) -> None:
    """An item each; Python-Markdown wants an empty line before a list."""
    front = (site / "index.html").read_text()
    article = front[front.index("<article") : front.index("</article>")]
    assert article.count("<li>") > 20
    assert 'href="getting-started.html"' in article
    started = (site / "getting-started.html").read_text()
    text = re.sub(r"<[^>]+>", "", started)
    assert "make wheel" in text
    assert "aerotape publish aeron:ipc 1001" in text
    assert 'href="notebook.html"' in article
    assert "Archive" in (site / "notebook.html").read_text()


def test_nothing_is_a_quotation(site: Path) -> None:
    """No line of a paragraph, and no example of a docstring, begins with > in Markdown."""
    found = [page.name for page in site.rglob("*.html") if "<blockquote" in page.read_text()]
    assert found == []


def test_examples_of_docstrings_are_code(site: Path) -> None:
    """With what they print, in the order of the docstring."""
    client = (site / "api/client.html").read_text()
    code = [re.sub(r"<[^>]+>", "", each) for each in re.findall(r"<pre>.*?</pre>", client, re.S)]
    [example] = [each for each in code if "client.archive_version, len(" in each]
    lines = html.unescape(example).split("\n")
    assert [line[:9] for line in lines[:3]] == [">>> with ", "...     p", "1... 1"]


def test_the_parameters_of_connect_are_written_out(site: Path) -> None:
    """With defaults and descriptions, also for functions that take those of `connect`."""
    for page in ("client", "asyncio", "live"):
        text = html.unescape(re.sub(r"<[^>]+>", "", (site / f"api/{page}.html").read_text()))
        assert "timeout_ns: int = DEFAULT_TIMEOUT_NS" in text, page
        assert "for the connect and for each request. Default: 10 s." in " ".join(text.split())
        assert "**options: Unpack[ConnectOptions]" not in text


def test_the_notebook_has_its_pictures(site: Path) -> None:
    notebook = (site / "notebook.html").read_text()
    assert '<img alt="Plot" src="data:image/png;base64,' in notebook


def test_helps_fit_their_boxes(site: Path) -> None:
    """Which have 112 columns beside the menu."""
    long = [
        (page.name, line)
        for page in (site / "commands").glob("*.html")
        for block in re.findall(r"<code>.*?</code>", page.read_text(), re.S)
        for line in html.unescape(re.sub(r"<[^>]+>", "", block)).split("\n")
        if len(line) > 112
    ]
    assert long == []


def test_lists_are_lists(site: Path) -> None:
    """No line of a paragraph begins like an item."""
    item = re.compile(r"^[-*] |^\d+\. ", re.MULTILINE)
    found = [
        (page.name, text)
        for page in site.rglob("*.html")
        for text in re.findall(r"<p>(.*?)</p>", page.read_text(), re.DOTALL)
        if item.search(text)
    ]
    assert found == []
