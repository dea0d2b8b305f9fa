"""Parse the XML of a schema, with the files that it includes, into a tree of elements.

A schema may come from a stranger. So document type declarations, and with them all entities, are
refused, includes stay in the folder of the schema, and size and depth are limited.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.parsers import expat

from aerotape.codecs.xml_schema.problems import MistakeError
from aerotape.errors import SchemaError

MAX_BYTES: Final = 8 << 20
"""The maximum size of a schema with all that it includes."""

MAX_DEPTH: Final = 100
"""The maximum depth of elements, of includes and of composites in each other."""

_XINCLUDE: Final = "http://www.w3.org/2001/XInclude"


@dataclass(slots=True)
class Element:
    """An element; names of elements and attributes are those without a prefix."""

    tag: str
    attributes: dict[str, str]
    file: Path
    line: int
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text in this element, without that in its children."""
        return "".join(self.texts)

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"

    @property
    def label(self) -> str:
        """The element as messages name it: its tag, and its name if it has one."""
        name = self.attributes.get("name")
        return self.tag if name is None else f'{self.tag} "{name}"'

    def all(self, *tags: str) -> list[Element]:
        """Return the children with one of these tags."""
        return [child for child in self.children if child.tag in tags]


def parse_document(path: Path, content: bytes, read: Callable[[str], bytes]) -> Element:
    """Parse a file and what it includes; return the root element.

    Args:
        path: the file, for messages and the folder of included files.
        content: its bytes.
        read: returns the bytes of a file, by its path relative to that folder, or raises OSError;
            of one that is too large, more than `MAX_BYTES` are enough.

    Raises:
        SchemaError: it is not well-formed XML, or is refused for safety.
    """
    return _Loader(path.parent, read).load(path.name, content, ())


class _Loader:
    def __init__(self, folder: Path, read: Callable[[str], bytes]) -> None:
        self._folder = folder
        self._read = read
        self._bytes = 0

    def load(self, name: str, content: bytes, outer: tuple[str, ...]) -> Element:
        file = self._folder / name
        self._bytes += len(content)
        if self._bytes > MAX_BYTES:
            raise SchemaError(
                [f"{file}: the schema is larger than {MAX_BYTES >> 20} MiB with what it includes"]
            )
        root = _Parser(file).parse(content)
        self._include(root, name, (*outer, name))
        return root

    def _include(self, root: Element, name: str, files: tuple[str, ...]) -> None:
        pending = [root]
        while pending:
            element = pending.pop()
            for index, child in enumerate(element.children):
                if child.tag != _INCLUDE:
                    pending.append(child)
                    continue
                try:
                    element.children[index] = self._included(child, name, files)
                except MistakeError as mistake:
                    raise SchemaError([f"{child.place}: include: {mistake.text}"]) from None

    def _included(self, include: Element, name: str, files: tuple[str, ...]) -> Element:
        href = include.attributes.get("href", "")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), href))
        if not href or ":" in href or "\\" in href or target.startswith(("/", "..")):
            raise MistakeError(
                f"href {href!r}: expected a file in the folder of the schema, or below"
            )
        for unsupported in ("parse", "xpointer"):
            if include.attributes.get(unsupported, "xml") != "xml":
                raise MistakeError(f"{unsupported} is not supported: include a whole XML file")
        if target in files:
            raise MistakeError(f"{href!r} includes itself")
        if len(files) == MAX_DEPTH:
            raise MistakeError(f"{href!r} is in {MAX_DEPTH} other files")
        try:
            content = self._read(target)
        except OSError as error:
            reason = error.strerror or "no such file"
            raise MistakeError(f"cannot read {href!r}: {reason}") from None
        return self.load(target, content, files)


_INCLUDE: Final = "xi:include"


class _Parser:
    """Parses one file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._open: list[Element] = []
        self._root: Element | None = None

    def parse(self, content: bytes) -> Element:
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            raise self._refused(f"not well-formed XML: {expat.ErrorString(error.code)}") from None
        except (LookupError, ValueError) as error:  # of the encoding that the file names
            raise self._refused(f"not well-formed XML: {error}") from None
        assert self._root is not None
        return self._root

    def _refused(self, text: str) -> SchemaError:
        return SchemaError([f"{self._file}:{self._parser.CurrentLineNumber}: {text}"])

    def _doctype(self, *_: object) -> None:
        raise self._refused("a document type declaration (DOCTYPE) is not accepted: remove it")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) == MAX_DEPTH:
            raise self._refused(f"elements are nested more than {MAX_DEPTH} deep")
        space, _, tag = name.rpartition(" ")
        # Attributes of other namespaces do not concern SBE.
        own = {key: value for key, value in attributes.items() if " " not in key}
        if space == _XINCLUDE and tag == "include":
            tag = _INCLUDE
        element = Element(tag, own, self._file, self._parser.CurrentLineNumber)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, name: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        self._open[-1].texts.append(text)
