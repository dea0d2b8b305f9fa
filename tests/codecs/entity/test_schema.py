"""The compiled schema of actions, which Spark jobs read."""

from __future__ import annotations

from pathlib import Path

from aerotape import codecs
from aerotape.codecs.sbe_tool import run_sbe_tool

SCHEMAS = Path(codecs.__file__).parent / "schemas"


def test_compiled_schema_is_up_to_date(jars: dict[str, Path], tmp_path: Path) -> None:
    """sbe-tool compiles the schema into exactly the committed file."""
    compiled = run_sbe_tool(SCHEMAS / "entity.xml", jars["sbe-all"], tmp_path)
    assert compiled.read_bytes() == (SCHEMAS / "entity.sbeir").read_bytes()
