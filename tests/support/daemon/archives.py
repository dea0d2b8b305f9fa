"""Archives to test a client against, with one interface: Aeron's Java archive and ours."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

import aerotape
from support.daemon.daemon import AerotapeArchive
from support.jvm.java import JavaArchive, archive_tool
from support.processes import FAST_ARCHIVE, FAST_DRIVER, ArchiveProcess, HarnessError, free_port

Kind = Literal["aerotape", "java"]
ARCHIVES: Mapping[str, type[ArchiveProcess]] = {"aerotape": AerotapeArchive, "java": JavaArchive}
# Parameters of tests and fixtures.
KINDS = ("aerotape", pytest.param("java", marks=pytest.mark.jvm))
# The C driver has other names for idle strategies; its default is used.
EMBEDDED_DRIVER = {
    name: value for name, value in FAST_DRIVER.items() if not name.endswith("idle.strategy")
}


def start_after_crash(archive: ArchiveProcess) -> ArchiveProcess:
    """Start an archive that was not stopped: its process was killed or the power failed.

    The Java archive refuses a last frame that crosses a page boundary, as it may be torn, and asks
    for ArchiveTool, which is then used.
    """
    try:
        return archive.start()
    except HarnessError as error:
        # What it asks for is in the next line of its output, which may come later.
        if "straddling page boundary" not in str(error):
            raise
    archive_tool(archive.archive_dir, "verify", "-a", answers="y\n")
    return archive.start()


@dataclass(frozen=True)
class ServedArchive:
    """A running archive with an embedded driver, for the tests of one module or one test."""

    kind: Kind
    aeron_dir: Path
    archive_dir: Path
    control_channel: str

    def connect(self, **options: object) -> aerotape.ArchiveClient:
        """Connect, over UDP by default."""
        given: dict[str, object] = {
            "aeron_dir": self.aeron_dir,
            "control_request_channel": self.control_channel,
            **options,
        }
        return aerotape.connect(**given)  # type: ignore[arg-type]


@contextmanager
def serve(kind: Kind, properties: Mapping[str, str] | None = None) -> Iterator[ServedArchive]:
    """Run an archive with small terms and segments; its directories are deleted with it."""
    folder = Path(tempfile.mkdtemp(prefix="aerotape-served-", dir="/dev/shm"))
    try:
        with _running(kind, folder, properties or {}) as served:
            yield served
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(kind: Kind, folder: Path, properties: Mapping[str, str]) -> Iterator[ServedArchive]:
    archive_dir, aeron_dir = folder / "archive", folder / "aeron"
    if kind == "java":
        with JavaArchive(archive_dir, aeron_dir, properties=properties) as archive:
            yield ServedArchive(kind, aeron_dir, archive_dir, archive.control_channel)
        return
    control_channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    own_properties = {
        **EMBEDDED_DRIVER,
        **FAST_ARCHIVE,
        "aeron.archive.control.channel": control_channel,
        **properties,
    }
    with aerotape.Archive.launch(
        dir=archive_dir, aeron_dir=aeron_dir, driver="embedded", properties=own_properties
    ):
        yield ServedArchive(kind, aeron_dir, archive_dir, control_channel)
