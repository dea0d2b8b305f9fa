"""Find and run sbe-tool, and find the schemas of Aeron Archive.

Separate from the generator because users' own schemas need the tool too, but not Aeron's schemas.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from aerotape.errors import CodecError, ConfigurationError

# The Aeron sources bundled with the crates that the native core is built from.
_SCHEMAS_IN_CRATE = Path("aeron/aeron-archive/src/main/resources/archive")
_CRATE = "rusteron-client"


def find_sbe_jar(folder: Path | None = None) -> Path:
    """Find the newest `sbe-all-*.jar` in a folder, by default that named by AEROTAPE_JARS.

    Raises:
        ConfigurationError: the variable is not set, or the folder has no such jar.
    """
    if folder is None:
        named = os.environ.get("AEROTAPE_JARS")
        if not named:
            raise ConfigurationError(
                "where sbe-tool is, is not known: set AEROTAPE_JARS to a folder with "
                "sbe-all-*.jar, or give --sbe-jar",
                "AEROTAPE_JARS",
            )
        folder = Path(named)
    jars = sorted(folder.glob("sbe-all-*.jar"), key=_version_in_name)
    if not jars:
        raise ConfigurationError(f"{folder} has no sbe-all-*.jar (sbe-tool)", "AEROTAPE_JARS")
    return jars[-1]


def find_schema_folder() -> Path:
    """Find Aeron Archive's schemas among the sources that cargo fetched for the native core.

    Of several versions the newest counts.

    Raises:
        ConfigurationError: cargo has not fetched them yet.
    """
    cargo_home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    folders = [
        crate / _SCHEMAS_IN_CRATE
        for crate in sorted(cargo_home.glob(f"registry/src/*/{_CRATE}-*"), key=_version_in_name)
        if (crate / _SCHEMAS_IN_CRATE / "aeron-archive-codecs.xml").is_file()
    ]
    if not folders:
        raise ConfigurationError(
            f"no {_CRATE} crate under {cargo_home}/registry/src: run cargo fetch in native/, or "
            "name the folder of Aeron's archive schemas with --schemas"
        )
    return folders[-1]


def run_sbe_tool(schema_file: Path, sbe_jar: Path, output_folder: Path) -> Path:
    """Let sbe-tool parse a schema; return the `.sbeir` file that it writes to the folder.

    Raises:
        CodecError: sbe-tool refuses the schema; the message has its words.
        ConfigurationError: the schema or the jar is missing, or there is no Java.
    """
    for file in (schema_file, sbe_jar):
        if not file.is_file():
            raise ConfigurationError(f"{file} is not there")
    command = [
        "java",
        "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
        "-Dsbe.generate.ir=true",
        "-Dsbe.generate.stubs=false",
        "-Dsbe.validation.stop.on.error=true",
        f"-Dsbe.output.dir={output_folder}",
        "-jar",
        str(sbe_jar),
        str(schema_file),
    ]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ConfigurationError("java is not on the PATH: install a JDK, 17 or newer") from None
    written = sorted(output_folder.glob("*.sbeir"))
    if result.returncode != 0 or len(written) != 1:
        raise CodecError(f"sbe-tool refuses {schema_file}: {_reasons(result.stderr)}")
    return written[0]


def _reasons(stderr: str) -> str:
    # Java's stack trace says nothing to somebody whose schema is wrong; the first lines do.
    lines = [line for line in stderr.splitlines() if not line.startswith("\tat ")]
    reasons = [line for line in lines if line.startswith(("ERROR:", "WARNING:"))]
    return "; ".join(reasons or lines) or "it says nothing"


def _version_in_name(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.name)]
