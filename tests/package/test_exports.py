"""The public names of the package."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import aerotape


def test_each_public_name_can_be_loaded() -> None:
    """The names of the stub are the names of the package."""
    stub = ast.parse(Path(aerotape.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    modules = {each.asname: node.module for node in imports for each in node.names}
    assert {*modules, "__version__"} == set(aerotape.__all__)
    assert modules == aerotape._MODULES  # type: ignore[attr-defined]
    assert set(aerotape.__all__) <= set(dir(aerotape))
    for name in aerotape.__all__:
        assert getattr(aerotape, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        aerotape.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_an_import_loads_nothing_heavy() -> None:
    """Clients, Arrow and Spark are loaded on first use."""
    script = "import sys, aerotape; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "aerotape.errors" in loaded
    assert not {"aerotape._native", "pyarrow", "pyspark", "asyncio"} & set(loaded)


def test_a_missing_extension_is_named(tmp_path: Path) -> None:
    """Without the native extension the import fails with one sentence that says what to do."""
    package = tmp_path / "aerotape"
    package.mkdir()
    for entry in Path(aerotape.__file__).parent.iterdir():
        if entry.suffix != ".so":
            (package / entry.name).symlink_to(entry.resolve())
    failed = subprocess.run(
        [sys.executable, "-c", "import aerotape.archive.archive"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert failed.stderr.splitlines()[-1] == (
        f"ImportError: aerotape's native extension is missing in {package}: "
        "run `make setup` in the checkout, or leave it to import an installed aerotape"
    )
