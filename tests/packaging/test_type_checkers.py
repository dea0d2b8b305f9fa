"""Type checkers and PySpark with an installed aerotape, in another project's directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.jvm.java import ROOT

pytestmark = pytest.mark.slow

HEADER = "import aerotape\nfrom pyspark.sql import SparkSession\n"
# The variables that a script of README.md takes from preceding scripts, or from the reader.
GIVEN = {
    "client": "aerotape.ArchiveClient",
    "recording_id": "int",
    "live_channel": "str",
    "spark": "SparkSession",
}
USER_TYPES = """
import aerotape


def lengths(directory: aerotape.ArchiveDirectory) -> list[int]:
    recordings: list[aerotape.Recording] = directory.recordings()
    described: list[aerotape.RecordingDescriptor] = [each.descriptor for each in recordings]
    statistics: list[aerotape.RecordingStatistics] = [each.stats() for each in recordings]
    return [each.stream_id for each in described] + [each.messages for each in statistics]


def first(client: aerotape.ArchiveClient, credentials: aerotape.Credentials) -> aerotape.Message:
    replay: aerotape.Replay = client.replay(0)
    signals: aerotape.Signals = client.signals()
    signals.close()
    merge = client.replay_merge(0, "aeron:udp?endpoint=localhost:0")
    state: aerotape.MergeState = merge.state
    print(state, credentials)
    return next(replay)


async def first_awaited(client: aerotape.AsyncArchiveClient) -> aerotape.Message:
    signals: aerotape.AsyncSignals = client.signals()
    await signals.close()
    replay: aerotape.AsyncReplay = await client.replay(0)
    return await anext(replay)
"""


def mypy(tmp_path: Path, *scripts: Path) -> subprocess.CompletedProcess[str]:
    """Check scripts as a user does: in a directory outside of the checkout."""
    cache = f"--cache-dir={ROOT / '.mypy_cache' / 'installed'}"
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", cache, *scripts],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "MYPYPATH"},
        capture_output=True,
        text=True,
    )


def test_scripts_of_the_readme_pass_strict_type_checks(tmp_path: Path) -> None:
    """A type checker finds the package and its types; each script of README.md passes."""
    scripts = []
    for index, text in enumerate(
        re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    ):
        given = {name: kind for name, kind in GIVEN.items() if re.search(rf"\b{name}\b", text)}
        declared = "".join(f"{name}: {kind}\n" for name, kind in given.items())
        script = tmp_path / f"readme_{index}.py"
        script.write_text(text if "import aerotape\n" in text else HEADER + declared + text)
        scripts.append(script)
    assert len(scripts) >= 2
    done = mypy(tmp_path, *scripts)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_of_the_api_are_exported(tmp_path: Path) -> None:
    """Parameters and results of the API can be annotated with names of `aerotape` alone."""
    script = tmp_path / "users.py"
    script.write_text(USER_TYPES)
    done = mypy(tmp_path, script)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_path_has_only_the_package_and_the_data_source(tmp_path: Path) -> None:
    """PySpark's search of modules finds the data source; no directory of the checkout is a module
    that another project's imports could meet."""
    looked = "import pkgutil; print(*(module.name for module in pkgutil.iter_modules()))"
    names = subprocess.run(
        [sys.executable, "-I", "-c", looked],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert {"aerotape", "pyspark_aerotape"} <= set(names)
    assert not {"archive", "catalog", "native", "replay", "spark", "tests", "tools"} & set(names)
