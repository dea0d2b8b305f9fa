"""Errors name files, and do not say in which directory of the machine they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.builders import built_archive
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import CommandLine
from support.web import WebService

from aerotape.tools._web.error_text import without_directories

API = "/api/v1"
PATHS = (
    "/readyz",
    "/metrics",
    *(f"{API}/{path}" for path in ("recordings", "recordings/0", "recordings/7", "entities")),
    *(
        f"{API}/recordings/0/{path}"
        for path in (
            *("messages", "messages?last=5", "search?text=x", "export?as=csv", "export?as=parquet"),
            *("segments", "statistics", "rates", "removal?action=delete", "damage"),
        )
    ),
    f"{API}/retention",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An archive directory with a recording of one message."""
    builder = SegmentBuilder()
    builder.message(b"message")
    found = tmp_path / "archive"
    found.mkdir()
    built_archive.add_recording(found, builder)
    return found


def texts(cli: CommandLine, folder: Path) -> str:
    """Return what the service has to say of a directory."""
    policy = folder.parent / "policy.toml"
    policy.write_text("[[rule]]\nmax_recordings = 1\n")
    with WebService(cli, folder, "--retention", policy) as web:
        return "\n".join(web.get(path).body.decode(errors="replace") for path in PATHS)


def test_a_damaged_segment(own: CommandLine, folder: Path) -> None:
    segment = folder / "0-0.rec"
    segment.write_bytes(b"\xff" * 8 + segment.read_bytes()[8:])
    found = texts(own, folder)
    assert "0-0.rec" in found and str(folder) not in found


def test_a_segment_that_is_a_directory(own: CommandLine, folder: Path) -> None:
    (folder / "0-0.rec").unlink()
    (folder / "0-0.rec").mkdir()
    found = texts(own, folder)
    assert "0-0.rec" in found and str(folder) not in found


def test_a_damaged_catalog(own: CommandLine, folder: Path) -> None:
    (folder / "archive.catalog").write_bytes(b"\xff" * 100)
    found = texts(own, folder)
    assert "archive.catalog" in found and str(folder) not in found


def test_no_directory(own: CommandLine, folder: Path) -> None:
    with WebService(own, folder) as web:
        folder.rename(folder.parent / "other")
        found = "\n".join(web.get(path).body.decode(errors="replace") for path in PATHS)
    assert str(folder) not in found


def test_a_media_driver_that_is_not_there(own: CommandLine, folder: Path) -> None:
    """Errors of what needs the archive: ledgers and changes; also of directories with a space."""
    aeron_dir = folder.parent / "my driver"
    paths = ["/ledgers", "/readyz", f"{API}/ledger/list", f"{API}/ledger/read?ledger_id=7"]
    options = ("--aeron-dir", aeron_dir, "--allow-changes")
    with WebService(own, folder, *options) as web:
        found = [web.get(path) for path in paths]
        found.append(web.get(f"{API}/recordings/0/stop", "POST"))
    for each in found:
        assert each.status == 503
        assert "my driver" in each.text
    assert not any(str(folder.parent) in each.text.replace(str(folder), "") for each in found)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no media driver in /dev/shm/aeron-a: start", "no media driver in aeron-a: start"),
        ("cannot read '/a/b.c/d-0.rec' (/x)", "cannot read 'd-0.rec' (x)"),
        ("aeron.dir=/dev/shm/x, /y/z/", "aeron.dir=x, z/"),
        ("at http://localhost:80/a/b?c=d", "at http://localhost:80/a/b?c=d"),
        ("s3://bucket/a/b and/or 1/2, text/html", "s3://bucket/a/b and/or 1/2, text/html"),
        ("aeron:udp?endpoint=a:1|x=y / 3", "aeron:udp?endpoint=a:1|x=y / 3"),
    ],
)
def test_paths_in_a_text(text: str, shown: str) -> None:
    assert without_directories(text) == shown


def test_directories_with_spaces_in_a_text() -> None:
    """They are known; what else a mark file names is ignored."""
    assert without_directories("in /my a/b c: no", ["/my a/b c", "/", "x", ""]) == "in b c: no"
