"""Answers that are bounded, whatever the archive has: retention, damage, long channels."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import CommandLine
from support.web import MAX_BYTES, WebService, peak_bytes

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.suspect_marks import SuspectNote, add_notes, mark_file_name

API = "/api/v1"
MAX_ANSWER = 2 << 20


def recordings(folder: Path, count: int, channel: str = "aeron:ipc") -> None:
    """Create a catalog of stopped recordings without data."""
    with Catalog.open(folder, create=True) as catalog:
        for number in range(count):
            entry = SegmentBuilder(recording_id=number)
            catalog.recording_stopped(add_entry(catalog, entry, original_channel=channel), 0, 1)


def test_a_plan_of_many_recordings(own: CommandLine, tmp_path: Path) -> None:
    """It has the first 1,000 removals, is made once for all that ask, and says what is left."""
    folder, policy = tmp_path / "archive", tmp_path / "policy.toml"
    folder.mkdir()
    recordings(folder, 6_000)
    policy.write_text("[[rule]]\nmax_recordings = 1\n")
    with WebService(own, folder, "--retention", policy) as web:
        found = web.get_soon(f"{API}/retention").json
        assert [each["recording_id"] for each in found["removals"]] == list(range(1_000))
        assert (found["left"], found["kept"], found["kept_left"]) == (4_999, [], 0)
        page = web.get_soon("/retention")
        assert "4999 more recordings would be deleted" in page.text
        assert page.text.count("<tr>") == 1_001  # with the head
        with ThreadPoolExecutor(16) as threads:
            paths = [f"{API}/retention", "/retention"] * 16
            assert {each.status for each in threads.map(web.get, paths)} == {200}
        assert peak_bytes(web.process.pid) < MAX_BYTES


def test_many_notes_of_damage(own: CommandLine, tmp_path: Path) -> None:
    """Each text is shortened; the page has the first 100 notes, and REST their number."""
    recordings(tmp_path, 1)
    add_notes(tmp_path, 0, [SuspectNote("truncated", "&" * 9_000, at, 1) for at in range(2_500)])
    with WebService(own, tmp_path) as web:
        answer = web.get(f"{API}/recordings/0/damage")
        assert len(answer.body) <= MAX_ANSWER
        found = answer.json
        assert (found["notes_total"], len(found["notes"][0]["detail"])) == (2_500, 1_001)
        page = web.get("/recordings/0")
        assert page.text.count("marked as suspect") == 100 and len(page.body) < MAX_ANSWER
        assert "These are the first 100 of" in page.text


def test_a_long_file_of_notes(own: CommandLine, tmp_path: Path) -> None:
    """It needs little memory and time, whether the damage was accepted or not."""
    recordings(tmp_path, 2)
    for recording_id, accepted_ms in ((0, -1), (1, 5)):
        notes = [SuspectNote("torn", "&" * 9_000, at, 1, "", accepted_ms) for at in range(2_600)]
        add_notes(tmp_path, recording_id, notes)
        assert (tmp_path / mark_file_name(recording_id)).stat().st_size > 23_000_000
    paths = [f"{API}/recordings/{number}/damage" for number in (0, 1)]
    paths += [f"{API}/recordings/{number}/statistics" for number in (0, 1)]
    paths += ["/recordings/0", "/recordings/1", f"{API}/recordings"]
    with WebService(own, tmp_path) as web, ThreadPoolExecutor(16) as threads:
        statuses = {each.status for each in threads.map(web.get, paths * 6)}
        assert 200 in statuses and statuses <= {200, 503}
        found = web.get(f"{API}/recordings").json["recordings"]
        assert [each["suspect"] for each in found] == [True, False]
        print(peak_bytes(web.process.pid) >> 20)
        assert peak_bytes(web.process.pid) < MAX_BYTES


def test_long_channels_are_shortened_in_lists(own: CommandLine, tmp_path: Path) -> None:
    """Not where one recording is asked for by REST."""
    channel = f"aeron:ipc?alias={'x' * 50_000}"
    recordings(tmp_path, 120, channel)
    with WebService(own, tmp_path) as web:
        assert len(web.get("/recordings").body) < MAX_ANSWER // 4
        assert len(web.get("/recordings/0").body) < 32_768
        assert web.get(f"{API}/recordings/0").json["original_channel"] == channel
