"""Scripts of the Java client with equal results on our archive and on the Java archive.

Ids of control sessions, timestamps and ports are left out; channels set session ids and initial
term ids.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.daemon.control_rig import await_true
from support.jvm.java import JavaArchive, JavaArchiveException, JavaClient, free_port

pytestmark = pytest.mark.jvm

StartArchive = Callable[..., JavaArchive]  # or our client, which has the same handles
Script = Callable[[JavaClient, int], Any]

IPC = "aeron:ipc?term-length=64k|init-term-id=-7|term-id=-7|term-offset=0|session-id=77"
VOLATILE = {"controlSessionId", "correlationId", "startTimestamp", "stopTimestamp"}


def rows(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Check the timestamps of descriptors, and return the fields that are equal in every run."""
    for row in found:
        assert row["startTimestamp"] > 1_500_000_000_000
        assert row["stopTimestamp"] == -1 or row["stopTimestamp"] >= row["startTimestamp"]
    retained = [{name: row[name] for name in row.keys() - VOLATILE} for row in found]
    for row in retained:
        row["sourceIdentity"] = re.sub(r":\d+$", ":port", row["sourceIdentity"])
    return retained


def attempt(client: JavaClient, method: str, *args: Any) -> Any:
    """Return the result of a call, or its error."""
    try:
        return client.call(method, *args)
    except JavaArchiveException as error:
        return (error.exception, error.error_code)


def await_stopped(client: JavaClient, *recording_ids: int) -> None:
    """Wait for stop positions, which are written some time after the response to a stop."""
    await_true(lambda: all(client.call("getStopPosition", each) != -1 for each in recording_ids))


def record(client: JavaClient, channel: str, stream_id: int, seed: int, count: int) -> Any:
    """Publish into a recording that has been started; return its id and end."""
    publication = client.add_exclusive_publication(channel, stream_id)
    counter = client.recording_counter(publication["sessionId"])
    offered = client.offer(publication, seed=seed, count=count, max_length=6_000)
    client.await_counter(counter["counterId"], offered["position"])
    return publication, counter, offered["position"]


@pytest.fixture
def run_on_both(start_archive: StartArchive, tmp_path: Path, aeron_dir: Path) -> Callable[..., Any]:
    """Run a script on the Java archive and on ours; assert that it sees the same; return it."""
    port = free_port()

    def run(script: Script, **properties: str) -> Any:
        seen = {}
        properties = {"aeron.archive.id": "7", **properties}
        for kind in ("java", "aerotape"):
            archive = start_archive(kind, archive_dir=tmp_path / kind, properties=properties)
            with archive, JavaClient(archive.aeron_dir) as client:
                client.connect(archive.control_channel)
                seen[kind] = script(client, port)
            shutil.rmtree(aeron_dir, ignore_errors=True)
        assert seen["aerotape"] == seen["java"]
        return seen["aerotape"]

    return run


def signals_until(client: JavaClient, count: int) -> list[Any]:
    """Wait for a number of recording signals; return their fields."""
    taken: list[Any] = []

    def have_come() -> bool:
        taken.extend((row["signal"], row["recordingId"]) for row in client.call("takeSignals"))
        return len(taken) >= count

    await_true(have_come)
    return taken


def await_recordings(client: JavaClient, count: int) -> None:
    """Wait until the catalog has this number of recordings."""
    await_true(lambda: bool(client.call("listRecording", count - 1)))


def test_several_images_of_one_subscription(run_on_both: Callable[..., Any]) -> None:
    """Each image is a recording; stopping one by its identity leaves the others running, but
    the subscription cannot be found."""

    def script(client: JavaClient, port: int) -> Any:
        seen: list[Any] = []
        subscription_id = client.call("startRecording", "aeron:ipc", 1, "LOCAL")
        made = [record(client, IPC.replace("77", f"{77 + n}"), 1, n, 20) for n in range(3)]
        seen.append(client.call("tryStopRecordingByIdentity", 1))
        await_stopped(client, 1)
        seen.append(client.call("tryStopRecordingByIdentity", 2))
        await_stopped(client, 2)
        seen.append(attempt(client, "stopRecording", subscription_id))
        seen.append(attempt(client, "stopRecording", "aeron:ipc", 1))
        # The other recordings of the subscription continue.
        publication, counter, end = made[0]
        offered = client.offer(publication, seed=9, count=5)
        client.await_counter(counter["counterId"], offered["position"])
        seen.append((offered["position"] > end, client.call("getRecordingPosition", 0)))
        # The same channel can be recorded again, with the existing images.
        client.call("startRecording", "aeron:ipc", 1, "LOCAL")
        await_recordings(client, 6)
        client.call("stopRecording", "aeron:ipc", 1)
        await_stopped(client, 3, 4, 5)
        seen.append(client.call("getStopPosition", 0))
        for each in made:
            client.close_resource(each[0])
        await_stopped(client, 0)
        listed = rows(client.call("listRecordings", 0, 10))
        for row in listed[3:]:  # images arrive in any order
            row.pop("recordingId")
        seen += [listed[:3], sorted(listed[3:], key=lambda row: int(row["sessionId"]))]
        return seen

    seen = run_on_both(script)
    assert seen[:4] == [True, False, ("ArchiveException", 4), ("ArchiveException", 4)]


def test_a_publication_that_is_added_again(run_on_both: Callable[..., Any]) -> None:
    """With the same session id and term id, each publication has a new recording."""

    def script(client: JavaClient, port: int) -> Any:
        client.call("startRecording", "aeron:ipc", 1, "LOCAL")
        ends = []
        for round_number in range(3):
            publication = attempt(client, "addExclusivePublication", IPC, 1)
            while isinstance(publication, tuple):  # the driver still has the previous publication
                publication = attempt(client, "addExclusivePublication", IPC, 1)
            await_recordings(client, round_number + 1)
            ends.append(client.offer(publication, seed=round_number, count=10)["position"])
            client.close_resource(publication)
            await_stopped(client, round_number)
        assert [client.call("getStopPosition", each) for each in range(3)] == ends
        return (
            rows(client.call("listRecordings", 0, 10)),
            client.call("findLastMatchingRecording", 0, "ipc", 1, 77),
            signals_until(client, 6),
        )

    listed, last, signals = run_on_both(script)
    assert (len(listed), last) == (3, 2)
    assert signals == [(kind, each) for each in range(3) for kind in ("START", "STOP")]


def test_recordings_by_session_id(run_on_both: Callable[..., Any]) -> None:
    """A channel with a session id is another one to the archive than that without, records that
    session alone, and is stopped by naming it."""

    def script(client: JavaClient, port: int) -> Any:
        seen: list[Any] = []
        for channel in ("aeron:ipc?session-id=77", "aeron:ipc?session-id=78"):
            client.call("startRecording", channel, 1, "LOCAL")
            seen.append(attempt(client, "startRecording", f"{channel}|alias=x", 1, "LOCAL"))
        publications = [
            client.add_exclusive_publication(IPC.replace("77", f"{77 + n}"), 1) for n in range(3)
        ]
        await_recordings(client, 2)
        ends = [
            client.offer(each, seed=n, count=10)["position"]
            for n, each in enumerate(publications[:2])
        ]
        seen.append(attempt(client, "stopRecording", "aeron:ipc", 1))
        seen.append(attempt(client, "stopRecording", "aeron:ipc?session-id=79", 1))
        client.call("stopRecording", "aeron:ipc?session-id=78|alias=y", 1)
        await_stopped(client, 1)
        seen.append(client.call("getStopPosition", 0))
        client.call("stopRecording", "aeron:ipc?session-id=77", 1)
        await_stopped(client, 0)
        seen.append(rows(client.call("listRecordings", 0, 10)))
        assert [row["stopPosition"] for row in seen[-1]] == ends
        return seen

    seen = run_on_both(script)
    assert [row["strippedChannel"] for row in seen[-1]] == [
        "aeron:ipc?session-id=77",
        "aeron:ipc?session-id=78",
    ]


def test_auto_stop_ends_all_of_a_subscription(run_on_both: Callable[..., Any]) -> None:
    """The end of the first image ends the subscription and its other recordings."""

    def script(client: JavaClient, port: int) -> Any:
        client.call("startRecording", "aeron:ipc", 1, "LOCAL", True)
        made = [record(client, IPC.replace("77", f"{77 + n}"), 1, n, 20) for n in range(2)]
        client.close_resource(made[1][0])
        await_stopped(client, 0, 1)
        client.add_exclusive_publication(IPC.replace("77", "80"), 1)
        return (
            rows(client.call("listRecordings", 0, 10)),
            sorted(signals_until(client, 4)),
            attempt(client, "stopRecording", "aeron:ipc", 1),
        )

    listed, signals, stopped = run_on_both(script)
    assert len(listed) == 2
    assert signals == [(kind, each) for kind in ("START", "STOP") for each in range(2)]
    assert stopped == ("ArchiveException", 4)


def test_replay_ranges(run_on_both: Callable[..., Any]) -> None:
    """Ranges given as null, to the present end, beyond the end or too long mean the same; what
    the client sets for terms is overridden by the recording, what it sets for the session is
    not."""

    def script(client: JavaClient, port: int) -> Any:
        seen: list[Any] = []
        client.call("startRecording", "aeron:ipc", 1, "LOCAL")
        publication, _, end = record(client, IPC, 1, 5, 60)

        def replay(position: int, length: int, channel: str = "aeron:ipc") -> None:
            made = attempt(client, "replay", 0, position, length, channel, 9)
            if isinstance(made, tuple):
                seen.append(made)
                return
            polled = client.poll(made, 1_000, details=True)
            client.close_resource(made)
            messages = polled["messages"]
            seen.append((polled["count"], polled["ended"], polled["firstPosition"]))
            seen.append((polled["lastPosition"], polled["digest"]))
            if "session-id" in channel:
                seen.append({row["sessionId"] for row in messages})

        # A driver may hold a session id for a while after its publication has gone.
        for ipc_session_id, udp_session_id in ((1234, 4321), (1235, 4322)):
            if ipc_session_id == 1235:
                client.call("stopRecording", "aeron:ipc", 1)
                await_stopped(client, 0)
                replay(-1, -1)
            replay(-1, end)
            replay(0, end // 2)
            replay(-1, -2)
            replay(0, -3)
            replay(end - 32, -2)
            replay(
                0, end, f"aeron:ipc?session-id={ipc_session_id}|term-length=128k|mtu=4096|linger=0"
            )
            replay(0, end, "aeron:ipc?init-term-id=5|term-id=6|term-offset=64|tags=1001")
            replay(0, end, f"aeron:udp?endpoint=localhost:{port}|session-id={udp_session_id}")
        replay(0, end + 4_096)
        client.close_resource(publication)
        return seen

    # On a busy machine it may take a replay long to find its subscriber.
    seen = run_on_both(script, **{"aeron.archive.connect.timeout": "60s"})
    for session_id in (1234, 4321, 1235, 4322):
        assert {session_id} in seen
