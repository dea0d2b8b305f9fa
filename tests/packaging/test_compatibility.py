"""docs/compatibility.md says what pyproject.toml, Cargo.lock and the poms declare."""

from __future__ import annotations

import re
import tomllib

import pytest
from support.jvm.java import ROOT

PAGE = (ROOT / "docs/compatibility.md").read_text()
ROWS = {
    cells[1].strip(): (cells[2].strip(), cells[3].strip())
    for cells in (line.split("|") for line in PAGE.splitlines() if line.startswith("| "))
}
POMS = {
    "Aeron, Java": ("jvm/pom.xml", "aeron-all"),
    "SBE": ("jvm/pom.xml", "sbe-all"),
    "BookKeeper, for ids and digests": ("jvm/bookkeeper/pom.xml", "bookkeeper-server"),
    "Cassandra, cassandra-driver": ("stores/pom.xml", "cassandra-all"),
}


@pytest.mark.parametrize("row", ["PySpark", "deltalake", "pyarrow", "Polars", "DuckDB"])
def test_minimums_are_those_of_the_extras(row: str) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    declared = {
        requirement
        for name, requirements in extras.items()
        for requirement in requirements
        if name != "dev" and re.match(rf"{row.lower()}\b", requirement)
    }
    [minimum] = {requirement.partition(">=")[2] for requirement in declared}
    assert ROWS[row][0].startswith(f"{minimum} or newer")


def test_python_and_delta_spark() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"{project['requires-python']}" == f">={ROWS['Python'][0].split()[0]}"
    [delta] = project["optional-dependencies"]["delta-spark"]
    assert delta == f"delta-spark=={ROWS['delta-spark'][0].partition(',')[0]}"


@pytest.mark.parametrize("row", POMS)
def test_java_programs_are_those_of_the_poms(row: str) -> None:
    pom, artifact = POMS[row]
    text = (ROOT / "tests/support" / pom).read_text()
    found = re.search(rf"<artifactId>{artifact}</artifactId>\s*<version>([^<]+)</version>", text)
    assert found is not None
    assert found[1] in ROWS[row][1]


def test_rusteron_and_zeebe() -> None:
    lock = tomllib.loads((ROOT / "native/Cargo.lock").read_text())
    [version] = {each["version"] for each in lock["package"] if each["name"] == "rusteron-client"}
    assert f"rusteron {version}" in ROWS["Aeron, C client and driver"][1]
    releases = re.search(r"^ZEEBE_RELEASES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert releases is not None
    assert releases[1].split() == ROWS["Zeebe's journals"][1].split(", ")
