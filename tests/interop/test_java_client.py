"""The Java client against our archive: the same script is run on the Java archive, and what the
client sees must be the same, down to error codes.

What cannot be the same (ids of control sessions, timestamps, ports) is left out or made the same
before; session ids and initial term ids are set in the channels.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.jvm.java import JavaArchive, JavaArchiveException, JavaClient, free_port
from support.model.messages import digest, messages

StartArchive = Callable[..., JavaArchive]  # or ours, which has the same handles
Script = Callable[[JavaClient, int], Any]

IPC = "aeron:ipc?term-length=64k|init-term-id=-7|term-id=-7|term-offset=0|session-id=77"
VOLATILE = {"controlSessionId", "correlationId", "startTimestamp", "stopTimestamp"}


def rows(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Descriptors without what differs from run to run; their timestamps are checked here."""
    for row in found:
        assert row["startTimestamp"] > 1_500_000_000_000
        assert row["stopTimestamp"] == -1 or row["stopTimestamp"] >= row["startTimestamp"]
    kept = [{name: row[name] for name in row.keys() - VOLATILE} for row in found]
    for row in kept:
        row["sourceIdentity"] = re.sub(r":\d+$", ":port", row["sourceIdentity"])
    return kept


def attempt(client: JavaClient, method: str, *args: Any) -> Any:
    """What a call returns, or the error it ends in."""
    try:
        return client.call(method, *args)
    except JavaArchiveException as error:
        return (error.exception, error.error_code)


def await_stopped(client: JavaClient, *recording_ids: int) -> None:
    """A stop is answered when it has been ordered: the position is written a little later."""
    deadline = time.monotonic() + 60
    for recording_id in recording_ids:
        while client.call("getStopPosition", recording_id) == -1:
            assert time.monotonic() < deadline, "the recording does not stop"


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


def test_record_query_and_stop(run_on_both: Callable[..., Any]) -> None:
    """IPC and UDP streams, recorded and stopped in each of the three ways, are listed alike."""

    def script(client: JavaClient, port: int) -> Any:
        seen: list[Any] = []
        udp = f"aeron:udp?endpoint=localhost:{port}|term-length=64k|mtu=1408|session-id=78"
        udp += "|init-term-id=3|term-id=5|term-offset=4096|alias=market|ssc=true"
        client.call("startRecording", "aeron:ipc", 1, "LOCAL")
        subscription_id = client.call(
            "startRecording", f"aeron:udp?endpoint=localhost:{port}", 2, "LOCAL", True
        )
        client.call("startRecording", f"aeron:udp?endpoint=localhost:{port}", 3, "REMOTE", False)
        made = [record(client, IPC, 1, 1, 100), record(client, udp, 2, 2, 100)]
        made.append(record(client, udp.replace("78", "79"), 3, 3, 100))
        for publication, counter, end in made:
            recording_id = counter["recordingId"]
            label = re.sub(r":\d+$", ":port", counter["label"])
            seen.append((recording_id, end, counter["isActive"], publication["position"]))
            seen.append(re.sub(r"(localhost|127.0.0.1):\d+", "port", label))
            for question in ("Start", "Recording", "Stop", "MaxRecorded"):
                method = f"get{question}Position"
                seen.append((method, client.call(method, recording_id)))
        seen.append(rows(client.call("listRecordings", 0, 10)))
        seen.append(rows(client.call("listRecordings", 1, 1)))
        seen.append(rows(client.call("listRecordingsForUri", 0, 10, "localhost", 3)))
        seen.append(rows(client.call("listRecordingsForUri", 0, 10, "alias=market", 2)))
        seen.append(rows(client.call("listRecordingsForUri", 0, 10, "aeron:", 2)))
        seen.append(rows(client.call("listRecording", 2)))
        seen.append(client.call("findLastMatchingRecording", 0, "ipc", 1, 77))
        seen.append(client.call("findLastMatchingRecording", 0, "ipc", 1, 78))
        seen.append(client.call("findLastMatchingRecording", 0, f"{port}", 3, 79))

        client.call("stopRecording", "aeron:ipc", 1)
        client.call("stopRecording", subscription_id)
        seen.append(client.call("tryStopRecordingByIdentity", 2))
        await_stopped(client, 0, 1, 2)
        seen.append(client.call("tryStopRecordingByIdentity", 2))
        seen.append(client.call("tryStopRecording", "aeron:ipc", 1))
        seen.append(client.call("tryStopRecording", subscription_id))
        for recording_id in range(3):
            for question in ("Start", "Recording", "Stop", "MaxRecorded"):
                seen.append(client.call(f"get{question}Position", recording_id))
        seen.append(rows(client.call("listRecordings", 0, 10)))
        return seen

    seen = run_on_both(script)
    assert [row["recordingId"] for row in seen[-1]] == [0, 1, 2]
    assert all(row["stopPosition"] > row["startPosition"] for row in seen[-1])


def test_replay_of_a_stopped_recording(run_on_both: Callable[..., Any]) -> None:
    """Whole, from a message in the middle, and a length: the same frames in the same places."""

    def script(client: JavaClient, port: int) -> Any:
        client.call("startRecording", "aeron:ipc", 1, "LOCAL")
        publication, counter, end = record(client, IPC, 1, 5, 120)
        client.close_resource(publication)
        recording_id = counter["recordingId"]
        client.call("stopRecording", "aeron:ipc", 1)
        await_stopped(client, recording_id)
        seen = []

        def replay(position: int, length: int, channel: str) -> list[dict[str, Any]]:
            subscription = client.call("replay", recording_id, position, length, channel, 9)
            polled = client.poll(subscription, 1_000, details=True)
            client.close_resource(subscription)
            assert polled["ended"]
            for message in polled["messages"]:
                message.pop("sessionId")  # the replay's own
            found: list[dict[str, Any]] = polled["messages"]
            seen.append(found)
            return found

        udp = f"aeron:udp?endpoint=localhost:{port}"
        whole = replay(0, end, "aeron:ipc")
        assert digest(bytes.fromhex(row["payload"]) for row in whole) == digest(
            messages(5, 120, max_length=6_000)
        )
        replay(whole[59]["position"], end, udp)
        replay(whole[9]["position"], whole[19]["position"] - whole[9]["position"], udp)
        return seen

    whole, half, ten = run_on_both(script)
    assert half == whole[60:]
    assert ten == whole[10:20]


def test_replay_of_a_live_recording_follows(run_on_both: Callable[..., Any]) -> None:
    """A replay without end gets what is published later, and ends when the recording stops."""

    def script(client: JavaClient, port: int) -> Any:
        client.call("startRecording", "aeron:ipc", 1, "LOCAL", True)
        publication, counter, _ = record(client, IPC, 1, 6, 50)
        replay = client.call("replay", counter["recordingId"], 0, -1, "aeron:ipc", 9)
        first = client.poll(replay, 50)
        offered = client.offer(publication, seed=6, first_index=50, count=50)
        second = client.poll(replay, 50)
        assert second["digest"] == offered["digest"]
        client.close_resource(publication)
        last = client.poll(replay, 1)
        return first, second, last

    first, second, last = run_on_both(script)
    assert (first["count"], second["count"], last["count"]) == (50, 50, 0)
    assert last["ended"]


def test_bounded_replay(run_on_both: Callable[..., Any]) -> None:
    """A bounded replay goes no further than its counter, and on when the counter goes on."""

    def script(client: JavaClient, port: int) -> Any:
        client.call("startRecording", "aeron:ipc", 1, "LOCAL")
        _, counter, end = record(client, IPC, 1, 8, 40)
        replay = client.call("replay", counter["recordingId"], 0, end, "aeron:ipc", 8)
        ends = [row["position"] for row in client.poll(replay, 40, details=True)["messages"]]
        bound = client.call("addCounter", 10_001, "bound")
        client.call("setCounter", bound["handle"], ends[9])
        subscription = client.add_subscription("aeron:ipc", 9)
        client.call(
            "startReplay",
            counter["recordingId"],
            "aeron:ipc",
            9,
            {"position": 0, "length": end, "boundingLimitCounterId": bound["counterId"]},
        )
        first = client.poll(subscription, 10)
        beyond = client.poll(subscription, 1, timeout_ms=500)
        client.call("setCounter", bound["handle"], end)
        return first, beyond, client.poll(subscription, 40)

    first, beyond, second = run_on_both(script)
    assert (first["count"], beyond["count"], second["count"]) == (10, 0, 30)


def test_refusals_carry_the_same_codes(run_on_both: Callable[..., Any]) -> None:
    """What cannot be done is refused with the reference's error code, and nothing is lost."""

    def script(client: JavaClient, port: int) -> Any:
        client.call("startRecording", "aeron:ipc", 1, "LOCAL")
        _, counter, end = record(client, IPC, 1, 9, 20)
        live = counter["recordingId"]
        seen = [
            attempt(client, "startRecording", "aeron:ipc", 1, "LOCAL"),
            attempt(client, "startRecording", "nonsense", 1, "LOCAL"),
            attempt(client, "startRecording", "aeron:udp", 1, "LOCAL"),
            attempt(client, "stopRecording", "aeron:ipc", 99),
            attempt(client, "stopRecording", 123_456),
            attempt(client, "tryStopRecordingByIdentity", 99),
            attempt(client, "listRecording", 99),
            attempt(client, "listRecordings", 99, 1),
            attempt(client, "listRecordings", 0, 0),
            attempt(client, "listRecordingsForUri", 0, 5, "nowhere", 1),
            attempt(client, "findLastMatchingRecording", 0, "nowhere", 1, 1),
            attempt(client, "findLastMatchingRecording", 99, "ipc", 1, 77),
            *(
                attempt(client, f"get{question}Position", 99)
                for question in ("Start", "Recording", "Stop", "MaxRecorded")
            ),
            attempt(client, "startReplay", 99, 0, 1_024, "aeron:ipc", 9),
            attempt(client, "startReplay", live, end + 32, 1_024, "aeron:ipc", 9),
            attempt(client, "startReplay", live, 8, 1_024, "aeron:ipc", 9),
            attempt(client, "startReplay", live, 32, 1_024, "aeron:ipc", 9),
            attempt(client, "startReplay", live, -32, 1_024, "aeron:ipc", 9),
            attempt(client, "startBoundedReplay", live, 0, 1_024, 99_999, "aeron:ipc", 9),
            attempt(client, "stopReplay", 99),
            attempt(client, "stopAllReplays", 99),
            attempt(client, "stopAllReplays", -1),
        ]
        client.call("stopRecording", "aeron:ipc", 1)
        await_stopped(client, live)
        seen += [
            attempt(client, "startReplay", live, end, 1_024, "aeron:ipc", 9),
            attempt(client, "startReplay", live, end + 32, 1_024, "aeron:ipc", 9),
            client.call("getStopPosition", live) == end,
        ]
        return [
            # A replay session's or subscription's id is its own.
            ("id",) if isinstance(item, int) and abs(item) > 1_000_000 else item
            for item in seen
        ]

    seen = run_on_both(script)
    assert sum(isinstance(item, tuple) and item[0] == "ArchiveException" for item in seen) > 10


def test_a_replay_channel_that_is_none_is_refused(start_archive: StartArchive) -> None:
    """The client is told (the Java archive leaves it waiting), and the archive lives on."""
    archive = start_archive("aerotape")
    with JavaClient(archive.aeron_dir) as client:
        client.connect(archive.control_channel)
        client.call("startRecording", "aeron:ipc", 1, "LOCAL")
        _, counter, end = record(client, IPC, 1, 9, 20)
        with pytest.raises(JavaArchiveException, match="nonsense") as caught:
            client.call("startReplay", counter["recordingId"], 0, 1_024, "nonsense", 9)
        assert caught.value.error_code == 0
        assert client.call("getRecordingPosition", counter["recordingId"]) == end


def test_limits_on_recordings_and_replays(run_on_both: Callable[..., Any]) -> None:
    """The configured numbers of concurrent recordings and replays are kept, and said as such."""

    def script(client: JavaClient, port: int) -> Any:
        client.call("startRecording", "aeron:ipc", 1, "LOCAL")
        _, counter, _ = record(client, IPC, 1, 1, 10)
        replay = client.call("startReplay", counter["recordingId"], 0, -1, "aeron:ipc", 9)
        client.add_subscription("aeron:ipc", 9)
        second = attempt(client, "startReplay", counter["recordingId"], 0, -1, "aeron:ipc", 10)
        client.call("stopReplay", replay)
        third = attempt(client, "startRecording", "aeron:ipc", 2, "LOCAL")
        return second, third

    seen = run_on_both(
        script,
        **{
            "aeron.archive.max.concurrent.replays": "1",
            "aeron.archive.max.concurrent.recordings": "1",
        },
    )
    assert seen[0][0] == "ArchiveException"


def signals_until(client: JavaClient, count: int) -> list[Any]:
    """Wait for so many recording signals; return what they say."""
    taken: list[Any] = []
    deadline = time.monotonic() + 60
    while len(taken) < count:
        assert time.monotonic() < deadline, f"only {taken}"
        taken += [(row["signal"], row["recordingId"]) for row in client.call("takeSignals")]
    return taken


def await_recordings(client: JavaClient, count: int) -> None:
    """Wait until the catalog has so many recordings."""
    deadline = time.monotonic() + 60
    while not client.call("listRecording", count - 1):
        assert time.monotonic() < deadline, "not recorded"


def test_several_images_of_one_subscription(run_on_both: Callable[..., Any]) -> None:
    """Each image is a recording; stopping one by its identity lets the others run on, but nobody
    finds the subscription any more."""

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
        # What is left of it still records.
        publication, counter, end = made[0]
        offered = client.offer(publication, seed=9, count=5)
        client.await_counter(counter["counterId"], offered["position"])
        seen.append((offered["position"] > end, client.call("getRecordingPosition", 0)))
        # The same channel may be asked for again, and gets the images that there are.
        client.call("startRecording", "aeron:ipc", 1, "LOCAL")
        await_recordings(client, 6)
        client.call("stopRecording", "aeron:ipc", 1)
        await_stopped(client, 3, 4, 5)
        seen.append(client.call("getStopPosition", 0))
        for each in made:
            client.close_resource(each[0])
        await_stopped(client, 0)
        listed = rows(client.call("listRecordings", 0, 10))
        for row in listed[3:]:  # images come in no particular order
            row.pop("recordingId")
        seen += [listed[:3], sorted(listed[3:], key=lambda row: int(row["sessionId"]))]
        return seen

    seen = run_on_both(script)
    assert seen[:4] == [True, False, ("ArchiveException", 4), ("ArchiveException", 4)]


def test_a_publication_that_comes_back(run_on_both: Callable[..., Any]) -> None:
    """With the same session id, term id and all: a recording of its own each time."""

    def script(client: JavaClient, port: int) -> Any:
        client.call("startRecording", "aeron:ipc", 1, "LOCAL")
        ends = []
        for round_number in range(3):
            publication = attempt(client, "addExclusivePublication", IPC, 1)
            while isinstance(publication, tuple):  # the driver still has the one before
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
    """The first image that goes takes the subscription and the other recordings with it."""

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
    the client says of terms is overruled by the recording, what it says of the session is not."""

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


def test_listings_page_by_page(run_on_both: Callable[..., Any]) -> None:
    """Counts, first ids, filters and what lies beyond the end: the same rows of 150 recordings."""

    def script(client: JavaClient, port: int) -> Any:
        for number in range(5):
            client.call("startRecording", f"aeron:ipc?alias=feed-{number}", number, "LOCAL")
        made = [
            client.add_exclusive_publication(IPC.replace("77", f"{1000 + n}"), n % 5)
            for n in range(150)
        ]
        await_recordings(client, len(made))
        seen: list[Any] = []
        for first, count in ((0, 200), (0, 64), (63, 2), (149, 1), (149, 5), (150, 5), (-5, 3)):
            found = client.call("listRecordings", first, count)
            seen.append([row["recordingId"] for row in found])
        for first, count, fragment, stream_id in (
            (0, 200, "feed-3", 3),
            (0, 200, "feed-3", 2),
            (70, 2, "alias", 4),
            (0, 200, "", 1),
        ):
            found = client.call("listRecordingsForUri", first, count, fragment, stream_id)
            seen.append(len(found))
            assert all(row["streamId"] == stream_id for row in found)
        return seen

    seen = run_on_both(script, **{"aeron.archive.max.concurrent.recordings": "500"})
    assert [len(each) for each in seen[:7]] == [150, 64, 2, 1, 1, 0, 3]
    assert seen[7:] == [30, 0, 2, 30]
