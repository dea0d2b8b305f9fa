"""Changes of recordings by pages: what they would delete is said first, and confirmed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from support import browser as browsers
from support.browser import complaints, text
from support.daemon.archives import ServedArchive, serve
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.web import Answer, WebService

import aerotape
from aerotape.catalog.recovery.suspect_marks import SuspectNote, add_notes, is_suspect, read_marks

pytestmark = pytest.mark.skipif(not browsers.IS_INSTALLED, reason="chromium is not installed")
SEGMENT = 65_536
ENDED = aerotape.RecordingSignal.STOP


@pytest.fixture(scope="module")
def archive() -> Iterator[ServedArchive]:
    """An archive with segment files of 64 KiB."""
    properties = {
        "aeron.archive.segment.file.length": str(SEGMENT),
        "aeron.ipc.term.buffer.length": str(SEGMENT),
    }
    with serve("aerotape", properties=properties) as served:
        yield served


@pytest.fixture(scope="module")
def client(archive: ServedArchive) -> Iterator[aerotape.ArchiveClient]:
    with archive.connect() as connected:
        yield connected


@pytest.fixture(scope="module")
def web(archive: ServedArchive) -> Iterator[WebService]:
    """The service, which may change the archive."""
    with WebService(CommandLine(archive), archive.archive_dir, "--allow-changes") as service:
        yield service


def recorded(
    archive: ServedArchive, client: aerotape.ArchiveClient, stream_id: int, count: int = 300
) -> int:
    """Record messages of 1,000 bytes, and stop; return the recording id.

    Each call needs another stream: the driver may still have the publication of the last one.
    """
    with aerotape.Aeron(archive.aeron_dir) as aeron:
        client.start_recording("aeron:ipc", stream_id)
        publication = aeron.add_exclusive_publication("aeron:ipc", stream_id)
        recording_id = client.await_signal(aerotape.RecordingSignal.START).recording_id
        for _ in range(count):
            publication.send(b"x" * 1_000)
        await_true(lambda: client.recording_position(recording_id) == publication.position)
        publication.close()
        client.stop_recording("aeron:ipc", stream_id)
        client.await_signal(ENDED)
    return recording_id


def value(page: Any, name: str, given: str) -> None:
    """Enter a value into a field of the dialog."""
    page.execute_script(
        """
        const field = document.querySelector(`dialog [name=${arguments[0]}]`);
        field.value = arguments[1];
        field.dispatchEvent(new Event("input"));
        """,
        name,
        given,
    )


def click(page: Any, selector: str) -> None:
    page.execute_script("document.querySelector(arguments[0]).click()", selector)


def is_possible(page: Any) -> bool:
    return not page.execute_script("return document.querySelector('dialog [value=go]').disabled")


def test_plans_are_what_is_deleted(
    archive: ServedArchive, client: aerotape.ArchiveClient, web: WebService
) -> None:
    """The same segment files, and bytes of the recording."""
    recording_id = recorded(archive, client, 7501)
    path = f"/api/v1/recordings/{recording_id}"

    def plan(query: str) -> tuple[int, int]:
        found = web.get(f"{path}/removal?{query}")
        assert found.status == 200, found.text
        return found.json["bytes"], found.json["segments"]

    end = client.stop_position(recording_id)
    cut = next(
        each.position
        for each in aerotape.open_directory(archive.archive_dir).recording(recording_id).messages()
        if each.position > 3 * SEGMENT
    )
    size, segments = plan(f"action=truncate&position={cut}")
    assert size == end - cut
    assert client.truncate_recording(recording_id, cut) == segments == 1
    size, segments = plan(f"action=purge&position={SEGMENT}")
    assert size == SEGMENT
    purged = web.get(f"{path}/purge?position={SEGMENT}", "POST").json
    assert purged["segment_files_deleted"] == segments == 1
    assert client.start_position(recording_id) == SEGMENT
    # Files are deleted after the response, and until then no other change is accepted.
    await_true(lambda: plan("action=delete") == (cut - SEGMENT, 3))
    deletions: list[Answer] = []

    def is_deleted() -> bool:
        deletions.append(web.get(path, "DELETE"))
        return deletions[-1].status == 200

    await_true(is_deleted)
    assert deletions[-1].json["segment_files_deleted"] == 3


@pytest.mark.parametrize(
    ("stream_id", "query", "part"),
    [
        (7521, "action=truncate", "expected one of the recording's, 0 to"),
        (7522, f"action=truncate&position={1 << 40}", "expected one of the recording's, 0 to"),
        (7523, "action=purge&position=64", f"begins at 0, and the next one at {SEGMENT}"),
        (7524, "action=burn", "action"),
    ],
)
def test_plans_that_are_none(
    archive: ServedArchive,
    client: aerotape.ArchiveClient,
    web: WebService,
    stream_id: int,
    query: str,
    part: str,
) -> None:
    recording_id = recorded(archive, client, stream_id, 1)
    found = web.get(f"/api/v1/recordings/{recording_id}/removal?{query}")
    assert found.status == 400
    assert part in found.json["detail"]


def test_a_truncation(
    archive: ServedArchive, client: aerotape.ArchiveClient, web: WebService, page: Any
) -> None:
    """Possible only with a right position and the recording's id; cancelling changes nothing."""
    recording_id = recorded(archive, client, 7503)
    web.await_state(recording_id, live=False)
    end = client.stop_position(recording_id)
    page.get(f"{web.url}recordings/{recording_id}")
    click(page, "[data-action=truncate]")
    assert not is_possible(page)
    value(page, "confirmation", str(recording_id))
    value(page, "position", str(end + 64))
    await_true(lambda: "expected one of the recording's" in text(page, "[data-plan]"))
    assert not is_possible(page)
    value(page, "position", "0")
    await_true(lambda: "5 segment files" in text(page, "[data-plan]"))
    assert is_possible(page)
    value(page, "confirmation", f"{recording_id}0")
    assert not is_possible(page)
    value(page, "confirmation", str(recording_id))
    click(page, "dialog [value=cancel]")
    assert client.stop_position(recording_id) == end
    click(page, "[data-action=truncate]")
    value(page, "position", "0")
    value(page, "confirmation", str(recording_id))
    await_true(lambda: is_possible(page))
    click(page, "dialog [value=go]")
    await_true(lambda: client.stop_position(recording_id) == 0)
    await_true(lambda: text(page, "#recorded") == "0 B")
    assert [each for each in complaints(page) if "/removal?" not in each] == []


def test_stop_and_delete(
    archive: ServedArchive, client: aerotape.ArchiveClient, web: WebService, page: Any
) -> None:
    """A stop deletes nothing and needs no confirmation."""
    with aerotape.Aeron(archive.aeron_dir) as aeron:
        page.get(f"{web.url}recordings")
        page.execute_script(
            """
            const form = document.querySelector("form[data-method=POST]");
            form.querySelector("[name=channel]").value = "aeron:ipc";
            form.querySelector("[name=stream_id]").value = "7504";
            form.requestSubmit();
            """
        )
        await_true(lambda: "subscription_id" in text(page, ".operation output"))
        publication = aeron.add_publication("aeron:ipc", 7504)
        publication.send(b"one")
        found = await_recording(client, 7504)
        page.get(f"{web.url}recordings/{found}")
        assert text(page, "[data-action=delete]") == "None"
        click(page, "[data-action=stop]")
        await_true(lambda: text(page, "[data-action=delete]") == "Delete…")
        assert text(page, "#state") == "stopped"
        click(page, "[data-action=delete]")
        await_true(lambda: "(64 bytes) and 1 segment file." in text(page, "[data-plan]"))
        value(page, "confirmation", str(found))
        click(page, "dialog [value=go]")
        await_true(lambda: page.current_url.endswith("/recordings"))
        assert all(each.recording_id != found for each in client.list_recordings())
        publication.close()


def await_recording(client: aerotape.ArchiveClient, stream_id: int) -> int:
    """Return the id of the recording of a stream, once there is one."""
    found: list[int] = []

    def is_there() -> bool:
        found[:] = [
            each.recording_id for each in client.list_recordings() if each.stream_id == stream_id
        ]
        return bool(found)

    await_true(is_there)
    return found[0]


def test_none_are_offered_that_are_refused(
    archive: ServedArchive, client: aerotape.ArchiveClient, page: Any
) -> None:
    """Without --allow-changes."""
    recording_id = recorded(archive, client, 7505, 1)
    with WebService(CommandLine(archive), archive.archive_dir) as web:
        for path in ("recordings", f"recordings/{recording_id}"):
            page.get(f"{web.url}{path}")
            assert text(page, "[data-action], form[data-method]") == "None"


def test_a_bare_click_sends_no_change(
    archive: ServedArchive, client: aerotape.ArchiveClient, web: WebService, page: Any
) -> None:
    """On the page of REST: the method is to be typed."""
    recording_id = recorded(archive, client, 7506, 1)
    page.get(f"{web.url}api")
    send = """
        const form = document.querySelector("form[data-method=DELETE][data-path*=recordings]");
        form.closest("details").open = true;
        form.querySelector("input").value = arguments[0];
        setTimeout(() => form.requestSubmit());
        """
    for answer in ("", "delete", "DELETE"):
        page.execute_script(send, str(recording_id))
        alert = awaited_alert(page)
        alert.send_keys(answer)
        alert.accept()
        sent = answer == "DELETE"
        await_true(
            lambda: ("200" if sent else "not sent") in text(page, "details[open] output")  # noqa: B023
        )
        found = client.list_recordings(from_recording_id=recording_id, count=1)
        assert any(each.recording_id == recording_id for each in found) is not sent


def awaited_alert(page: Any) -> Any:
    """Return the prompt once it is there."""
    from selenium.webdriver.support import expected_conditions
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(page, 60).until(expected_conditions.alert_is_present())


def marked(archive: ServedArchive, client: aerotape.ArchiveClient, stream_id: int) -> int:
    """Mark a recording as suspect; return its id."""
    recording_id = recorded(archive, client, stream_id, 1)
    note = SuspectNote("torn frames", "<i>64 bytes</i>", 64, 1, "aerotape-quarantine/x")
    add_notes(archive.archive_dir, recording_id, [note])
    return recording_id


def test_damage_is_accepted(
    archive: ServedArchive, client: aerotape.ArchiveClient, web: WebService, page: Any
) -> None:
    """After saying what, and only with the id; then the recording is not suspect any more."""
    recording_id = marked(archive, client, 7507)
    path = f"/api/v1/recordings/{recording_id}"
    await_true(lambda: bool(web.get(path).json["suspect"]))
    page.get(f"{web.url}recordings/{recording_id}")
    assert "marked as suspect" in text(page, "#damage .failed")
    assert "removed data is in aerotape-quarantine/x" in text(page, "#damage")
    assert text(page, "#damage code") == "None"
    click(page, "[data-action=accept]")
    await_true(lambda: "torn frames: <i>64 bytes</i>" in text(page, "[data-plan]"))
    assert page.execute_script("return document.querySelectorAll('main i').length") == 0
    assert not is_possible(page)
    click(page, "dialog [value=cancel]")
    assert is_suspect(read_marks(archive.archive_dir)[recording_id])
    click(page, "[data-action=accept]")
    value(page, "confirmation", str(recording_id))
    await_true(lambda: is_possible(page))
    click(page, "dialog [value=go]")
    await_true(lambda: "; accepted 20" in text(page, "#damage"))
    assert text(page, "[data-action=accept]") == text(page, "#damage .failed") == "None"
    assert not is_suspect(read_marks(archive.archive_dir)[recording_id])
    assert web.get(path).json["suspect"] is False  # read again after the change
    assert web.get(f"{path}/accept-damage", "POST").json["accepted"] == []
    assert web.get("/api/v1/recordings/4711/accept-damage", "POST").status == 404
    assert complaints(page) == []


def test_the_command_is_shown_that_accepts_damage(
    archive: ServedArchive, client: aerotape.ArchiveClient, page: Any
) -> None:
    """To users who may not do it by a page; it does what it says."""
    recording_id = marked(archive, client, 7508)
    cli = CommandLine(archive)
    with WebService(cli, archive.archive_dir) as web:
        page.get(f"{web.url}recordings/{recording_id}")
        assert text(page, "[data-action]") == "None"
        name, *arguments = shlex.split(text(page, "#damage code"))
        assert name == "aerotape"
        cli.run(*arguments)
        await_true(lambda: not web.get(f"/api/v1/recordings/{recording_id}").json["suspect"])
        page.refresh()
        assert text(page, "#damage code") == "None"
