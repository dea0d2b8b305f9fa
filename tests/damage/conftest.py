"""A directory with one kind of damage, drawn from a seed: both are in the test id.

`--seeds 50 --seed 1000` tries fifty seeds of each kind, from 1000.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon.archives import EMBEDDED_DRIVER
from support.damage.damaged_directory import BuiltDirectory, build, copy_directory, surviving
from support.damage.damages import DAMAGES, Damaged
from support.damage.tool_commands import POLICY, run

import aerotape


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltDirectory:
    """The directory without damage."""
    return build(tmp_path_factory.mktemp("damage") / "archive")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Test each kind of damage with some seeds."""
    if "damaged" in metafunc.fixturenames:
        first = metafunc.config.getoption("--seed")
        seeds = range(first, first + metafunc.config.getoption("--seeds"))
        kinds = [(name, seed) for name in DAMAGES for seed in seeds]
        ids = [f"{name}-{seed}" for name, seed in kinds]
        metafunc.parametrize("damaged", kinds, ids=ids, indirect=True, scope="module")


@pytest.fixture(scope="module")
def damaged(
    request: pytest.FixtureRequest,
    built: BuiltDirectory,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Damaged]:
    """A copy with the damage of the test id."""
    name, seed = request.param
    folder = tmp_path_factory.mktemp("damaged")
    path = copy_directory(built.path, folder / "archive")
    hit = DAMAGES[name](built, path, random.Random(f"{name} {seed}"))
    yield Damaged(path, hit, frozenset(surviving(built, path)))
    shutil.rmtree(folder)


@pytest.fixture
def directory(damaged: Damaged, tmp_path: Path) -> Iterator[Path]:
    """A copy of the damaged directory that one test may change."""
    yield copy_directory(damaged.path, tmp_path / "archive")
    shutil.rmtree(tmp_path)


@pytest.fixture
def aside(built: BuiltDirectory, tmp_path: Path) -> Path:
    """A separate directory for the files that commands read and write."""
    folder = tmp_path / "aside"
    folder.mkdir()
    (folder / "policy.toml").write_text(POLICY)
    (folder / "original").symlink_to(built.path)
    assert run("tool", built.path, "export", "5", folder / "recording").code == 0
    return folder


@pytest.fixture(scope="module")
def driver_dir() -> Iterator[Path]:
    """The directory of a running media driver, for all archives of a module."""
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="aerotape-test-", dir=in_memory) as parent:
        path = Path(parent, "aeron")
        with aerotape.MediaDriver.launch(path, EMBEDDED_DRIVER):
            yield path
