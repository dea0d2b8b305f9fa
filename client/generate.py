"""Generate the blocking client and entities from those for asyncio.

    python -m aerotape.client.generate

Both have the same methods: the modules in `asynchronous/` are the source, those in `blocking/` are
generated from them, by removing `async` and `await` and by renaming. What differs otherwise is in
`AsyncRequests` and `BlockingRequests`, which perform requests. Needs ruff, which sorts the imports.

The places to change are found in the syntax tree and in the tokens, so comments and layout stay.
Of texts only docstrings are changed: their examples as code, in their prose only names.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from doctest import DocTestParser
from io import StringIO
from itertools import pairwise
from pathlib import Path
from tokenize import NAME, STRING, generate_tokens
from typing import Final, NamedTuple

_ROOMS: Final = (Path(__file__).parent, Path(__file__).parents[1] / "entity")
SOURCES: Final = [
    path
    for room in _ROOMS
    for path in sorted((room / "asynchronous").glob("*.py"))
    if path.name != "__init__.py"
]

_NAMES: Final = {
    "AsyncRequests": "BlockingRequests",
    "StopAsyncIteration": "StopIteration",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "anext": "next",
    "asyncio": "threading",  # of which only `Lock` is used
}
_ASYNC_CLASS: Final = re.compile(r"\bAsync(?=[A-Z])")
# A resource that is opened, and a stream that is polled, are not wrapped.
_WRAPPERS: Final = {"AsyncMessages", "Opening"}
_MODULES: Final = (
    ("client.event_loop", "client.blocking_requests"),
    (".asynchronous.", ".blocking."),
)
_PROSE: Final = (("the asyncio client", "the blocking client"),)


class _Edit(NamedTuple):
    """A replacement of a part of a text."""

    begin: int
    end: int
    text: str = ""


class _Places:
    """Offsets in a text, of lines and columns."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)
        self._begins = [0]
        for line in self._lines:
            self._begins.append(self._begins[-1] + len(line))

    def of_token(self, place: tuple[int, int]) -> int:
        """Return the offset of the begin or the end of a token."""
        line, column = place
        return self._begins[line - 1] + column

    def range_of(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return begin and end of a node, whose columns are bytes in UTF-8."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self._of_bytes(node.lineno, node.col_offset),
            self._of_bytes(node.end_lineno, node.end_col_offset),
        )

    def _of_bytes(self, line: int, count: int) -> int:
        before = self._lines[line - 1].encode()[:count].decode()
        return self._begins[line - 1] + len(before)


def blocking_code(text: str) -> str:
    """Return the blocking form of the text of an asyncio module, with its layout."""
    tree, places = ast.parse(text), _Places(text)
    edits, docstrings = [], set()
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                edits.append(_Edit(*places.range_of(node), _imports(node)))
            case ast.Subscript(value=ast.Name(id=name)) if name in _WRAPPERS:
                (begin, end), (inner, inner_end) = map(places.range_of, (node, node.slice))
                edits += _Edit(begin, inner), _Edit(inner_end, end)
            case ast.Subscript(value=ast.Name(id="AsyncGenerator")):
                end = places.range_of(node.slice)[1]
                edits.append(_Edit(end, end, ", None"))
            case ast.Expr(value=ast.Constant(value=str())):
                docstrings.add(places.range_of(node)[0])
    replaced = list(edits)
    for edit in _token_edits(text, places, docstrings):
        if not any(each.begin <= edit.begin < each.end for each in replaced):
            edits.append(edit)
    for edit in sorted(edits, reverse=True):
        text = text[: edit.begin] + edit.text + text[edit.end :]
    return text


def _token_edits(text: str, places: _Places, docstrings: set[int]) -> Iterator[_Edit]:
    for token, following in pairwise(generate_tokens(StringIO(text).readline)):
        begin, end = places.of_token(token.start), places.of_token(token.end)
        if token.type == NAME and token.string in ("async", "await"):
            yield _Edit(begin, places.of_token(following.start))
        elif token.type == NAME and (name := _name(token.string)) != token.string:
            yield _Edit(begin, end, name)
        elif token.type == STRING and begin in docstrings:
            yield _Edit(begin, end, _docstring(token.string))


def _name(name: str) -> str:
    return _NAMES.get(name) or _ASYNC_CLASS.sub("", name)


def _imports(node: ast.Import | ast.ImportFrom) -> str:
    """Return an import of the blocking names; what wraps only asyncio resources is left out."""
    names = [
        ast.alias(_name(each.name), each.asname)
        for each in node.names
        if each.name not in _WRAPPERS
    ]
    if not names:
        return ""
    if isinstance(node, ast.Import):
        return ast.unparse(ast.Import(names))
    module = node.module or ""
    for own, blocking in _MODULES:
        module = module.replace(own, blocking)
    return ast.unparse(ast.ImportFrom(module, names, node.level))


def _docstring(text: str) -> str:
    """Return a docstring for the blocking form: its examples are code, the rest is prose."""
    lines = text.splitlines(keepends=True)
    examples: dict[int, str] = {}
    for example in DocTestParser().get_examples(text):
        code = blocking_code(example.source).splitlines(keepends=True)
        for number, line in enumerate(code, example.lineno):
            examples[number] = lines[number][: example.indent + 4] + line
    return "".join(examples.get(number) or _prose(line) for number, line in enumerate(lines))


def _prose(text: str) -> str:
    for own, blocking in _PROSE:
        text = text.replace(own, blocking)
    return _ASYNC_CLASS.sub("", text)


def target(path: Path) -> Path:
    """Return the blocking module of an asyncio module."""
    return path.parents[1] / "blocking" / path.name


def blocking_source(path: Path) -> str:
    """Return the text of the blocking module of an asyncio module."""
    command = "python -m aerotape.client.generate"
    text = (
        f"# Generated from asynchronous/{path.name}: do not edit.\n# Regenerate: {command}\n"
        f"{blocking_code(path.read_text())}"
    )
    for arguments in (["check", "--fix", "--select", "I"], ["format"]):
        command_line = [sys.executable, "-m", "ruff", *arguments, "--quiet"]
        command_line += ["--stdin-filename", str(target(path)), "-"]
        text = subprocess.run(
            command_line, input=text, capture_output=True, text=True, check=True
        ).stdout
    return text


def main() -> None:
    """Write the blocking modules."""
    for path in SOURCES:
        target(path).write_text(blocking_source(path))


if __name__ == "__main__":
    main()
