"""What the retention policy would delete now, and its deletion by a page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import browser as browsers
from support.browser import complaints, text
from support.daemon.archives import ServedArchive, serve
from support.daemon.command_line import CommandLine
from support.daemon.command_line import aerotape as command
from support.daemon.control_rig import await_true
from support.web import WebService, basic

import aerotape

API = "/api/v1/retention"
SEGMENT = 65_536
PROPERTIES = {
    "aeron.archive.segment.file.length": str(SEGMENT),
    "aeron.ipc.term.buffer.length": str(SEGMENT),
}
ROWS = "return document.querySelectorAll('tbody tr').length"


@dataclass(frozen=True)
class Kept:
    """An archive of which a policy retains one recording of three.

    Attributes:
        served: the archive.
        client: connected to it.
        policy: the policy.
        ids: of the recordings, the oldest first.
    """

    served: ServedArchive
    client: aerotape.ArchiveClient
    policy: Path
    ids: list[int]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    policy = tmp_path / "policy.toml"
    policy.write_text("[[rule]]\nmax_recordings = 1\n")
    with (
        serve("aerotape", PROPERTIES) as served,
        served.connect() as client,
        aerotape.Aeron(served.aeron_dir) as aeron,
    ):
        ids = []
        for _ in range(3):
            subscription = client.start_recording("aeron:ipc", 7901)
            publication = aeron.add_publication("aeron:ipc", 7901)
            recording_id = client.await_signal(aerotape.RecordingSignal.START).recording_id
            for _ in range(150):
                publication.send(b"x" * 1_000)
            end = publication.position
            await_true(lambda: client.recording_position(recording_id) == end)  # noqa: B023
            publication.close()
            client.await_signal(aerotape.RecordingSignal.STOP)
            client.stop_recording_subscription(subscription)
            ids.append(recording_id)
        yield Kept(served, client, policy, ids)


def recordings(kept: Kept) -> list[int]:
    return [each.recording_id for each in kept.client.list_recordings()]


def test_what_was_confirmed_is_deleted(kept: Kept) -> None:
    """By the name of its plan; what has changed since is left out, and a plan is not done twice."""
    cli = CommandLine(kept.served)
    options = ("--retention", kept.policy, "--allow-changes")
    with WebService(cli, kept.served.archive_dir, *options) as web:
        shown = web.get(API).json
        assert [each["recording_id"] for each in shown["removals"]] == kept.ids[:2]
        assert [each["segment_files"] for each in shown["removals"]] == [3, 3]
        assert web.get(f"{API}?plan=0", "POST").status == 409
        assert web.get(API, "POST").status == 400
        kept.client.truncate_recording(kept.ids[1], SEGMENT)
        done = web.get(f"{API}?plan={shown['plan']}", "POST").json
        assert [each["recording_id"] for each in done["removals"]] == kept.ids[:1]
        assert [each["problem"] for each in done["removals"]] == [""]
        assert (done["changed"], done["left"]) == ([kept.ids[1]], 0)
        assert recordings(kept) == kept.ids[1:]
        again = web.get(f"{API}?plan={shown['plan']}", "POST").json
        assert (again["removals"], again["changed"]) == ([], kept.ids[:2])
        assert [each["recording_id"] for each in web.get(API).json["removals"]] == kept.ids[1:2]


def test_who_may_delete(kept: Kept, tmp_path: Path) -> None:
    """A service that may change the archive, and a role that may; and there must be a policy."""
    cli = CommandLine(kept.served)
    users, secret = tmp_path / "users", tmp_path / "secret"
    secret.write_text("wonderland\n")
    secret.chmod(0o600)
    options = ("--role", "record", "--secret-file", secret, "--iterations", 4096)
    command("users", users, "add", "alice", *options)
    alice = {"Authorization": basic("alice", "wonderland")}
    policy = ("--retention", kept.policy)
    with WebService(cli, kept.served.archive_dir, *policy) as web:
        answer = web.get(f"{API}?plan={web.get(API).json['plan']}", "POST")
        assert (answer.status, "--allow-changes" in answer.text) == (403, True)
    allowed = ("--allow-changes", "--users", users)
    with WebService(cli, kept.served.archive_dir, *policy, *allowed) as web:
        plan = web.get(API, **alice).json["plan"]
        answer = web.get(f"{API}?plan={plan}", "POST", **alice)
        assert (answer.status, "alice has the role record" in answer.text) == (403, True)
        assert "data-retention" not in web.get("/retention", **alice).text
    assert recordings(kept) == kept.ids


@pytest.mark.skipif(not browsers.IS_INSTALLED, reason="chromium is not installed")
def test_the_page_deletes(kept: Kept, page: Any) -> None:
    """After the number of segment files was entered; cancelling deletes nothing."""

    def click(selector: str) -> None:
        page.execute_script("document.querySelector(arguments[0]).click()", selector)

    def enter(given: str) -> bool:
        """Enter a number; return whether it can be sent then."""
        script = """
            const field = document.querySelector("dialog [name=confirmation]");
            field.value = arguments[0];
            field.dispatchEvent(new Event("input"));
            return !document.querySelector("dialog [value=go]").disabled;
            """
        return bool(page.execute_script(script, given))

    cli = CommandLine(kept.served)
    options = ("--retention", kept.policy, "--allow-changes")
    with WebService(cli, kept.served.archive_dir, *options) as web:
        page.get(f"{web.url}retention")
        assert page.execute_script(ROWS) == 2
        click("[data-retention] button")
        assert "in 6 segment files of 2 recordings" in text(page, "dialog")
        assert not enter("5")
        assert enter("6")
        click("dialog [value=cancel]")
        assert recordings(kept) == kept.ids
        click("[data-retention] button")
        assert enter("6")
        click("dialog [value=go]")
        await_true(lambda: page.execute_script(ROWS) == 0)
        assert recordings(kept) == kept.ids[2:]
        assert text(page, "[data-retention]") == "None"
        assert complaints(page) == []


@pytest.mark.skipif(not browsers.IS_INSTALLED, reason="chromium is not installed")
def test_the_command_is_shown_that_deletes(kept: Kept, page: Any) -> None:
    """Without --allow-changes; it deletes what the page shows."""
    cli = CommandLine(kept.served)
    with WebService(cli, kept.served.archive_dir, "--retention", kept.policy) as web:
        page.get(f"{web.url}retention")
        assert text(page, "[data-retention]") == "None"
        name, *arguments = shlex.split(text(page, "main code"))
        assert name == "aerotape"
        cli.run(*arguments, "--yes")
        assert recordings(kept) == kept.ids[2:]
