"""The sdist is complete, and the wheel built from it works outside the checkout."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from support.jvm.java import ROOT

PACKAGES = ("archive", "catalog", "client", "codecs", "entity", "replay", "spark", "tools")
LAUNCH = """
import sys
import aerotape
from aerotape import _native
with_properties = {"aeron.dir": sys.argv[1], "aeron.threading.mode": "SHARED"}
driver = _native.MediaDriver.launch(with_properties)
client = _native.AeronClient(driver.aeron_dir)
publication = client.add_publication("aeron:ipc?term-length=65536", 1)
print(aerotape.__file__, publication.term_buffer_length)
client.close()
driver.close()
"""


def setuptools_major() -> int:
    return int(importlib.metadata.version("setuptools").split(".")[0])


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        setuptools_major() < 77 or shutil.which("cargo") is None,
        reason="the build requirements are not in this environment: use `make test`",
    ),
]


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5_000:]
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist of only the tracked and new files, as in a clone."""
    clone = tmp_path_factory.mktemp("clone")
    listed = run("git", "ls-files", "-coz", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        source, copy = ROOT / name, clone / name
        if source.is_symlink() or source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)
    out = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "build", "--no-isolation", "--sdist", "-o", out, clone, cwd=out)
    [path] = out.glob("aerotape-*.tar.gz")
    return path


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from the unpacked sdist, with Cargo's existing build artefacts."""
    out = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(out, filter="data")
    [tree] = (path for path in out.iterdir() if path.is_dir())
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "native" / "target"))
    run(
        *(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"),
        *("--wheel-dir", out, tree),
        cwd=out,
        CARGO_TARGET_DIR=target,
    )
    [path] = out.glob("aerotape-*.whl")
    return path


def modules_of_the_tree() -> set[str]:
    return {
        f"aerotape/{path.relative_to(ROOT)}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }


def test_sdist_contains_packages_and_the_crate(sdist: Path) -> None:
    """The linked packages are regular files in the sdist, which has the Rust sources and
    settings."""
    with tarfile.open(sdist) as archive:
        members = {
            member.name.partition("/")[2]: member for member in archive if not member.isdir()
        }
    assert all(member.isfile() for member in members.values())
    assert {f"src/{name}" for name in modules_of_the_tree()} <= members.keys()
    crate = {str(path.relative_to(ROOT)) for path in (ROOT / "native" / "src").rglob("*.rs")}
    needed = {
        ".cargo/config.toml",
        "LICENSE",
        "src/aerotape/__init__.pyi",
        "src/aerotape/_native/__init__.pyi",
        "src/aerotape/py.typed",
        "src/aerotape/spark/runtime/log4j2.properties",
        "native/Cargo.lock",
        "native/Cargo.toml",
        "native/build_environment.py",
        "native/toolchain.cmake",
        "pyproject.toml",
        "setup.py",
        "src/pyspark_aerotape.py",
    }
    assert crate | needed <= members.keys()
    assert not [name for name in members if name.endswith((".so", ".pyc", ".jar"))]


def test_wheel_is_for_every_later_python(wheel: Path) -> None:
    """The wheel is abi3 and has the modules of the tree, type information and the command."""
    assert wheel.name.startswith("aerotape-")
    assert "-cp311-abi3-linux_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [entry_points] = (name for name in names if name.endswith("/entry_points.txt"))
        assert "aerotape = aerotape.tools._cli.main:main" in archive.read(entry_points).decode()
    assert {name for name in names if name.count("/") > 1 and name.endswith(".py")} == (
        modules_of_the_tree()
    )
    files = (
        "_native.abi3.so",
        "__init__.pyi",
        "_native/__init__.pyi",
        "_native/_aeron.pyi",
        "py.typed",
        "spark/runtime/log4j2.properties",
    )
    assert {f"aerotape/{name}" for name in files} <= names
    assert "aerotape/tools/_web/pages/static/uPlot.js" in names
    assert "aerotape/tools/_web/pages/templates/base.html" in names
    # Spark finds data sources by modules with such a name.
    assert {name for name in names if not name.startswith("aerotape")} == {"pyspark_aerotape.py"}


def test_installed_wheel_works_outside_the_tree(
    wheel: Path, tmp_path: Path, aeron_dir: Path
) -> None:
    """In an empty environment, far from the sources, the wheel launches a driver and publishes."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    said = run(python, "-I", "-c", LAUNCH, aeron_dir, cwd=tmp_path)
    assert str(environment) in said
    assert "65536" in said
    assert "usage: aerotape" in run(environment / "bin" / "aerotape", "--help", cwd=tmp_path)
