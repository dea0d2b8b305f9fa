"""A simple model of the recordings of an archive, with random requests.

Written according to the reference: descriptors, segment files, responses, error codes and the
content of a replay are known after every step.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

import aerotape
from aerotape.errors import ArchiveError
from support.daemon.recording import new_stream_id, wait_until
from support.model.messages import message
from support.model.modelled_recording import ACTIVE, IPC, SEGMENT, TERM, Recording, outside, pick

NOBODY = 1 << 40


class ArchiveModel(RuleBasedStateMachine):
    """Drives one archive, which the test sets, with a client that is used for all examples."""

    archive_dir: Path
    client: aerotape.ArchiveClient
    recordings = Bundle("recordings")
    shares = st.floats(0, 1)

    def __init__(self) -> None:
        super().__init__()
        known = [each.recording_id for each in self.client.list_recordings()]
        self.first_id = max(known, default=-1) + 1
        self.all: list[Recording] = []

    def teardown(self) -> None:
        for each in self.all:
            each.publication.close()
            self.client.try_stop_recording_subscription(each.subscription_id)

    # ---- helpers ------------------------------------------------------------------------------

    def refused(self, codes: int | tuple[int, ...], call: Callable[..., Any], *args: Any) -> None:
        with pytest.raises(ArchiveError) as caught:
            call(*args)
        expected = codes if isinstance(codes, tuple) else (codes,)
        assert caught.value.error_code in expected, f"{args}: {caught.value}"

    def send(self, recording: Recording, count: int) -> None:
        before = recording.end
        for _ in range(count):
            payload = message(recording.stream_id, recording.sent, 0, 6000)
            recording.sent += 1
            recording.messages.append((payload, recording.publication.send(payload)))
        end = recording.publication.position
        wait_until(
            lambda: self.client.recording_position(recording.recording_id) == end,
            f"recording up to {end}",
        )
        recording.files |= set(range(before - before % SEGMENT, end + 1, SEGMENT))

    def close_publication(self, recording: Recording) -> None:
        """Close it in the driver too, so that an extension does not get it.

        The driver executes a client's commands in their order.
        """
        recording.publication.close()
        self.client.aeron.native.add_counter(5000, b"", "done").close()

    def await_active(self, recording_id: int) -> None:
        wait_until(
            lambda: self.client.recording_position(recording_id) != -1, "the recording's start"
        )

    # ---- rules --------------------------------------------------------------------------------

    @initialize(target=recordings, count=st.integers(20, 60))
    def begin(self, count: int) -> Recording:
        return self.started(count, auto_stop=False)

    @rule(target=recordings, count=st.integers(0, 60), auto_stop=st.booleans())
    def start(self, count: int, auto_stop: bool) -> Recording:
        return self.started(count, auto_stop)

    def started(self, count: int, auto_stop: bool, preceding: Recording | None = None) -> Recording:
        """Start a recording, of a new stream or at the end of another recording."""
        stream_id = new_stream_id() if preceding is None else preceding.stream_id
        channel = IPC if preceding is None else self.channel_after(preceding)
        subscription_id = self.client.start_recording(IPC, stream_id, auto_stop=auto_stop)
        self.refused(3, self.client.start_recording, "aeron:ipc", stream_id)
        publication = self.client.aeron.add_exclusive_publication(channel, stream_id)
        found = -1

        def is_there() -> bool:
            nonlocal found
            session_id = publication.session_id
            found = self.client.find_last_matching_recording(0, "", stream_id, session_id)
            return found != -1

        wait_until(is_there, "the recording's entry")
        recording = Recording(
            found,
            stream_id,
            publication.initial_term_id,
            publication.session_id,
            subscription_id,
            publication,
            start=0 if preceding is None else preceding.end,
        )
        recording.files.add(recording.start)
        self.all.append(recording)
        self.await_active(recording.recording_id)
        self.send(recording, count)
        return recording

    def channel_after(self, recording: Recording) -> str:
        """The channel of a stream that begins at the end of a recording."""
        end, first = recording.end, recording.initial_term_id
        return f"{IPC}|init-term-id={first}|term-id={first + end // TERM}|term-offset={end % TERM}"

    def is_stream_recorded(self, recording: Recording) -> bool:
        """Whether this or another recording of the same stream is active."""
        return any(
            each.stop is ACTIVE for each in self.all if each.stream_id == recording.stream_id
        )

    @rule(recording=recordings, count=st.integers(1, 60))
    def send_more(self, recording: Recording, count: int) -> None:
        if recording.stop is ACTIVE and not recording.is_purged:
            self.send(recording, count)

    @rule(recording=recordings, how=st.sampled_from(["subscription", "channel", "id", "close"]))
    def stop(self, recording: Recording, how: str) -> None:
        recording_id = recording.recording_id
        if recording.is_purged:
            self.refused(5, self.client.stop_recording_by_identity, recording_id)
            return
        if recording.stop is not ACTIVE:
            assert self.client.stop_recording_by_identity(recording_id) is False
            self.refused(4, self.client.stop_recording_subscription, recording.subscription_id)
            if not self.is_stream_recorded(recording):
                self.refused(4, self.client.stop_recording, "aeron:ipc", recording.stream_id)
            return
        recording.stop = recording.end
        if how == "subscription":
            self.client.stop_recording_subscription(recording.subscription_id)
        elif how == "channel":
            self.client.stop_recording("aeron:ipc", recording.stream_id)
        elif how == "id":
            assert self.client.stop_recording_by_identity(recording_id) is True
        self.close_publication(recording)
        wait_until(
            lambda: self.client.stop_position(recording_id) == recording.stop, "the stop position"
        )
        if how == "close":
            self.client.try_stop_recording_subscription(recording.subscription_id)

    @rule(recording=recordings, count=st.integers(0, 60), auto_stop=st.booleans())
    def extend(self, recording: Recording, count: int, auto_stop: bool) -> None:
        recording_id, stream_id = recording.recording_id, recording.stream_id
        if recording.is_purged:
            self.refused(5, self.client.extend_recording, recording_id, IPC, stream_id)
            return
        self.refused(5, self.client.extend_recording, recording_id, IPC, stream_id + 1)
        if self.is_stream_recorded(recording):
            code = 2 if recording.stop is ACTIVE else 3
            self.refused(code, self.client.extend_recording, recording_id, IPC, stream_id)
            return
        end = recording.end
        recording.subscription_id = self.client.extend_recording(
            recording_id, IPC, stream_id, auto_stop=auto_stop
        )
        recording.publication = self.client.aeron.add_exclusive_publication(
            self.channel_after(recording), stream_id
        )
        recording.session_id = recording.publication.session_id
        self.await_active(recording_id)
        recording.stop = ACTIVE
        recording.files.add(end - end % SEGMENT)
        self.send(recording, count)

    @rule(recording=recordings, share=shares)
    def truncate(self, recording: Recording, share: float) -> None:
        recording_id = recording.recording_id
        if recording.is_purged:
            self.refused(5, self.client.truncate_recording, recording_id, 0)
            return
        if recording.stop is ACTIVE:
            self.refused(2, self.client.truncate_recording, recording_id, recording.start)
            return
        for position in [*outside(recording), recording.start + 8]:
            self.refused(16, self.client.truncate_recording, recording_id, position)
        position = pick(recording.boundaries, share)
        if position == recording.start:
            deleted = set(recording.files)
            count = len(deleted)
        else:
            following = position + -position % SEGMENT
            deleted = {base for base in recording.files if base >= following}
            # Its last file may have been deleted earlier where it ends on a boundary; it counts.
            count = len({*deleted, *(base for base in recording.bases if base >= following)})
        assert self.client.truncate_recording(recording_id, position) == count
        recording.files -= deleted
        recording.stop = position
        recording.held.clear()
        recording.messages = [each for each in recording.messages if each[1] <= position]
        self.await_files(recording)

    @rule(recording=recordings)
    def purge(self, recording: Recording) -> None:
        if recording.is_purged:
            self.refused(5, self.client.purge_recording, recording.recording_id)
            return
        if recording.stop is ACTIVE:
            self.refused(2, self.client.purge_recording, recording.recording_id)
            return
        if recording.held:
            self.refused(2, self.client.purge_recording, recording.recording_id)
            return
        assert self.client.purge_recording(recording.recording_id) == len(recording.files)
        recording.is_purged = True
        recording.files.clear()
        self.await_files(recording)

    @rule(recording=recordings, share=shares, are_deleted=st.booleans())
    def detach(self, recording: Recording, share: float, are_deleted: bool) -> None:
        client, recording_id = self.client, recording.recording_id
        request = client.purge_segments if are_deleted else client.detach_segments
        if recording.is_purged:
            self.refused(5, request, recording_id, 0)
            return
        beyond = recording.bases[-1] + SEGMENT
        for position in (recording.start, recording.start + 32, beyond):
            self.refused(0, request, recording_id, position)
        possible = recording.bases[1:]
        if recording.held:
            # Replays are at their start or a term later, because they are not read.
            first = min(each.position for each in recording.held.values())
            possible = [base for base in possible if base <= first]
            following = [base for base in recording.bases if base > first + TERM]
            for position in following:
                self.refused(0, request, recording_id, position)
        if not possible:
            return
        position = pick(possible, share)
        gone = {base for base in recording.bases if base < position}
        result = request(recording_id, position)
        recording.start = position
        if are_deleted:
            assert result == len(gone)
            recording.files -= gone
            self.await_files(recording)

    @rule(recording=recordings)
    def delete_detached(self, recording: Recording) -> None:
        if recording.is_purged:
            self.refused(5, self.client.delete_detached_segments, recording.recording_id)
            return
        detached = {base for base in recording.files if base < recording.bases[0]}
        # Files are missing only at positions lower than those of partly deleted ones.
        count = (recording.bases[0] - min(detached, default=recording.bases[0])) // SEGMENT
        assert self.client.delete_detached_segments(recording.recording_id) == count
        recording.files -= detached
        self.await_files(recording)

    @rule(recording=recordings)
    def queries(self, recording: Recording) -> None:
        client, recording_id = self.client, recording.recording_id
        asked = (client.start_position, client.stop_position, client.recording_position)
        if recording.is_purged:
            for each in (*asked, client.max_recorded_position):
                self.refused(5, each, recording_id)
            assert client.list_recording(recording_id) is None
            return
        is_active = recording.stop is ACTIVE
        assert [each(recording_id) for each in asked] == [
            recording.start,
            -1 if is_active else recording.stop,
            recording.end if is_active else -1,
        ]
        assert client.max_recorded_position(recording_id) == recording.end

    @rule(recording=recordings)
    def replay(self, recording: Recording) -> None:
        client, recording_id = self.client, recording.recording_id
        if recording.is_purged:
            self.refused(5, client.start_replay, recording_id, "aeron:ipc", 40)
            return
        for position in outside(recording):
            self.refused(16, self.replay_from, recording_id, position)
        if recording.end == recording.start:
            return
        with client.replay(recording_id, follow=False) as replayed:
            assert [each.payload for each in replayed] == [each[0] for each in recording.retained]

    def replay_from(self, recording_id: int, position: int) -> int:
        return self.client.start_replay(
            recording_id, "aeron:ipc", 40, position=position, length=1000
        )

    @rule()
    def ask_for_nobody(self) -> None:
        client = self.client
        for call in (
            client.purge_recording,
            client.delete_detached_segments,
            client.attach_segments,
            client.stop_position,
            client.stop_recording_by_identity,
        ):
            self.refused(5, call, NOBODY)
        self.refused(5, client.truncate_recording, NOBODY, 0)
        self.refused(5, client.detach_segments, NOBODY, 0)
        self.refused(5, client.extend_recording, NOBODY, "aeron:ipc", 1)

    # ---- invariants ---------------------------------------------------------------------------

    def files_of(self, recording: Recording) -> set[int]:
        pattern = re.compile(rf"{recording.recording_id}-(\d+)\.rec")
        names = (path.name for path in self.archive_dir.iterdir())
        return {int(match[1]) for name in names if (match := pattern.fullmatch(name))}

    def await_files(self, recording: Recording) -> None:
        """Wait for the DELETE signal, as a client does before its next request."""
        self.client.await_signal(
            aerotape.RecordingSignal.DELETE, recording_id=recording.recording_id
        )
        assert self.files_of(recording) == recording.files

    @invariant()
    def all_is_as_it_should_be(self) -> None:
        """In the catalog and on disk."""
        expected = [
            (
                each.recording_id,
                each.start,
                -1 if each.stop is None else each.stop,
                each.session_id,
                each.channel,
            )
            for each in self.all
            if not each.is_purged
        ]
        assert [
            (e.recording_id, e.start_position, e.stop_position, e.session_id, e.original_channel)
            for e in self.client.list_recordings(self.first_id)
        ] == expected
        expected_files = {each.recording_id: each.files for each in self.all}

        def files() -> dict[int, set[int]]:
            return {each.recording_id: self.files_of(each) for each in self.all}

        # The recorder creates a file at its position, a moment after the recording has started.
        with contextlib.suppress(AssertionError):
            wait_until(lambda: files() == expected_files, "files")
        assert files() == expected_files
