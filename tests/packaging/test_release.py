"""What `make release` checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FILES = {
    "aerotape-1.2.0.tar.gz",
    "aerotape-1.2.0-cp311-abi3-manylinux_2_28_x86_64.whl",
    "aerotape-1.2.0-cp311-abi3-manylinux_2_28_aarch64.whl",
}


def git(checkout: Path, *arguments: str) -> None:
    names = ("-c", "user.name=n", "-c", "user.email=e")
    subprocess.run(["git", "-C", checkout, *names, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that can be released as 1.2.0."""
    (tmp_path / "aerotape").mkdir()
    (tmp_path / "aerotape/__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n")
    (tmp_path / ".gitignore").write_text("/dist/\n")
    (tmp_path / "dist").mkdir()
    for name in FILES:
        (tmp_path / "dist" / name).touch()
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "Release 1.2.0")
    git(tmp_path, "tag", "v1.2.0")
    return tmp_path


def check(checkout: Path) -> tuple[int, str]:
    """Return the exit code and what was reported."""
    script = Path(__file__).with_name("release.py")
    done = subprocess.run(
        [sys.executable, script, "dist"], cwd=checkout, capture_output=True, text=True
    )
    return done.returncode, done.stderr


def test_a_release(checkout: Path) -> None:
    """A tagged commit with its section and its files is accepted."""
    assert check(checkout) == (0, "")


def test_each_problem_is_named(checkout: Path) -> None:
    """Tag, section, files and changes of another version are reported together."""
    (checkout / "aerotape/__init__.py").write_text('__version__ = "1.3.0"\n')
    code, reported = check(checkout)
    assert code == 1
    assert "aerotape-1.3.0.tar.gz is missing in dist" in reported
    assert "aerotape-1.2.0.tar.gz in dist is not of this release" in reported
    assert "no section `## [1.3.0] - YYYY-MM-DD`" in reported
    assert "no tag v1.3.0" in reported
    assert "changes that are not committed" in reported
    assert reported.count("\n") == 9
