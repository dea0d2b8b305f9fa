"""Check what is released: one version in the package, the tag, the changelog and the file names.

usage: release.py DIST, in the checkout; DIST has the sdist and the wheels
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ARCHITECTURES = ("x86_64", "aarch64")


def problems(checkout: Path, dist: Path) -> list[str]:
    """Return what prevents a release of the checked-out commit, a sentence each."""
    source = (checkout / "aerotape/__init__.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"$', source, re.MULTILINE)
    if found is None:
        return ["aerotape/__init__.py has no line __version__ = …"]
    version = found[1]
    wanted = {f"aerotape-{version}.tar.gz"}
    for architecture in ARCHITECTURES:
        wanted.add(f"aerotape-{version}-cp311-abi3-manylinux_2_28_{architecture}.whl")
    built = {path.name for path in dist.iterdir()} if dist.is_dir() else set()
    reasons = [f"{name} is missing in {dist}: make release" for name in sorted(wanted - built)]
    reasons += [f"{name} in {dist} is not of this release" for name in sorted(built - wanted)]
    changelog = (checkout / "CHANGELOG.md").read_text()
    section = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    if not re.search(section, changelog, re.MULTILINE):
        reasons.append(f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`")
    if f"v{version}" not in _git(checkout, "tag", "--points-at", "HEAD").split():
        reasons.append(f"this commit has no tag v{version}: git tag -a v{version}")
    if _git(checkout, "status", "--porcelain", "--untracked-files=no"):
        reasons.append("the checkout has changes that are not committed")
    return reasons


def _git(checkout: Path, *arguments: str) -> str:
    command = ["git", "-C", str(checkout), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    found = problems(Path.cwd(), Path(sys.argv[1]))
    for problem in found:
        print(f"release: {problem}", file=sys.stderr)
    sys.exit(1 if found else 0)
