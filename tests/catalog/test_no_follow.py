"""Nothing in an archive directory is written or deleted through a symbolic link."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.mark_files import acquire
from support.builders.old_directory import build_old, version
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import CATALOG_FILE_NAME, REWRITTEN_FILE_NAME
from aerotape.catalog.maintenance.migrate_version import migrate
from aerotape.catalog.mark.layout import FILE_NAME, LINK_FILE_NAME
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.recovery import quarantine, suspect_marks
from aerotape.catalog.recovery.stale_tail import StaleTail
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.catalog.recovery.trailing_segment import make_if_lacking
from aerotape.catalog.segment.hard_links import break_hard_link
from aerotape.catalog.segment_files import make_blank_segment
from aerotape.catalog.time_index.file import Provenance, write_time_index
from aerotape.errors import AerotapeError, StorageError
from aerotape.tools._cli.main import main

CONTENT = b"not an archive's" * 9000


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    directory = tmp_path / "archive"
    directory.mkdir()
    return directory


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file that no archive may change."""
    path = tmp_path / "outside"
    path.write_bytes(CONTENT)
    path.chmod(0o604)
    return path


def check_untouched(outside: Path) -> None:
    """The file is unchanged, and no other file is beside it."""
    assert outside.read_bytes() == CONTENT
    assert outside.stat().st_mode & 0o777 == 0o604
    assert sorted(path.name for path in outside.parent.iterdir()) == ["archive", "outside"]


# ---- opening -------------------------------------------------------------------------------------


def test_a_link_is_refused_and_reported(archive: Path, outside: Path) -> None:
    """With any flags, whatever its target is."""
    for target in (outside, outside.with_name("nowhere"), archive / "link"):
        link = archive / "link"
        link.symlink_to(target)
        for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
            with pytest.raises(
                OSError, match="link is a symbolic link, not a regular file"
            ) as raised:
                open_no_follow(link, flags)
            assert (raised.value.errno, raised.value.filename) == (errno.ELOOP, str(link))
        link.unlink()
    check_untouched(outside)


def test_other_errors_and_files_are_unaffected(archive: Path) -> None:
    """A new file is not readable by others."""
    with pytest.raises(FileNotFoundError):
        open_no_follow(archive / "file")
    with open(archive / "file", "xb", opener=open_no_follow) as file:
        file.write(b"data")
    assert (archive / "file").read_bytes() == b"data"
    assert (archive / "file").stat().st_mode & 0o027 == 0


# ---- writers -------------------------------------------------------------------------------------


def mark(archive: Path) -> None:
    suspect_marks.add_notes(archive, 0, [SuspectNote("torn", "detail", 0, 1)])


def rewrite_catalog(archive: Path) -> None:
    with Catalog.open(archive) as catalog:
        (archive / REWRITTEN_FILE_NAME).symlink_to("../outside")
        catalog.replace_channel(0, stripped_channel="x" * 900, original_channel="x" * 900)


def make_copy(archive: Path) -> None:
    os.link(archive / "0-0.rec", archive / "9-0.rec")
    break_hard_link(archive / "0-0.rec")


def as_os_error(call: Callable[[Path], object]) -> Callable[[Path], object]:
    def run(archive: Path) -> None:
        try:
            call(archive)
        except OSError as error:
            raise AerotapeError(f"{error.filename}: {error.strerror}") from error

    return run


WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "catalog": (CATALOG_FILE_NAME, lambda d: Catalog.open(d)),
    "catalog to be changed": (CATALOG_FILE_NAME, lambda d: Catalog.open(d, lazily=True)),
    "rewritten catalog": ("", rewrite_catalog),
    "mark file": (FILE_NAME, acquire),
    "link file": (f"{LINK_FILE_NAME}.tmp", lambda d: acquire(d, mark_file_dir=d / "quarantine")),
    "mark": ("aerotape-0.suspect.tmp", mark),
    "copied tail": ("0-0.rec", lambda d: quarantine.copy_tail(d / "0-0.rec", 0, 64, d / "copy")),
    "erased tail": ("0-0.rec", lambda d: quarantine.erase_tail(d / "0-0.rec", 64)),
    "copied segment": ("0-0.rec.del", make_copy),
    "blank segment": ("0-0.rec", as_os_error(lambda d: make_blank_segment(d / "0-0.rec", 1 << 16))),
    "time index": (
        "aerotape-0.time-index.tmp",
        lambda d: write_time_index(d / "aerotape-0.time-index", Provenance(0, 1, 0, 0, 0), []),
    ),
    "quarantine": (quarantine.FOLDER_NAME, lambda d: quarantine.make_folder(d, 0, 1)),
    "note": ("note.json.tmp", lambda d: quarantine.write_note(d, {})),
}


@pytest.mark.parametrize("target", ["../outside", "../nowhere"])
@pytest.mark.parametrize(("name", "write"), list(WRITERS.values()), ids=list(WRITERS))
def test_every_writer_refuses_a_link(
    archive: Path, outside: Path, name: str, write: Callable[[Path], object], target: str
) -> None:
    """The error names the link, and neither its target nor a file beside the target changes."""
    (archive / "quarantine").mkdir()
    add_recording(archive, fill(SegmentBuilder(), 3))
    if name:
        (archive / name).unlink(missing_ok=True)
        (archive / name).symlink_to(target)
    with pytest.raises(AerotapeError, match=rf"{name} is a symbolic link"):
        write(archive)
    check_untouched(outside)


def test_data_after_the_end_of_a_linked_segment_is_retained(archive: Path, outside: Path) -> None:
    """An extension is refused before a byte of it is copied."""
    (archive / "0-0.rec").symlink_to(outside)
    with pytest.raises(StorageError, match=r"0-0\.rec is a symbolic link"):
        StaleTail(archive, 0, 64, 1).clear_tail(archive / "0-0.rec", 0)
    assert [path.name for path in archive.iterdir()] == ["0-0.rec"]
    check_untouched(outside)


def test_a_link_to_an_empty_file_is_not_extended(archive: Path, tmp_path: Path) -> None:
    """A file that a crash left during its creation would be extended."""
    (tmp_path / "empty").touch()
    (archive / "0-65536.rec").symlink_to("../empty")
    make_if_lacking(archive / "0-65536.rec", 65_536)
    assert (tmp_path / "empty").stat().st_size == 0


def test_a_purge_does_not_delete_through_a_linked_quarantine(archive: Path, tmp_path: Path) -> None:
    """Also where the target has names like those of a recording."""
    link_target = tmp_path / "elsewhere"
    (link_target / "0-17").mkdir(parents=True)
    (archive / quarantine.FOLDER_NAME).symlink_to(link_target)
    with pytest.raises(
        StorageError, match=r"aerotape-quarantine is a symbolic link, not a directory"
    ):
        quarantine.clear_marks(archive, 0)
    assert (link_target / "0-17").is_dir()
    quarantine.clear_marks(archive, 1)


def test_checksums_are_not_written_through_a_link(
    archive: Path, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is reported as not changed; other files get their checksums."""
    for _ in range(2):
        add_recording(archive, fill(SegmentBuilder(), 3))
    (archive / "0-0.rec").replace(outside)
    (archive / "0-0.rec").symlink_to("../outside")
    before, other = outside.read_bytes(), (archive / "1-0.rec").read_bytes()
    assert main(["tool", str(archive), "checksum", "crc-32", "-a"]) == 3
    printed = capsys.readouterr()
    assert "symbolic link" in printed.out + printed.err
    assert outside.read_bytes() == before
    assert (archive / "1-0.rec").read_bytes() != other


@pytest.mark.parametrize(
    "name", [CATALOG_FILE_NAME, FILE_NAME, "migration-131072-to-196608.dat"], ids=str
)
def test_a_migration_refuses_links_before_its_first_change(tmp_path: Path, name: str) -> None:
    """For the files that it changes, and for those that it creates."""
    archive = build_old(tmp_path / "archive", version(2))
    outside = tmp_path / "outside"
    if (archive / name).exists():
        (archive / name).rename(outside)
    (archive / name).symlink_to("../outside")
    before = outside.read_bytes() if outside.exists() else None
    names = sorted(path.name for path in archive.iterdir())
    with pytest.raises(StorageError, match=rf"({name} is a symbolic link|was interrupted)"):
        migrate(archive)
    assert (outside.read_bytes() if outside.exists() else None) == before
    assert sorted(path.name for path in archive.iterdir()) == names
