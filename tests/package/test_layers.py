"""The folders of the package depend on each other in one direction."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import aerotape

PACKAGE = Path(aerotape.__file__).parent
FOLDERS = ("archive", "catalog", "client", "codecs", "entity", "replay", "spark", "tools")
# These modules export names from the folders, and put them together.
FACE = {"__init__.py", "__main__.py", "aio.py", "clients.py"}


def sources() -> Iterator[tuple[str, Path]]:
    """Yield each source file with its folder; modules of the package itself are in `aerotape`."""
    for path in PACKAGE.glob("*.py"):
        if path.name not in FACE:
            yield "aerotape", path
    for folder in FOLDERS:
        for path in (PACKAGE / folder).rglob("*.py"):
            yield folder, path


@cache
def imports_of(path: Path) -> list[str]:
    """Return the modules that a file imports, also in functions and for type checking."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # In `from aerotape import archive` the imported name is the folder.
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def folder_of(module: str) -> str | None:
    """Return the folder of a module of the package, None of any other module."""
    package, _, rest = module.partition(".")
    if package != "aerotape":
        return None
    first = rest.partition(".")[0]
    return first if first in FOLDERS else "aerotape"


def path_between(arrows: dict[str, dict[str, str]], begin: str, end: str) -> list[str]:
    """Return the folders on a path of imports from one to another; empty without a path."""
    ways = [[begin]]
    seen = {begin}
    for way in ways:
        for folder in arrows.get(way[-1], {}):
            if folder == end:
                return [*way, end]
            if folder not in seen:
                seen.add(folder)
                ways.append([*way, folder])
    return []


def circles(arrows: dict[str, dict[str, str]], parts: Iterable[str]) -> list[str]:
    """Return a circle of imports through each of the parts, with files that import."""
    found = (path_between(arrows, part, part) for part in sorted(parts))
    return [
        ", ".join(f"{a} -> {b}: {arrows[a][b]}" for a, b in pairwise(circle))
        for circle in found
        if circle
    ]


def test_no_folders_import_each_other() -> None:
    """Imports between folders, in functions and of types too, form no cycle."""
    arrows: dict[str, dict[str, str]] = {folder: {} for folder in ("aerotape", *FOLDERS)}
    for folder, path in sources():
        for module in imports_of(path):
            other = folder_of(module)
            if other is not None and other != folder:
                arrows[folder].setdefault(other, str(path.relative_to(PACKAGE)))
    assert not circles(arrows, arrows)


PACKAGES = sorted(
    str(path.relative_to(PACKAGE))
    for folder in FOLDERS
    for path in (PACKAGE / folder, *(PACKAGE / folder).rglob("*/"))
    if list(path.glob("*/__init__.py"))
)


def arrows_within(name: str) -> dict[str, dict[str, str]]:
    """Return which parts of a package import which others, each with a file that does."""
    package = PACKAGE / name
    prefix = f"aerotape.{name.replace('/', '.')}."
    arrows: dict[str, dict[str, str]] = {}
    for path in package.rglob("*.py"):
        source = path.relative_to(package)
        part = source.parts[0].removesuffix(".py")
        for module in imports_of(path):
            other = module.removeprefix(prefix).partition(".")[0]
            if module.startswith(prefix) and other != part:
                arrows.setdefault(part, {}).setdefault(other, str(source))
    return arrows


def sub_packages(name: str) -> set[str]:
    return {path.parent.name for path in (PACKAGE / name).glob("*/__init__.py")}


@pytest.mark.parametrize("name", PACKAGES)
def test_no_sub_packages_import_each_other(name: str) -> None:
    """A sub-package is in no cycle of imports with others, nor with the modules beside it."""
    assert not circles(arrows_within(name), sub_packages(name))


# What a room may import; the modules in `aerotape/` are below all of them.
BELOW = {
    "codecs": {"catalog"},
    "catalog": {"codecs"},
    "client": {"catalog", "codecs"},
    "entity": {"catalog", "client", "codecs"},
    "archive": {"catalog", "client", "codecs", "entity"},
}
FEATURES = ("features.ledger", "features.scopes", "features.entity")


@pytest.mark.parametrize("room", BELOW)
def test_a_room_imports_what_is_below_it(room: str) -> None:
    """Also in functions. None imports the modules that put the rooms together."""
    faces = {f"aerotape.{name.removesuffix('.py')}" for name in FACE}
    for folder, path in sources():
        if folder != room:
            continue
        for module in imports_of(path):
            other = folder_of(module)
            assert other in {None, "aerotape", room, *BELOW[room]}, f"{path}: {module}"
            assert not faces & {module, module.rpartition(".")[0]}, f"{path}: {module}"


def test_the_archive_knows_of_entities_what_admits_topics() -> None:
    """The library of entities runs in the processes of clients."""
    found = {
        (str(path.relative_to(PACKAGE)), module.rpartition(".")[0])
        for folder, path in sources()
        if folder == "archive"
        for module in imports_of(path)
        if folder_of(module) == "entity"
    }
    assert found == {("archive/features/entity.py", "aerotape.entity.partition")}


def test_the_archive_imports_no_feature() -> None:
    """Only `features/built_in.py` names the features, and what composes the archive uses that."""
    root = PACKAGE / "archive"
    found = {
        (str(path.relative_to(root)), name)
        for path in root.rglob("*.py")
        for name in ("features.built_in", *FEATURES)
        if path.relative_to(root).parts[0] != "features"
        and f"aerotape.archive.{name}" in path.read_text()
    }
    assert found == {("archive.py", "features.built_in")}


WEB_SERVICE = """
import sys

import aerotape.tools.retain
import aerotape.tools._web.service
from aerotape.archive.features.built_in import FEATURES

print(*sys.modules)
"""


def test_the_features_are_known_without_the_archive_that_runs_them() -> None:
    """`aerotape web` and `aerotape retain` ask them, and load nothing of what runs it."""
    command = [sys.executable, "-c", WEB_SERVICE]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "aerotape.archive.features.ledger.feature" in loaded
    assert not {
        "aerotape.archive.archive",
        "aerotape.archive.composition",
        "aerotape.archive.conductor",
        "aerotape.archive.control.control_session_adapter",
    } & {*loaded}


def test_the_archive_names_no_ledgers() -> None:
    """Requests, roles, capabilities and properties come from the features."""
    root = PACKAGE / "archive"
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if path.relative_to(root).parts[0] != "features" and "ledger" in path.read_text().lower()
    }
    assert found == set()


ALL_MODULES = """
import importlib, pkgutil, sys
from collections import Counter
from pathlib import Path

import aerotape

for module in pkgutil.walk_packages(aerotape.__path__, "aerotape."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
package = Path(aerotape.__path__[0])
folders = {each.resolve() for each in (package, *package.iterdir())}
files = Counter(
    Path(path).resolve()
    for module in list(sys.modules.values())
    if (path := getattr(module, "__file__", None))
)
print([str(path) for path, count in files.items() if count > 1 and folders & {*path.parents}])
"""


def test_no_file_is_loaded_under_two_names() -> None:
    """The folders are imported only through `aerotape`, although they are siblings of it."""
    command = [sys.executable, "-c", ALL_MODULES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
