"""Settings compared with the Java archive's constants and its parser of properties files."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.jvm.java import java_command

from aerotape.archive.config.archive_config import ArchiveConfig
from aerotape.archive.config.properties_file import read_properties_file
from aerotape.archive.config.property import properties_of
from aerotape.archive.config.property_names import WITHOUT_EFFECT
from aerotape.errors import ConfigurationError

pytestmark = pytest.mark.jvm

PROPERTIES = properties_of(ArchiveConfig)

# Properties whose default here is not that of the constant of the same name, and why.
OTHER_DEFAULTS = {
    "aeron.archive.recording.events.channel": "the constant is not used; unset, as in the context",
}
# Properties for which the reference has no constant with the default, and the default in its code.
WITHOUT_CONSTANT: dict[str, Any] = {
    "aeron.archive.mark.file.dir": None,
    "aeron.archive.threading.mode": "DEDICATED",
    "aeron.archive.idle.strategy": ArchiveConfig().idle,
    "aeron.archive.recorder.idle.strategy": None,
    "aeron.archive.replayer.idle.strategy": None,
    "aeron.archive.dir.delete.on.start": False,
    "aeron.archive.authorisation.service.supplier": "",
    "aeron.archive.record.checksum": "none",
    "aeron.archive.replay.checksum": "none",
    "aeron.archive.id": -1,
    "aeron.archive.control.channel.enabled": True,
    "aeron.archive.control.response.channel": "",
    # Our archive refuses to start without it.
    "aeron.archive.control.channel": "aeron:udp?endpoint=localhost:8010",
    "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
}
# Since 1.54; the Java archive of the tests is older.
NEWER = {
    "aeron.archive.conductor.cpu.affinity",
    "aeron.archive.recorder.cpu.affinity",
    "aeron.archive.replayer.cpu.affinity",
}


def run_java(*args: object) -> list[Any]:
    """The JSON lines that harness.Settings prints."""
    done = subprocess.run(
        java_command("harness.Settings", *map(str, args)), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def constants() -> dict[str, Any]:
    """The constants of Archive.Configuration and AeronArchive.Configuration."""
    (found,) = run_java("constants")
    return dict(found)


def named(constants: dict[str, Any]) -> dict[str, str]:
    """The constants' stems by property name: ARCHIVE_DIR for aeron.archive.dir."""
    suffix = "_PROP_NAME"
    return {
        value: constant.removesuffix(suffix)
        for constant, value in constants.items()
        if constant.endswith(suffix)
    }


def test_every_property_of_the_reference_is_known(constants: dict[str, Any]) -> None:
    """Each has a field here or a reason why it has no effect; no other properties exist."""
    names = named(constants)
    assert len(names) >= 45
    assert set(names) - set(PROPERTIES) - set(WITHOUT_EFFECT) == set()
    ours = {name for name in PROPERTIES if name.startswith("aeron.archive.")}
    assert ours - set(names) == NEWER
    assert set(WITHOUT_EFFECT) - set(names) == set()
    assert all(WITHOUT_EFFECT.values())


def test_defaults_are_those_of_the_reference(constants: dict[str, Any]) -> None:
    """Defaults equal the reference's constants; exceptions are listed with the reason."""
    defaults = ArchiveConfig()
    checked = 0
    for name, stem in named(constants).items():
        if name in WITHOUT_EFFECT:
            continue
        ours = getattr(defaults, PROPERTIES[name].attribute)
        found = [
            constants[constant]
            for constant in (f"{stem}_DEFAULT", f"{stem}_DEFAULT_NS")
            if constant in constants
        ]
        if not found:
            assert name in WITHOUT_CONSTANT, f"{name}: how does the reference do without?"
            assert ours == WITHOUT_CONSTANT[name], name
        elif name in OTHER_DEFAULTS:
            assert ours != found[0], f"{name}: no longer an exception"
        else:
            assert (str(ours) if isinstance(ours, Path) else ours) == found[0], name
            checked += 1
    assert checked > 25
    assert set(WITHOUT_CONSTANT) <= set(named(constants))


FILES = {
    "separators": "a=1\nb:2\nc 3\nd = 4\ne : 5\nf\t6\ng = : 7\nh==8\ni\n\f j\f=\f9",
    "comments": "# one\n! two\n  # three \\\na=1 # not a comment\n\\# b=2\n",
    "continued": "a=1,\\\n   2,\\\r\n\t3\nb=\\\n\nc\\\n=4\nd=5\\\\\ne=6\\\\\\\n7\n\\\nf=8\ng=9\\",
    "continued comment": "a=1\\\n# 2\nb=3",
    "escaped names": "a\\ b=c\\ d\na\\:b=1\n\\=x=2",
    "escapes": "t=\\t\\n\\r\\f\\q\\\"\\'\nu=\\u0041\\u00e9\\uD83D\\uDE00",
    "line ends": "a=1\rb=2\r\nc=3\n\rd=4\x0b5\x1c6\x85e=7",
    "blanks": "   a   =   b c   \n\xa0x=1\n \n\t\n\f\n",
    "empty": "",
    "only escapes": "\\\\=\\\\\n\\u003d=\\u003D",
    "bad escape": "a=1\nb=\\u12x4",
    "short escape": "a=\\u12",
    "twice": "a=1\na=2",
    "bytes": "a=\xe9\xff\nb=caf\xe9",
    "no value": "a\nb=\nc:\n=d\n:\n",
}


def both(files: list[Path]) -> list[tuple[Any, Any]]:
    """Return the properties that we and Java read from files; None for an error.

    Without the property of no name: whether a backslash alone makes one depends, in Java, on
    whether a line feed or a carriage return and one is the last thing in the file.
    """
    java = [each.get("properties") for each in run_java("properties", *files)]
    ours: list[Any] = []
    for file in files:
        try:
            ours.append(read_properties_file(file))
        except ConfigurationError:
            ours.append(None)
    for each in (*ours, *java):
        if each is not None:
            each.pop("", None)
    return list(zip(ours, java, strict=True))


def test_properties_files_are_read_as_java_reads_them(tmp_path: Path) -> None:
    """Separators, continuations, escapes and their combinations are parsed alike."""
    files = []
    for name, text in FILES.items():
        files.append(tmp_path / name)
        files[-1].write_bytes(text.encode("latin-1"))
    results = both(files)
    assert sum(java is None for _, java in results) == 2
    for name, (ours, java) in zip(FILES, results, strict=True):
        assert ours == java, name


@pytest.mark.parametrize("seed", [7, 8])
def test_random_properties_files(tmp_path: Path, seed: int) -> None:
    """A few hundred random files of the syntax characters are parsed alike."""
    dice = random.Random(seed)
    files = []
    for number in range(300):
        files.append(tmp_path / str(number))
        alphabet = b"ab=: \t\f\\\\\\\n\n\r#!un0041"
        files[-1].write_bytes(bytes(dice.choices(alphabet, k=dice.randrange(60))))
    results = both(files)
    assert sum(java is None for _, java in results) < 150
    for file, (ours, java) in zip(files, results, strict=True):
        assert ours == java, file.read_bytes()
