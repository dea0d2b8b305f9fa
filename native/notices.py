"""Write NOTICES.txt: the licences of what a wheel contains besides this project's own code.

These are the crates that are linked into the extension, Aeron's C sources, which the crates
rusteron-* contain, and the script of the web pages' charts. Run it after a change of Cargo.lock:

    python native/notices.py

Where a crate leaves the choice, it is Apache-2.0, the licence of this project.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

NATIVE: Final = Path(__file__).resolve().parent
NOTICES: Final = NATIVE.parent / "NOTICES.txt"
_UPLOT: Final = NATIVE.parent / "tools/_web/pages/static/uPlot.LICENSE"
# {p} has the path of a crate of this workspace.
_TREE: Final = ("cargo", "tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none")
_RULE: Final = "-" * 80


class Crate(NamedTuple):
    """A crate that is linked into the extension."""

    name: str
    version: str
    licence: str
    repository: str

    @property
    def folder(self) -> Path:
        """Its sources, which Cargo has downloaded."""
        registry = Path.home() / ".cargo/registry/src"
        return next(registry.glob(f"*/{self.name}-{self.version}"))


def crates() -> list[Crate]:
    """Return the crates of the extension, by name."""
    command = [*_TREE, "--format", "{p}|{l}|{r}"]
    shown = subprocess.run(command, cwd=NATIVE, check=True, capture_output=True, text=True).stdout
    found = set()
    for line in shown.splitlines():
        package, licence, repository = line.removesuffix(" (*)").split("|")
        name, version, *path = package.split(" ", 2)
        if not path:
            found.add(Crate(name, version.removeprefix("v"), licence, repository))
    return sorted(found)


def _texts(crate: Crate) -> Iterator[str]:
    """Yield the licences and notices that go with copies of a crate, without Apache-2.0's text."""
    is_apache = "Apache-2.0" in crate.licence and " AND " not in crate.licence
    for path in sorted(crate.folder.iterdir()):
        is_licence = re.match(r"(?i)(licen[cs]e|copying|unlicense)", path.name)
        is_notice = path.name.upper().startswith("NOTICE")
        if path.is_file() and (is_notice or (is_licence and not is_apache)):
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            if not text.startswith("Apache License"):
                yield text


def notices() -> str:
    """Return the text of the file."""
    parts = [
        "aerotape is under the Apache License 2.0 (LICENSE). Its wheels contain the following, each"
        "\nunder the licence named with it; where that is Apache-2.0, LICENSE has its text.",
        f"{_RULE}\nAeron, https://github.com/aeron-io/aeron: Apache-2.0\n"
        "The sources of its C client and media driver are in the crates rusteron-*.",
        f"{_RULE}\nRust's standard library, https://github.com/rust-lang/rust: MIT OR Apache-2.0",
        f"{_RULE}\nuPlot, https://github.com/leeoniya/uPlot: MIT\n\n{_UPLOT.read_text().strip()}",
    ]
    for crate in crates():
        head = f"{_RULE}\n{crate.name} {crate.version}, {crate.repository}: {crate.licence}"
        parts.append("\n\n".join([head, *dict.fromkeys(_texts(crate))]))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    NOTICES.write_text(notices())
    print(NOTICES, file=sys.stderr)
