"""Find and run sbe-tool, and find the schemas of Aeron Archive.

Separate from the generator because users' own schemas need the tool too, but not Aeron's schemas.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

from aerotape.errors import CodecError, ConfigurationError

# The Aeron sources bundled with the crates that the native core is built from.
_SCHEMAS_IN_CRATE = Path("aeron/aeron-archive/src/main/resources/archive")
_CRATE = "rusteron-client"

# The checkout, when this is one; an installed package has nothing of what is looked for there.
_ROOT = Path(__file__).resolve().parents[1]
_JARS_IN_CHECKOUT = _ROOT / ".make" / "jars"
_CARGO_LOCK = _ROOT / "native" / "Cargo.lock"

_SBE_ARTIFACT = "uk.co.real-logic:sbe-all:1.38.1"
# Not its sources, nor its documentation. Ivy puts the group's name in front.
_SBE_JAR = re.compile(r"(uk\.co\.real-logic_)?sbe-all-[\d.]+\.jar")


def find_sbe_jar() -> Path:
    """Find the newest `sbe-all-*.jar`: in $AEROTAPE_JARS, else in the folders that have some.

    These are where `make` puts the jars of a checkout, Maven's local repository and what Spark
    fetches for `spark.jars.packages`.

    Raises:
        ConfigurationError: there is none.
    """
    named = os.environ.get("AEROTAPE_JARS")
    folders = [Path(named)] if named else [_JARS_IN_CHECKOUT, *_jar_caches()]
    for folder in folders:
        jars = [jar for jar in folder.glob("*sbe-all-*.jar") if _SBE_JAR.fullmatch(jar.name)]
        if jars:
            return max(jars, key=_version_in_name)
    where = f"{named} has no sbe-all-*.jar" if named else "sbe-all-*.jar is nowhere to be found"
    raise ConfigurationError(
        f"{where}, and without it (sbe-tool) an XML schema cannot be read: get it with `mvn "
        f"dependency:get -Dartifact={_SBE_ARTIFACT}`, or from Maven Central into a folder that "
        "AEROTAPE_JARS names; or use the .sbeir file that sbe-tool writes with "
        "-Dsbe.generate.ir=true, which needs neither the jar nor Java",
        "AEROTAPE_JARS",
    )


def _jar_caches() -> list[Path]:
    home = Path.home()
    maven = sorted(home.glob(".m2/repository/uk/co/real-logic/sbe-all/*"), key=_version_in_name)
    return [*reversed(maven), *sorted(home.glob(".ivy2*/jars"))]


def find_schema_folder() -> Path:
    """Find Aeron Archive's schemas among the sources that cargo fetched for the native core.

    Of several versions that of the native core's Cargo.lock counts, without one the newest.

    Raises:
        ConfigurationError: cargo has not fetched them yet.
    """
    cargo_home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    crates = cargo_home / "registry" / "src"
    folders = [
        crate / _SCHEMAS_IN_CRATE
        for crate in sorted(
            crates.glob(f"*/{_CRATE}-{_locked_version() or '*'}"), key=_version_in_name
        )
        if (crate / _SCHEMAS_IN_CRATE / "aeron-archive-codecs.xml").is_file()
    ]
    if not folders:
        raise ConfigurationError(
            f"{crates} has no {_CRATE} {_locked_version()}: run cargo fetch in native/, or name "
            "the folder of Aeron's archive schemas with --schemas"
        )
    return folders[-1]


def run_sbe_tool(schema_file: Path, sbe_jar: Path, output_folder: Path) -> Path:
    """Let sbe-tool parse a schema; return the `.sbeir` file that it writes to the folder.

    What a schema includes (`xi:include`) is looked for beside it.

    Raises:
        CodecError: sbe-tool refuses the schema; the message has its words.
        ConfigurationError: the schema or the jar is missing, or there is no Java.
    """
    for file in (schema_file, sbe_jar):
        if not file.is_file():
            raise ConfigurationError(f"{file} is not there")
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
            f"{command[0]} is not there: sbe-tool needs Java, 17 or newer, on the PATH or in "
            "JAVA_HOME"
        ) from None
    written = sorted(output_folder.glob("*.sbeir"))
    if result.returncode != 0 or len(written) != 1:
        raise CodecError(f"sbe-tool refuses {schema_file}: {_reasons(result.stderr)}")
    return written[0]


def _java() -> str:
    # As Spark finds it: who has that running need not set up anything else.
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def _locked_version() -> str:
    if not _CARGO_LOCK.is_file():
        return ""
    packages = tomllib.loads(_CARGO_LOCK.read_text())["package"]
    return next((p["version"] for p in packages if p["name"] == _CRATE), "")


def _reasons(stderr: str) -> str:
    # Java's stack trace says nothing to somebody whose schema is wrong; the first lines do.
    lines = [line for line in stderr.splitlines() if not line.startswith("\tat ")]
    reasons = [line for line in lines if line.startswith(("ERROR:", "WARNING:"))]
    return "; ".join(reasons or lines) or "it says nothing"


def _version_in_name(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.name)]
