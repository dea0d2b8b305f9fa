"""An extension of griffe, which reads the code for the pages of the Python API.

Examples in docstrings become blocks of code: in Markdown, `>>>` begins a quotation. Functions with
`takes_connect_options` get the parameters and descriptions of `connect`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from griffe import Docstring, Extension, Function, GriffeLoader, Module, Object, ParameterKind

_DECORATOR: Final = "takes_connect_options"
_EXAMPLE: Final = re.compile(r"^( *)>>> .*\n(?:\1\S.*\n?|\1 +\S.*\n?)*", re.MULTILINE)
_OPTIONS: Final = re.compile(r"^    options: .*\n(?:     +.*\n)*", re.MULTILINE)
_DESCRIBED: Final = re.compile(r"^Args:\n((?:    .*\n)+)", re.MULTILINE)


class Docstrings(Extension):
    """Changes docstrings and signatures for the site."""

    def on_object(self, *, obj: Object, **_others: Any) -> None:
        """Make code of the examples of a docstring."""
        if obj.docstring is not None:
            obj.docstring.value = with_blocks(obj.docstring.value)

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **_others: Any) -> None:
        """Write the parameters of `connect` out."""
        if pkg.path == "aerotape":
            taken = pkg["client.connection.prepare"]
            connect = pkg["clients.connect"]
            for module in ("clients", "client.live.persistent_subscription"):
                for function in pkg[module].functions.values():
                    if any(_DECORATOR in str(each.value) for each in function.decorators):
                        _write_out(function, taken, connect.docstring)


def with_blocks(text: str) -> str:
    """Return a docstring in Markdown: each example, with what it prints, is a block of code."""

    def block(found: re.Match[str]) -> str:
        indent, lines = found[1], found[0].rstrip("\n")
        return f"{indent}```pycon\n{lines}\n{indent}```\n"

    return _EXAMPLE.sub(block, text)


def _write_out(function: Function, taken: Function, described: Docstring) -> None:
    kinds = {each.name: each.kind for each in function.parameters}
    if kinds.get("options") is not ParameterKind.var_keyword:
        return  # imported, and done where it is defined
    del function.parameters["options"]
    for parameter in taken.parameters:
        function.parameters.add(parameter)
    arguments = _DESCRIBED.search(described.value)
    if function.docstring is not None and arguments is not None:
        function.docstring.value = _OPTIONS.sub(
            lambda _: arguments[1], function.docstring.value
        )
