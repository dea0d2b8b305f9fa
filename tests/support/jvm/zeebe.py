"""The journals of Zeebe's releases, in a Java process that writes and reads them on request."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aerotape.context import Closing
from support.jvm.java import JAVA_OPENS, compile_sources
from support.processes import ROOT, ChildProcess, HarnessError

# Release by the format that it writes.
RELEASES = {"1.0": "1.0.0", "8.2": "8.2.15", "8.3": "8.3.4"}
NAME = "raft-partition-partition-1"
_SOURCES = Path(__file__).parent / "raft"
_OPTIONS = (*JAVA_OPENS, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_TIMEOUT_S = 120.0

Command = Sequence[str | int]


class ZeebeError(Exception):
    """An exception of Zeebe's classes: its simple name and its message."""


@dataclass(frozen=True)
class ZeebeRecord:
    """A record as Zeebe's reader returns it.

    Attributes:
        data: the serialized raft entry.
        entry: type, and what entries of it have: lowest and highest position and data in
            hexadecimal, or timestamp, members and old members.
    """

    index: int
    asqn: int
    checksum: int
    data: bytes
    term: int
    entry: tuple[str, ...]


class ZeebeJournals(Closing):
    """A running `RaftJournals` of a release; it ends with `close` and when our stdin ends.

    Attributes:
        format: of the journals that it writes.
    """

    def __init__(self, journal_format: str, options: Sequence[str] = _OPTIONS) -> None:
        self.format = journal_format
        self._process = ChildProcess(java_command(journal_format, options))

    def close(self) -> None:
        """End the process."""
        self._process.stop()

    def run(self, *commands: Command) -> list[str]:
        """Run commands of the program; return the lines of all responses (ZeebeError)."""
        lines = []
        for command in commands:
            self._process.send("\t".join(map(str, command)))
            while (line := self._process.receive(_TIMEOUT_S)) != ".":
                if line.startswith("!"):
                    raise ZeebeError(line[1:])
                lines.append(line)
        return lines

    def write(self, folder: Path, segment_size: int, commands: Iterable[Command]) -> None:
        """Write a journal with commands that append and delete."""
        folder.mkdir(parents=True, exist_ok=True)
        self.run(("open", str(folder), segment_size), *commands, ("close",))

    def read(
        self, folder: Path, segment_size: int, flushed_index: int = 0
    ) -> tuple[list[ZeebeRecord], str]:
        """Read a journal, which may change its files: give it a copy.

        Returns:
            The records, and the exception after them, or "".
        """
        self._process.send("\t".join(["read", str(folder), str(segment_size), str(flushed_index)]))
        records: list[ZeebeRecord] = []
        while (line := self._process.receive(_TIMEOUT_S)) != ".":
            if line.startswith("!"):
                return records, line[1:]
            index, asqn, checksum, data, term, *entry = line.split("\t")
            records.append(
                ZeebeRecord(
                    int(index),
                    int(asqn),
                    int(checksum),
                    bytes.fromhex(data),
                    int(term),
                    tuple(entry),
                )
            )
        return records, ""

    def seek(self, folder: Path, segment_size: int, asqns: Sequence[int]) -> list[int]:
        """Return for each asqn the index at which a reader is after seeking it; as for `read`."""
        text = ",".join(map(str, asqns))
        return [int(line) for line in self.run(("seek", str(folder), segment_size, text))]


def java_command(journal_format: str, options: Sequence[str]) -> list[str]:
    """Return the command that runs the program with the classes of a release."""
    release = RELEASES[journal_format]
    jars = sorted((ROOT / ".make" / "jars" / f"zeebe-{release}").glob("*.jar"))
    if not jars:
        raise HarnessError(f"the jars of Zeebe {release} are missing: run `make jars`")
    class_path = os.pathsep.join(map(str, jars))
    api = "v1" if journal_format == "1.0" else "v8"
    sources = [_SOURCES / "RaftJournals.java", _SOURCES / api / "Release.java"]
    classes = compile_sources(sources, class_path)
    return ["java", *options, "-cp", f"{classes}{os.pathsep}{class_path}", "RaftJournals"]
