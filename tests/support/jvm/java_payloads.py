"""Payloads of a schema, encoded by a Java program with the codecs that sbe-tool generates."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.jvm.java import JAVA_OPENS

_PROGRAMS = Path(__file__).resolve().parents[2] / "codecs" / "java"


def encode_with_java(schema_file: Path, program: str, sbe_jar: Path, stubs: Path) -> list[bytes]:
    """Generate codecs into the folder `stubs`, compile the program of that name (it prints lines
    of hex) against them, and return the encoded payloads."""
    tool = ["-Dsbe.target.language=Java", "-Dsbe.xinclude.aware=true", f"-Dsbe.output.dir={stubs}"]
    _run("java", *JAVA_OPENS, *tool, "-jar", str(sbe_jar), str(schema_file))
    classes = f"{sbe_jar}:{stubs}"
    _run("javac", "-proc:none", "-encoding", "UTF-8", "-cp", classes, "-sourcepath", str(stubs),
         "-d", str(stubs), str(_PROGRAMS / f"{program}.java"))  # fmt: skip
    return [
        bytes.fromhex(line) for line in _run("java", *JAVA_OPENS, "-cp", classes, program).split()
    ]


def _run(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout
