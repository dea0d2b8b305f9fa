"""Journals that are damaged in each way that concerns more than a record's bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aerotape.codecs.raft_journal.writer import JournalWriter
from support.journals import raft_bytes as built

SEGMENT_SIZE = 1024
COUNT = 40


def write(folder: Path, name: str) -> list[Path]:
    """Write a journal of several segments, whose records are flushed; return their paths."""
    version = built.VERSIONS[name]
    with JournalWriter(folder, format=name, segment_size=SEGMENT_SIZE) as journal:
        for each in range(1, COUNT + 1):
            entry = built.application(each, each, b"x" * (each % 7), version=version)
            journal.append(entry, each)
    (folder / f"{built.NAME}.meta").write_bytes(built.meta(COUNT))
    found = list(folder.glob("*.log"))
    assert len(found) > 3
    return sorted(found, key=lambda path: int(path.stem.rpartition("-")[2]))


def _change(path: Path, at: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)


def _zeros(path: Path, begin: int) -> None:
    _change(path, begin, bytes(path.stat().st_size - begin))


def _cut(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])


def _clear_head(path: Path) -> None:
    _change(path, 0, bytes(100))
    _change(path, SEGMENT_SIZE - 9, b"something")


def _meta(paths: list[Path]) -> Path:
    return paths[0].with_name(f"{built.NAME}.meta")


DAMAGES: dict[str, Callable[[list[Path]], object]] = {
    "version of the first descriptor": lambda paths: _change(paths[0], 0, b"\x09"),
    "header of the first descriptor": lambda paths: _change(paths[0], 3, b"\x77\x77"),
    "version of a descriptor": lambda paths: _change(paths[1], 0, b"\x09"),
    "header of the last descriptor": lambda paths: _change(paths[-1], 3, b"\x77\x77"),
    "a descriptor of zeros": lambda paths: _zeros(paths[1], 0),
    "the head of the last file of zeros": lambda paths: _clear_head(paths[-1]),
    "zeros after byte 20": lambda paths: _zeros(paths[1], 20),
    "zeros after byte 20 of the last": lambda paths: _zeros(paths[-1], 20),
    "zeros after byte 20 of the first": lambda paths: _zeros(paths[0], 20),
    "a file cut at byte 20": lambda paths: _cut(paths[1], 20),
    "the last file cut at byte 20": lambda paths: _cut(paths[-1], 20),
    "the first file cut at byte 20": lambda paths: _cut(paths[0], 20),
    "the last file empty": lambda paths: _cut(paths[-1], 0),
    "a segment missing": lambda paths: paths[1].unlink(),
    "the last segment missing": lambda paths: paths[-1].unlink(),
    "the last segment renamed": lambda paths: paths[-1].rename(
        paths[-1].with_name(f"{built.NAME}-77.log")
    ),
    "a segment twice": lambda paths: (
        paths[-1].with_name(f"{built.NAME}-77.log").write_bytes(paths[0].read_bytes())
    ),
    "a file that is too long": lambda paths: paths[-1].write_bytes(
        paths[-1].read_bytes() + bytes(SEGMENT_SIZE)
    ),
    "a record": lambda paths: _change(paths[1], 100, b"\x77\x77\x77\x77"),
    "the end of the last records": lambda paths: _zeros(paths[-1], 57),
    "metadata": lambda paths: _change(_meta(paths), 0, b"\x09"),
    "records that were flushed": lambda paths: _meta(paths).write_bytes(built.meta(COUNT + 1)),
}
"""Each changes the files of `write`, in any format, so that the journal is damaged."""


def with_last_index(paths: list[Path]) -> None:
    """As a truncation that ended records before it changed the descriptor left them (8.3)."""
    content = paths[1].read_bytes()
    index = int.from_bytes(content[33:41], "little")
    head = built.descriptor("8.3", 2, index, SEGMENT_SIZE, 99, 900)
    paths[1].write_bytes(head + content[len(head) :])
