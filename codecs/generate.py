"""Generate the committed codec modules from Aeron's SBE schemas.

    python -m aerotape.codecs.generate [--schemas DIR] [--sbe-jar JAR] [--out DIR] [--check]

runs sbe-tool on each schema for its intermediate representation, reads that (`codecs/ir.py`) and
writes one module a schema. The schemas themselves are not part of this project: they come with
the Aeron sources that the native core is built from.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from aerotape.codecs.ir import read_schema
from aerotape.codecs.sbe_tool import find_sbe_jar, find_schema_folder, run_sbe_tool
from aerotape.codecs.schema import Schema
from aerotape.codecs.source import module_source
from aerotape.errors import AerotapeError

# Schema file to module, both beside each other in their folders.
MODULES = {
    "aeron-archive-codecs.xml": "archive.py",
    "aeron-archive-mark-codecs.xml": "mark.py",
}


def schema_of(schema_file: Path, sbe_jar: Path) -> Schema:
    """Run sbe-tool on a schema and read what it makes of it.

    Raises:
        CodecError: the schema is wrong.
        ConfigurationError: sbe-tool cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="aerotape-sbe-") as folder:
        return read_schema(run_sbe_tool(schema_file, sbe_jar, Path(folder)))


def generate(schema_folder: Path, sbe_jar: Path) -> dict[str, str]:
    """Generate all modules and return their text by file name.

    Raises:
        CodecError: a schema is wrong, or has a construct that the generator does not know.
        ConfigurationError: a schema is missing, or sbe-tool cannot be run.
    """
    return {
        module: module_source(schema_of(schema_folder / schema_file, sbe_jar), schema_file)
        for schema_file, module in MODULES.items()
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code (0 done or up to date, 1 failure or out of date)."""
    parser = argparse.ArgumentParser(
        prog="python -m aerotape.codecs.generate",
        description="Generate the SBE codec modules from Aeron's schemas.",
    )
    parser.add_argument(
        "--schemas",
        type=Path,
        metavar="DIR",
        help="folder of the schemas (default: that of the Aeron sources in the cargo registry)",
    )
    parser.add_argument(
        "--sbe-jar",
        type=Path,
        metavar="JAR",
        help="sbe-all jar (default: the newest in the folder AEROTAPE_JARS)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        default=Path(__file__).parent,
        help="folder to write to (default: that of this module)",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, fail if a module is out of date"
    )
    options = parser.parse_args(arguments)
    try:
        sbe_jar = options.sbe_jar or find_sbe_jar()
        modules = generate(options.schemas or find_schema_folder(), sbe_jar)
    except AerotapeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    stale = False
    for name, text in modules.items():
        path: Path = options.out / name
        if path.exists() and path.read_text() == text:
            print(f"{path}: up to date")
        elif options.check:
            stale = True
            print(f"{path}: out of date; run python -m aerotape.codecs.generate", file=sys.stderr)
        else:
            path.write_text(text)
            print(f"{path}: written")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
