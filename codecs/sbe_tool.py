"""Find and run sbe-tool, from whose output our codecs are generated, and find Aeron's schemas."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

from aerotape.codecs.ir import read_schema
from aerotape.codecs.schema import Schema
from aerotape.errors import CodecError, ConfigurationError

# The Aeron sources bundled with the crates that the native core is built from.
_SCHEMAS_IN_CRATE = Path("aeron/aeron-archive/src/main/resources/archive")
_CRATE = "rusteron-client"

# The root of a checkout; an installed package does not have these files.
_ROOT = Path(__file__).resolve().parents[1]
_JARS_IN_CHECKOUT = _ROOT / ".make" / "jars"
_CARGO_LOCK = _ROOT / "native" / "Cargo.lock"

# Excludes the jars of sources and documentation.
_SBE_JAR = re.compile(r"sbe-all-[\d.]+\.jar")


def find_sbe_jar() -> Path:
    """Find the newest `sbe-all-*.jar`: in $AEROTAPE_JARS, else among the jars of a checkout.

    Raises:
        ConfigurationError: no jar was found.
    """
    folder = Path(os.environ.get("AEROTAPE_JARS") or _JARS_IN_CHECKOUT)
    jars = [jar for jar in folder.glob("sbe-all-*.jar") if _SBE_JAR.fullmatch(jar.name)]
    if not jars:
        raise ConfigurationError(
            f"{folder} has no sbe-all-*.jar (sbe-tool): run make jars, or put it into the folder "
            "AEROTAPE_JARS",
            "AEROTAPE_JARS",
        )
    return max(jars, key=_version_in_name)


def find_schema_folder() -> Path:
    """Find Aeron Archive's schemas, of the version in the native core's Cargo.lock.

    They are among the sources that cargo fetched for the native core.

    Raises:
        ConfigurationError: cargo has not fetched them yet.
    """
    cargo_home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    crates = cargo_home / "registry" / "src"
    packages = tomllib.loads(_CARGO_LOCK.read_text())["package"]
    version = next(each["version"] for each in packages if each["name"] == _CRATE)
    found = list(crates.glob(f"*/{_CRATE}-{version}/{_SCHEMAS_IN_CRATE}/aeron-archive-codecs.xml"))
    if not found:
        raise ConfigurationError(
            f"{crates} has no {_CRATE} {version}: run cargo fetch in native/, or give the folder "
            "of Aeron's archive schemas with --schemas"
        )
    return found[0].parent


def compile_schema(schema_file: Path, sbe_jar: Path) -> Schema:
    """Read an XML schema through sbe-tool. Arguments and errors as for `run_sbe_tool`."""
    with tempfile.TemporaryDirectory(prefix="aerotape-sbe-") as folder:
        return read_schema(run_sbe_tool(schema_file, sbe_jar, Path(folder)))


def run_sbe_tool(schema_file: Path, sbe_jar: Path, output_folder: Path) -> Path:
    """Run sbe-tool on a schema; return the `.sbeir` file that it writes to the folder.

    Files that a schema includes (`xi:include`) must be in the same folder.

    Raises:
        CodecError: sbe-tool rejects the schema; the message has its reasons.
        ConfigurationError: the schema or the jar is missing, or there is no Java.
    """
    for file in (schema_file, sbe_jar):
        if not file.is_file():
            raise ConfigurationError(f"{file}: no such file")
    command = [
        _java(),
        "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
        "-Dsbe.generate.ir=true",
        "-Dsbe.generate.stubs=false",
        "-Dsbe.validation.stop.on.error=true",
        "-Dsbe.xinclude.aware=true",
        f"-Dsbe.output.dir={output_folder}",
        "-jar",
        str(sbe_jar),
        str(schema_file),
    ]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ConfigurationError(
            f"{command[0]} not found: sbe-tool requires Java 17 or later on the PATH or in "
            "JAVA_HOME"
        ) from None
    written = sorted(output_folder.glob("*.sbeir"))
    if result.returncode != 0 or len(written) != 1:
        raise CodecError(f"sbe-tool rejects {schema_file}: {_reasons(result.stderr)}")
    return written[0]


def _java() -> str:
    # As Spark does, so that no other setup is needed beside Spark's.
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def _reasons(stderr: str) -> str:
    # The first lines have the reasons; the stack trace is useless to the author of a schema.
    lines = [line for line in stderr.splitlines() if not line.startswith("\tat ")]
    reasons = [line for line in lines if line.startswith(("ERROR:", "WARNING:"))]
    return "; ".join(reasons or lines) or "no reason given"


def _version_in_name(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.name)]
