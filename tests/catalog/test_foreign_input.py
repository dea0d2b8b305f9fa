"""Invalid content of an archive directory: each is a clear error or outcome, without a
traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.mark_files import acquire
from support.builders.old_directory import build_old, version
from support.builders.segment_builder import SegmentBuilder
from support.damage.overwriting import overwrite

from aerotape.catalog import layout
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.mark.layout import FILE_NAME, LINK_FILE_NAME
from aerotape.catalog.mark.mark_file import MarkFile
from aerotape.catalog.recovery import quarantine, suspect_marks
from aerotape.catalog.recovery.refresh import Outcome, RecordingOutcome, refresh
from aerotape.errors import AerotapeError, ArchiveInUseError, MarkFileError
from aerotape.replay.offline.directory import open_directory
from aerotape.tools._cli.main import main

ROOT = Path(__file__).resolve().parents[2]
CATALOG = layout.CATALOG_FILE_NAME


def refresh_all(directory: Path) -> list[RecordingOutcome]:
    with Catalog.open(directory) as catalog:
        return refresh(catalog, directory, now_ms=1_700_000_000_000)


# ---- the commands --------------------------------------------------------------------------------

BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "catalog is a pipe": (lambda d: os.mkfifo(d / CATALOG), "not a regular file"),
    "catalog is a stump": (lambda d: (d / CATALOG).write_bytes(b"\0\1\3"), "3 bytes long"),
    "catalog is a text": (lambda d: (d / CATALOG).write_text("x" * 900), "of version"),
    "catalog of holes": (
        lambda d: make_sparse(d / CATALOG, 1 << 31),
        "more than the 2147483647 that a catalog can have",
    ),
}
BROKEN_MARK: dict[str, tuple[Callable[[Path], object], str]] = {
    "mark file is a pipe": (lambda d: os.mkfifo(d / FILE_NAME), "not a regular file"),
    "mark file is a stump": (lambda d: (d / FILE_NAME).write_bytes(b"\7" * 100), "not the mark"),
    "mark file is a text": (lambda d: (d / FILE_NAME).write_text("x" * 9000), "not the mark"),
    "link file is long": (
        lambda d: (d / LINK_FILE_NAME).write_bytes(b"/" + b"x" * (33 << 20)),
        "File name too long",
    ),
}


def mark_version(version: int, directory: Path) -> None:
    acquire(directory).close()
    overwrite(directory / FILE_NAME, 8, version.to_bytes(4, "little", signed=True))


NEWER_MARK: dict[str, tuple[Callable[[Path], object], str]] = {
    f"mark file of version {version:x}": (partial(mark_version, version), FILE_NAME)
    for version in (2 << 16, 4 << 16)
}


def make_sparse(path: Path, length: int) -> None:
    with path.open("ab") as file:
        file.truncate(length)


def check_one_line(text: str, expected: str) -> None:
    assert len(text.splitlines()) == 1, text
    assert expected in text


MEMORY_OF = r"""
import re, sys
from aerotape.tools._cli.main import main
code = main(["tool", sys.argv[1], *sys.argv[2:]])
# Not ru_maxrss: that of the process which was forked counts in it.
peak_kib = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
print(code, peak_kib * 1024, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("spoil", "expected"),
    list((BROKEN | BROKEN_MARK | NEWER_MARK).values()),
    ids=list(BROKEN | BROKEN_MARK | NEWER_MARK),
)
def test_the_archive_refuses_to_start_with_one_line(
    tmp_path: Path, aeron_dir: Path, spoil: Callable[[Path], object], expected: str
) -> None:
    """Exit code 1, one line on standard error that names the file, and nothing is changed."""
    directory = tmp_path / "archive"
    directory.mkdir()
    spoil(directory)
    before = {p.name: p.stat().st_size for p in directory.iterdir()}
    check_one_line(refused_start(directory, aeron_dir), expected)
    after = {p.name: p.stat().st_size for p in directory.iterdir()}
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("name", [FILE_NAME, CATALOG])
def test_a_start_creates_no_file_through_a_link(tmp_path: Path, aeron_dir: Path, name: str) -> None:
    """A link without a target is refused, with its name."""
    directory = tmp_path / "archive"
    directory.mkdir()
    (directory / name).symlink_to("../outside")
    expected = f"{name} is a symbolic link, not a regular file"
    check_one_line(refused_start(directory, aeron_dir), expected)
    assert not (tmp_path / "outside").exists()


def refused_start(directory: Path, aeron_dir: Path) -> str:
    """Run an archive that must refuse to start; return its standard error."""
    command = [sys.executable, "-m", "aerotape", "archive", f"--dir={directory}"]
    command += [f"--aeron-dir={aeron_dir}", "-Daeron.archive.control.channel.enabled=false"]
    refused = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert (refused.returncode, refused.stdout) == (1, "")
    return refused.stderr


@pytest.mark.parametrize("command", ["describe", "verify"])
@pytest.mark.parametrize(("spoil", "expected"), list(BROKEN.values()), ids=list(BROKEN))
def test_the_tool_reports_it_in_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    spoil: Callable[[Path], object],
    expected: str,
) -> None:
    """Exit code 1 and one line on standard error, whatever the catalog is."""
    spoil(tmp_path)
    assert main(["tool", str(tmp_path), command]) == 1
    check_one_line(capsys.readouterr().err, expected)


@pytest.mark.parametrize("command", ["describe-all", "count-entries", "migrate --dry-run"])
def test_a_catalog_of_holes_takes_no_memory(tmp_path: Path, command: str) -> None:
    """A catalog of the maximum length is read with memory of less than a tenth of that."""
    if command.startswith("migrate"):
        build_old(tmp_path / "archive", version(2))
    else:
        (tmp_path / "archive").mkdir()
        add_recording(tmp_path / "archive", fill(SegmentBuilder(), 3))
    make_sparse(tmp_path / "archive" / CATALOG, layout.MAX_CAPACITY_BYTES)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY_OF, str(tmp_path / "archive"), *command.split()],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
        timeout=120,
    )
    code, used = map(int, done.stderr.splitlines()[-1].split())
    assert (code, used < layout.MAX_CAPACITY_BYTES // 10) == (0, True), done.stderr


def test_a_mark_of_holes(tmp_path: Path) -> None:
    """It is not read, and the recording counts as marked."""
    make_sparse(tmp_path / suspect_marks.mark_file_name(3), 1 << 40)
    ((recording_id, [note]),) = suspect_marks.read_marks(tmp_path).items()
    assert (recording_id, note.outcome) == (3, "unreadable mark")


@pytest.mark.parametrize("command", ["pid", "errors"])
@pytest.mark.parametrize(("spoil", "expected"), list(BROKEN_MARK.values()), ids=list(BROKEN_MARK))
def test_the_tool_and_a_broken_mark_file(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    spoil: Callable[[Path], object],
    expected: str,
) -> None:
    """The same for commands that only read the mark file; describe works without it."""
    with Catalog.open(tmp_path, create=True):
        pass
    spoil(tmp_path)
    assert main(["tool", str(tmp_path), command]) == 1
    check_one_line(capsys.readouterr().err, expected)
    assert main(["tool", str(tmp_path), "describe"]) == 0


# ---- segment files -------------------------------------------------------------------------------


def as_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def as_dangling_link(path: Path) -> None:
    path.rename(path.with_suffix(".elsewhere"))
    path.symlink_to(path.with_suffix(".nowhere"))


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("spoil", [as_directory, as_dangling_link])
def test_a_segment_that_is_not_a_regular_file(
    tmp_path: Path, spoil: Callable[[Path], None], live: bool
) -> None:
    """The recording is reported as unreadable, at a start and by verify; the next one is
    unchanged."""
    add_recording(tmp_path, fill(SegmentBuilder(), 3), live=live)
    stream = fill(SegmentBuilder(), 3)
    add_recording(tmp_path, stream, live=True)
    spoil(tmp_path / "0-0.rec")
    spoiled, sound = refresh_all(tmp_path)
    assert (spoiled.outcome, spoiled.suspect) == (Outcome.UNREADABLE, True)
    assert "0-0.rec" in str(spoiled)
    assert (sound.outcome, sound.stop_position) == (Outcome.REPAIRED, stream.position)
    with Catalog.open(tmp_path, read_only=True) as catalog:
        assert (catalog.stop_position(0) == -1) is live
    assert main(["tool", str(tmp_path), "verify"]) == 3
    assert main(["tool", str(tmp_path), "verify", "1"]) == 0


def test_a_linked_segment_is_read_and_not_written_to(tmp_path: Path) -> None:
    """Its end is found; data after the end stays, and is not copied into the directory."""
    (tmp_path / "archive").mkdir()
    stream = fill(SegmentBuilder(), 3)
    add_recording(tmp_path / "archive", stream, live=True)
    link, target = tmp_path / "archive" / "0-0.rec", tmp_path / "0-0.rec"
    link.rename(target)
    link.symlink_to(target)
    overwrite(target, stream.position, b"\xff" * 40)
    before = target.read_bytes()
    (outcome,) = refresh_all(tmp_path / "archive")
    assert (outcome.outcome, outcome.stop_position) == (Outcome.SUSPECT_TORN_TAIL, stream.position)
    assert "0-0.rec is a symbolic link" in str(outcome)
    assert link.is_symlink()
    assert target.read_bytes() == before
    assert not list(link.parent.glob("aerotape-quarantine/*/*.rec*"))


@pytest.mark.parametrize("base", [(1 << 47) - 131_072, 1 << 47, (1 << 63) - 131_072])
def test_a_segment_at_the_maximum_position(tmp_path: Path, base: int) -> None:
    """A file at the maximum position, or beyond it, does not prevent the start."""
    stream = fill(SegmentBuilder(), 3)
    add_recording(tmp_path, stream, live=True)
    (tmp_path / f"0-{base}.rec").write_bytes(b"\x01" * 131_072)
    (outcome,) = refresh_all(tmp_path)
    assert outcome.findings
    if base >= 1 << 47:
        assert (outcome.outcome, outcome.stop_position) == (Outcome.FOREIGN_FILE, stream.position)
    else:
        assert outcome.outcome in (Outcome.MISSING_SEGMENTS, Outcome.SUSPECT_TORN_TAIL)


# ---- quarantine and marks ------------------------------------------------------------------------


def torn(directory: Path, data: bytes) -> SegmentBuilder:
    stream = fill(SegmentBuilder(), 3)
    if not (directory / CATALOG).exists():
        add_recording(directory, stream, live=True)
    with Catalog.open(directory) as catalog:
        catalog.set_stop_position(0, -1)
    overwrite(directory / "0-0.rec", stream.position, data)
    return stream


def test_bytes_in_quarantine_are_never_replaced(tmp_path: Path) -> None:
    """Two repairs at the same position and the same time retain both tails."""
    for data in (b"\xffone", b"\xfftwo"):
        torn(tmp_path, data)
        refresh_all(tmp_path)
    retained = sorted(path.read_bytes() for path in tmp_path.glob("aerotape-quarantine/*/*.rec*"))
    assert retained == [b"\xffone", b"\xfftwo"]
    there = next(tmp_path.glob("aerotape-quarantine/*/*.rec*"))
    before = there.read_bytes()
    with pytest.raises(AerotapeError, match="exists"):
        quarantine.copy_tail(tmp_path / "0-0.rec", 0, 10, there)
    with pytest.raises(AerotapeError, match="exists"):
        quarantine.move_segment(tmp_path / "0-0.rec", there)
    assert there.read_bytes() == before


def test_a_truncated_copy_is_not_accepted(tmp_path: Path) -> None:
    """A tail that cannot be read completely does not count as saved."""
    source = tmp_path / "source"
    source.write_bytes(b"x" * 100)
    with pytest.raises(AerotapeError, match="28 bytes early"):
        quarantine.copy_tail(source, 0, 128, tmp_path / "copy")


def test_the_mark_is_written_before_bytes_are_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that is killed between copying and erasing leaves the recording marked."""

    class KilledError(BaseException):
        pass

    def killed(*_: object) -> None:
        raise KilledError

    stream = torn(tmp_path, b"\xff" * 50)
    with monkeypatch.context() as patch:
        patch.setattr(quarantine, "erase_tail", killed)
        with pytest.raises(KilledError):
            refresh_all(tmp_path)
    (note,) = suspect_marks.read_marks(tmp_path)[0]
    assert (tmp_path / note.quarantine).read_bytes() == b"\xff" * 50
    (outcome,) = refresh_all(tmp_path)
    assert (outcome.stop_position, outcome.marked) == (stream.position, True)


@pytest.mark.parametrize("kind", ["directory", "nested"])
def test_an_invalid_mark(tmp_path: Path, kind: str) -> None:
    """Anything with the name of a mark marks the recording, and does not prevent a start."""
    torn(tmp_path, b"\xff" * 50)
    path = tmp_path / suspect_marks.mark_file_name(0)
    if kind == "directory":
        path.mkdir()
    else:
        path.write_text("[" * 100_000)
    (outcome,) = refresh_all(tmp_path)
    assert outcome.suspect
    assert open_directory(tmp_path).recording(0).suspect_notes


# ---- mark files ----------------------------------------------------------------------------------


def test_a_mark_file_in_another_directory_is_checked(tmp_path: Path) -> None:
    """Two archives with different mark file directories cannot use the same recordings."""
    archive, marks = tmp_path / "archive", tmp_path / "marks-ä"
    archive.mkdir()
    marks.mkdir()
    with acquire(archive, mark_file_dir=marks):
        assert MarkFile.read(archive).header.archive_id == 42
        with pytest.raises(ArchiveInUseError):
            acquire(archive)
        assert not (archive / FILE_NAME).exists()
    with acquire(archive):
        with pytest.raises(ArchiveInUseError):
            acquire(archive, mark_file_dir=marks)
        assert not (archive / LINK_FILE_NAME).exists()
    with acquire(archive, mark_file_dir=marks):
        pass


@pytest.mark.parametrize("content", [b"", b"nowhere", b"/a\0b", b"/\xff"])
def test_an_invalid_link_file(tmp_path: Path, content: bytes) -> None:
    """A damaged link file causes a read error at most, and does not prevent a start."""
    (tmp_path / LINK_FILE_NAME).write_bytes(content)
    with pytest.raises(MarkFileError, match=r"(no|cannot read) mark file"):
        MarkFile.read(tmp_path)
    with acquire(tmp_path):
        assert MarkFile.read(tmp_path).is_active()


def test_errors_that_are_not_valid_text(tmp_path: Path) -> None:
    """File names with arbitrary bytes can be in the error log, and the next start saves them."""
    with acquire(tmp_path) as mark_file:
        assert mark_file.record_error("cannot read a-" + os.fsdecode(b"\xff"), 5)
    acquire(tmp_path).close()
    [saved] = tmp_path.glob("archive-*-error.log")
    assert "cannot read a-" in saved.read_text("utf-8")
