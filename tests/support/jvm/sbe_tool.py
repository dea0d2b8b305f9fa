"""Many schemas compiled by sbe-tool in one JVM."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from support.jvm.java import JAVA_OPENS

_PROGRAM = Path(__file__).resolve().parents[2] / "codecs" / "java" / "SchemaCompiler.java"


def compile_schemas(schemas: Mapping[str, str], folder: Path, sbe_jar: Path) -> dict[str, str]:
    """Write schemas into a folder and compile them.

    Args:
        schemas: text by name; the files have these names with `.xml` and, if sbe-tool accepts the
            schema, `.sbeir`.
        folder: an empty one.
        sbe_jar: the jar of sbe-tool.

    Returns:
        By the name of each schema that sbe-tool refuses, what it reports.
    """
    for name, text in schemas.items():
        (folder / f"{name}.xml").write_text(text)
    fast = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    command = ["java", *JAVA_OPENS, *fast, "-cp", str(sbe_jar), str(_PROGRAM), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return {
        name: refused.read_text()
        for name in schemas
        if (refused := folder / f"{name}.error").exists()
    }
