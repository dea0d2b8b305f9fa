"""Parse the XML of a schema, with the files that it includes, into a tree of elements.

A schema may come from a stranger. So a document type is not loaded, and declarations in it, among
them all entities, are refused. Includes stay in the folder of the schema. A file is parsed once,
and size and depth are limited.
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

EXPONENT: Final = "mbx:exponent"
"""The attribute of Binance's namespace that names the field with the exponent of a mantissa. Others
have an attribute of this name whose number is that of decimal places."""

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


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A file with what it includes: bytes, and files in each other."""

    root: Element
    size: int
    depth: int


class _Loader:
    def __init__(self, folder: Path, read: Callable[[str], bytes]) -> None:
        self._folder = folder
        self._read = read
        self._bytes = 0
        self._loaded: dict[str, _Loaded] = {}

    def load(self, name: str, content: bytes, outer: tuple[str, ...]) -> Element:
        before = self._bytes
        self._add(name, len(content))
        root = _Parser(self._folder / name).parse(content)
        depth = 1 + self._include(root, name, (*outer, name))
        self._loaded[name] = _Loaded(root, self._bytes - before, depth)
        return root

    def _add(self, name: str, size: int) -> None:
        self._bytes += size
        if self._bytes > MAX_BYTES:
            raise SchemaError(
                [
                    f"{self._folder / name}: the schema is larger than {MAX_BYTES >> 20} MiB with "
                    "what it includes"
                ]
            )

    def _include(self, root: Element, name: str, files: tuple[str, ...]) -> int:
        """Replace the includes of a file; return how many files are in each other below it."""
        depth = 0
        pending = [root]
        while pending:
            element = pending.pop()
            for index, child in enumerate(element.children):
                if child.tag != _INCLUDE:
                    pending.append(child)
                    continue
                try:
                    found = self._included(child, name, files)
                except MistakeError as mistake:
                    raise SchemaError([f"{child.place}: include: {mistake.text}"]) from None
                element.children[index] = found.root
                depth = max(depth, found.depth)
        return depth

    def _included(self, include: Element, name: str, files: tuple[str, ...]) -> _Loaded:
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
        known = self._loaded.get(target)
        if len(files) + (known.depth if known else 1) > MAX_DEPTH:
            raise MistakeError(f"{href!r} is in {MAX_DEPTH} other files")
        if known is not None:
            self._add(target, known.size)
            return known
        try:
            content = self._read(target)
        except OSError as error:
            reason = error.strerror or "no such file"
            raise MistakeError(f"cannot read {href!r}: {reason}") from None
        self.load(target, content, files)
        return self._loaded[target]


_INCLUDE: Final = "xi:include"


_DOCTYPE: Final = "<!DOCTYPE"
_ENCODINGS: Final = ("utf-8", "utf-16-le", "utf-16-be")
"""Encodings of the characters of ASCII that occur in files."""


class _DoctypeError(Exception):
    """A file has a document type without declarations, which ends at a byte of it."""

    def __init__(self, end: int) -> None:
        super().__init__(end)
        self.end = end


class _Parser:
    """Parses one file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines_before = 0

    def parse(self, content: bytes) -> Element:
        try:
            return self._parse(content, self._doctype)
        except _DoctypeError as doctype:
            # expat passes over unknown entities in a file that has an external document type.
            return self._parse(self._without_doctype(content, doctype.end), self._second_doctype)

    def _parse(self, content: bytes, doctype: Callable[..., None]) -> Element:
        self._open: list[Element] = []
        self._root: Element | None = None
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            raise self._refused(f"not well-formed XML: {expat.ErrorString(error.code)}") from None
        except (LookupError, ValueError) as error:  # of the encoding that the file names
            raise self._refused(f"not well-formed XML: {error}") from None
        assert self._root is not None
        return self._root

    @property
    def _line(self) -> int:
        return self._lines_before + self._parser.CurrentLineNumber

    def _refused(self, text: str) -> SchemaError:
        return SchemaError([f"{self._file}:{self._line}: {text}"])

    def _doctype(self, name: str, system: str | None, public: str | None, has_subset: int) -> None:
        if has_subset:
            raise self._refused(
                "a document type declaration (DOCTYPE) with declarations in brackets, such as "
                "entities, is not accepted: remove them"
            )
        raise _DoctypeError(self._parser.CurrentByteIndex)

    def _second_doctype(self, *_: object) -> None:
        raise self._refused("not well-formed XML: a second document type declaration (DOCTYPE)")

    def _without_doctype(self, content: bytes, end: int) -> bytes:
        """Return a file without its document type, whose last character is at `end`."""
        for encoding in _ENCODINGS:
            begin = content.rfind(_DOCTYPE.encode(encoding), 0, end)
            if begin >= 0:
                removed = content[begin : end + len(">".encode(encoding))]
                self._lines_before = removed.decode(encoding, "replace").count("\n")
                return content[:begin] + content[begin + len(removed) :]
        raise self._refused("a document type declaration (DOCTYPE) is not accepted: remove it")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) == MAX_DEPTH:
            raise self._refused(f"elements are nested more than {MAX_DEPTH} deep")
        space, _, tag = name.rpartition(" ")
        # Attributes of other namespaces do not concern SBE, but for one.
        own = {key: value for key, value in attributes.items() if " " not in key}
        for key, value in attributes.items():
            namespace, _, of_other = key.rpartition(" ")
            if of_other == "exponent" and "binance" in namespace:
                own[EXPONENT] = value
        if space == _XINCLUDE and tag == "include":
            tag = _INCLUDE
        element = Element(tag, own, self._file, self._line)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, name: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        self._open[-1].texts.append(text)
