"""Record Aeron streams, store them, replay them, and read them in Spark.

    with aerotape.Archive.launch(dir="archive") as archive: ...     the archive itself
    with aerotape.connect() as client: ...                          a client of any Aeron archive
    aerotape.open_directory("archive").recordings()                 offline, read-only

Names are loaded on first use, so that a tool that only reads files does not load an Aeron client.
"""

from __future__ import annotations

import importlib
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from aerotape import errors as errors

__version__ = "0.1.0"

# Where the extension is missing, Python takes the folder of its stubs for an empty package.
_extension = PathFinder.find_spec(f"{__name__}._native", __path__)
if _extension is None or _extension.origin is None:
    raise ImportError(
        f"aerotape's native extension is missing in {__path__[0]}: run `make setup` in the checkout"
    )

# The lines `from MODULE import NAME as NAME` of the stub.
_MODULES = {
    words[3]: words[1]
    for words in map(str.split, Path(__file__).with_suffix(".pyi").read_text("utf-8").splitlines())
    if words[:1] == ["from"]
}
__all__ = sorted({"__version__", *_MODULES})


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'aerotape' has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
