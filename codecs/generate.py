"""Generate codec modules from SBE schemas.

    python -m aerotape.codecs.generate [--schemas DIR] [--sbe-jar JAR] [--out DIR] [--check]
    python -m aerotape.codecs.generate SCHEMA MODULE [--sbe-jar JAR] [--check]

The first form writes the committed modules, of Aeron Archive's messages and of the schemas in
`codecs/schemas/`, the second one the module of any schema that `codecs/emitter.py` supports. Both
run sbe-tool, read its intermediate representation (`codecs/ir.py`) and write one module per schema.
Aeron's schemas are not part of this project: they come with the Aeron sources that the native core
is built from.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from aerotape.codecs.emitter import module_source
from aerotape.codecs.sbe_tool import compile_schema, find_sbe_jar, find_schema_folder
from aerotape.errors import AerotapeError

# Module by schema file.
MODULES = {
    "aeron-archive-codecs.xml": "archive.py",
    "aeron-archive-mark-codecs.xml": "mark.py",
}
# The same for schemas of this package.
OWN_SCHEMAS = Path(__file__).parent / "schemas"
OWN_MODULES = {
    "archive-removed.xml": "archive_removed.py",
    "entity.xml": "entity.py",
    "ledger-control.xml": "ledger_control.py",
    "raft-entry.xml": "raft_entry.py",
    "raft-journal.xml": "raft_journal.py",
    "raft-replication.xml": "raft_replication.py",
}


def generate_archive_modules(schema_folder: Path, sbe_jar: Path) -> dict[str, str]:
    """Generate the committed modules and return their text by file name.

    Raises:
        CodecError: a schema is invalid, or has a construct that is not supported.
        ConfigurationError: a schema is missing, or sbe-tool cannot be run.
    """
    sources = {schema_folder / name: module for name, module in MODULES.items()}
    sources |= {OWN_SCHEMAS / name: module for name, module in OWN_MODULES.items()}
    return {
        module: module_source(compile_schema(schema_file, sbe_jar), schema_file.name)
        for schema_file, module in sources.items()
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code (0 done or up to date, 1 failure or out of date)."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.schema is not None and options.module is None:
        parser.error("MODULE is required after SCHEMA")
    try:
        sbe_jar = options.sbe_jar or find_sbe_jar()
        if options.schema is None:
            modules = generate_archive_modules(options.schemas or find_schema_folder(), sbe_jar)
            texts = {options.out / name: text for name, text in modules.items()}
        else:
            schema = compile_schema(options.schema, sbe_jar)
            names = f"{options.schema.name} {options.module.name}"
            texts = {options.module: module_source(schema, options.schema.name, names)}
        return _write(texts, check=options.check)
    except (AerotapeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _write(texts: dict[Path, str], *, check: bool) -> int:
    stale = False
    for path, text in texts.items():
        if path.exists() and path.read_text() == text:
            print(f"{path}: up to date")
        elif check:
            stale = True
            print(f"{path}: out of date: run without --check", file=sys.stderr)
        else:
            path.write_text(text)
            print(f"{path}: written")
    return 1 if stale else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m aerotape.codecs.generate",
        description="Generate SBE codec modules: of Aeron Archive's schemas, or of the one given.",
    )
    parser.add_argument("schema", type=Path, nargs="?", metavar="SCHEMA", help="an SBE schema")
    parser.add_argument(
        "module", type=Path, nargs="?", metavar="MODULE", help="the Python file to write"
    )
    parser.add_argument(
        "--schemas",
        type=Path,
        metavar="DIR",
        help="folder of Aeron's schemas (default: from the sources that cargo fetched)",
    )
    parser.add_argument(
        "--sbe-jar",
        type=Path,
        metavar="JAR",
        help="sbe-all jar (default: the newest in $AEROTAPE_JARS, or of `make jars`)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        default=Path(__file__).parent / "generated",
        help="folder for the modules of Aeron's schemas (default: codecs/generated)",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, fail if a module is out of date"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
