"""Record Aeron streams, store them, replay them, and read them from Python and Spark.

An archive, and a client of it (of Aeron's Java archive, too):

    with aerotape.Archive.launch(dir="recordings") as archive:
        with aerotape.connect(aeron_dir=archive.aeron_dir) as client:
            client.start_recording("aeron:ipc", 1001)
            client.aeron.add_publication("aeron:ipc", 1001).send(b"hello")
            ...

The recordings of a directory, of this archive or a Java archive, which need not run:

    for recording in aerotape.open_directory("recordings").recordings():
        for message in recording.messages():
            print(message.position, message.payload)
        table = recording.to_arrow()          # also to_batches, stats, plot

`connect_async` is `connect` for asyncio, `Aeron` publishes and subscribes, `MediaDriver` runs a
driver alone. Errors are subclasses of `AerotapeError`; those of one situation are in
`aerotape.errors`. `aerotape.spark` has the Spark source. Names are loaded on first use, so that a
tool that only reads files does not load an Aeron client.
"""

from __future__ import annotations

import importlib as _importlib
from importlib.machinery import PathFinder as _PathFinder
from pathlib import Path as _Path

from aerotape import errors as errors

__version__ = "0.1.0"

# Where the extension is missing, Python takes the folder of its stubs for an empty package.
_extension = _PathFinder.find_spec(f"{__name__}._native", __path__)
if _extension is None or _extension.origin is None:
    raise ImportError(
        f"aerotape's native extension is missing in {__path__[0]}: run `make setup` in the checkout"
    )

# The lines `from MODULE import NAME as NAME` of the stub.
_MODULES = {
    words[3]: words[1]
    for words in map(str.split, _Path(__file__).with_suffix(".pyi").read_text("utf-8").splitlines())
    if words[:1] == ["from"]
}
__all__ = sorted({"__version__", *_MODULES})


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'aerotape' has no attribute {name!r}")
    value = getattr(_importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "errors"})
