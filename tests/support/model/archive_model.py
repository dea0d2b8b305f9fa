"""The model of recordings, extended by segment migration, queries, replays and crashes.

Segments are moved between recordings, subscriptions and recordings are queried, replays block or
end at a bound, and the archive is stopped or killed and started again.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

import aerotape
from support.daemon.daemon import age_mark_file
from support.daemon.recording import wait_until
from support.model.modelled_recording import ACTIVE, IPC, SEGMENT, Recording
from support.model.recordings_model import NOBODY, ArchiveModel

REPLAY_SESSIONS = 112
_replay_stream_ids = itertools.count(500_001)


@dataclass(frozen=True)
class HeldReplay:
    """A replay whose subscriber does not read.

    Attributes:
        position: its start position.
    """

    position: int
    subscription: Any


class Served:
    """An archive with a separate driver, and a client; all can be ended and started again."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.start()

    def start(self) -> None:
        self.archive = self._make().start()
        self.aeron = aerotape.Aeron(self.archive.aeron_dir)
        self.client = aerotape.connect(
            aeron=self.aeron, control_request_channel=self.archive.control_channel
        )

    def restart(self, *, kill: bool) -> None:
        """Kill or stop it, and start it again."""
        if kill:
            self.archive.kill()
            self.end_client()
            self.archive.stop()
            shutil.rmtree(self.archive.aeron_dir, ignore_errors=True)
            age_mark_file(self.archive.archive_dir)
        else:
            self.archive.stop()
            self.end_client()
        self.start()

    def end_client(self) -> None:
        self.client.close()
        self.aeron.close()

    def close(self) -> None:
        self.end_client()
        self.archive.stop()


class WholeArchiveModel(ArchiveModel):
    """Drives `served`, which the test sets and which is used for all examples.

    Attributes:
        holds_replays: whether replays stay active during other requests. The Java archive 1.51
            refuses to truncate a recording that is replayed; later versions stop the replays.
        makes_next_segments: whether a missing next segment file of a recording is created, and
            replaced by a migrated one. The Java archive does neither.
    """

    served: Served
    holds_replays: bool
    makes_next_segments: bool

    def __init__(self) -> None:
        self.adopt()
        super().__init__()
        self.restarts = 0

    def adopt(self) -> None:
        """Use the client and the directory of the archive that runs now."""
        self.client = self.served.client
        self.archive_dir = self.served.archive.archive_dir

    def teardown(self) -> None:
        for each in self.all:
            self.release(each)
        super().teardown()

    # ---- segments of two recordings -----------------------------------------------------------

    @rule(
        target=ArchiveModel.recordings, recording=ArchiveModel.recordings, count=st.integers(0, 60)
    )
    def start_behind(self, recording: Recording, count: int) -> Recording:
        """Create a recording that begins at the end of another one, if that is between segments."""
        if self.is_stream_recorded(recording) or recording.is_purged or recording.end % SEGMENT:
            return recording
        return self.started(count, auto_stop=False, preceding=recording)

    @rule(recording=ArchiveModel.recordings)
    def attach(self, recording: Recording) -> None:
        if recording.is_purged:
            self.refused(5, self.client.attach_segments, recording.recording_id)
            return
        start = recording.bases[0]
        while start - SEGMENT in recording.files:
            start -= SEGMENT
        count = (recording.bases[0] - start) // SEGMENT
        assert self.client.attach_segments(recording.recording_id) == count
        if count:
            recording.start = start

    @rule(source=ArchiveModel.recordings, into=ArchiveModel.recordings)
    def migrate(self, source: Recording, into: Recording) -> None:
        request = self.client.migrate_segments
        ids = (source.recording_id, into.recording_id)
        if source.is_purged or into.is_purged:
            self.refused(5, request, *ids)
            return
        if source is into or source.held or into.held:
            return
        is_one_stream = (source.stream_id, source.initial_term_id) == (
            into.stream_id,
            into.initial_term_id,
        )
        to_front = source.stop == into.start
        joins = to_front or source.start == into.stop
        join = into.start if to_front else source.start
        if source.stop is ACTIVE or not (is_one_stream and joins and join % SEGMENT == 0):
            self.refused(0, request, *ids)
            return
        moved = {base for base in source.bases if base < source.stop}
        # Our archive deletes a blank file in which the target would continue.
        if moved & (into.files - {into.stop} if self.makes_next_segments else into.files):
            return
        assert request(*ids) == len(moved)
        empty = {source.stop} & source.files - moved
        source.files -= moved | empty
        into.files |= moved
        gone = [each for each in source.messages if source.start < each[1] <= source.stop]
        source.messages = [each for each in source.messages if each not in gone]
        into.messages = sorted(into.messages + gone, key=lambda each: each[1])
        if to_front:
            into.start = source.start
        else:
            into.stop = source.stop
        source.stop = source.start
        if moved or empty:
            self.await_files(source)

    # ---- queries --------------------------------------------------------------------------------

    @rule(recording=ArchiveModel.recordings, text=st.sampled_from(["", "ipc", "udp"]))
    def look_for(self, recording: Recording, text: str) -> None:
        matching = [
            each
            for each in self.all
            if each.stream_id == recording.stream_id and not each.is_purged and text != "udp"
        ]
        listed = self.client.list_recordings_for_uri(text, recording.stream_id)
        assert [each.recording_id for each in listed] == [each.recording_id for each in matching]
        last = max(
            (e.recording_id for e in matching if e.session_id == recording.session_id), default=-1
        )
        for least, expected in ((0, last), (recording.recording_id + 1, -1)):
            if least == 0 or last < least:
                found = self.client.find_last_matching_recording(
                    least, text, recording.stream_id, recording.session_id
                )
                assert found == expected

    @rule(recording=ArchiveModel.recordings, number=st.integers(0, 300))
    def rename(self, recording: Recording, number: int) -> None:
        channel = f"{IPC}|alias={'x' * number}"
        if recording.is_purged:
            self.refused(5, self.client.update_channel, recording.recording_id, channel)
            return
        self.client.update_channel(recording.recording_id, channel)
        recording.channel = channel

    @rule()
    def ask_for_the_rest(self) -> None:
        client = self.client
        listed = [each.stream_id for each in client.list_recording_subscriptions()]
        active = [each.stream_id for each in self.all if each.stop is ACTIVE]
        assert sorted(listed) == sorted(active)
        client.ping()
        client.keep_alive()
        self.refused(5, client.attach_segments, NOBODY)
        self.refused(5, client.update_channel, NOBODY, IPC)
        self.refused(5, client.migrate_segments, NOBODY, NOBODY)
        self.refused(12, client.stop_replication, NOBODY)
        client.stop_replay(NOBODY)
        client.stop_all_replays(NOBODY)

    # ---- replays ------------------------------------------------------------------------------

    @rule(recording=ArchiveModel.recordings)
    def hold(self, recording: Recording) -> None:
        """Start a replay that cannot end, because its subscriber does not read."""
        if not self.holds_replays or recording.is_purged:
            return
        if recording.end - recording.start < SEGMENT:
            return
        stream_id = next(_replay_stream_ids)
        subscription = self.client.aeron.native.add_subscription("aeron:ipc", stream_id)
        replay_id = self.client.start_replay(recording.recording_id, IPC, stream_id)
        recording.held[replay_id] = HeldReplay(recording.start, subscription)

    @rule(recording=ArchiveModel.recordings, all_at_once=st.booleans())
    def release(self, recording: Recording, all_at_once: bool = False) -> None:
        if all_at_once:
            self.client.stop_all_replays(recording.recording_id)
        for replay_id in recording.held:
            self.client.stop_replay(replay_id)
        recording.held.clear()
        self.replays_are_as_many_as_are_held()

    @rule(recording=ArchiveModel.recordings, share=ArchiveModel.shares)
    def replay_to_a_bound(self, recording: Recording, share: float) -> None:
        """Up to a counter that does not move."""
        retained = recording.retained
        if recording.is_purged or not retained:
            return
        native = self.client.aeron.native
        count = min(int(share * len(retained)) + 1, len(retained))
        bound = native.add_counter(5000, b"", "bound")
        bound.set(retained[count - 1][1])
        stream_id = next(_replay_stream_ids)
        subscription = native.add_subscription("aeron:ipc", stream_id)
        replay_id = self.client.start_replay(
            recording.recording_id, IPC, stream_id, limit_counter_id=bound.id
        )
        received: list[bytes] = []

        def all_came() -> bool:
            received.extend(payload for payload, *_ in subscription.poll(100, 0))
            return len(received) >= count

        wait_until(all_came, "the replay up to its bound")
        received.extend(payload for payload, *_ in subscription.poll(100, 1_000_000))
        assert received == [payload for payload, _ in retained[:count]]
        self.client.stop_replay(replay_id)
        subscription.close()
        self.replays_are_as_many_as_are_held()
        bound.close()

    # ---- restarts -------------------------------------------------------------------------------

    # One per example, because it takes longer than all other rules.
    @precondition(lambda self: self.restarts == 0 and len(self.all) > 1)
    @rule(kill=st.booleans())
    def restart(self, kill: bool) -> None:
        self.restarts += 1
        for each in self.all:
            each.stop = each.end
            each.held.clear()
            # Created again where a truncation or a migration has left none.
            is_full = each.stop > each.start and each.stop % SEGMENT == 0
            if self.makes_next_segments and is_full and not each.is_purged:
                each.files.add(each.stop)
        self.served.restart(kill=kill)
        self.adopt()

    # ---- invariants -----------------------------------------------------------------------------

    def all_is_as_it_should_be(self) -> None:
        super().all_is_as_it_should_be()
        self.replays_are_as_many_as_are_held()

    def replays_are_as_many_as_are_held(self) -> None:
        held = sum(len(each.held) for each in self.all)
        counters = self.client.aeron.native.counters()
        wait_until(lambda: counters.rows(REPLAY_SESSIONS)[0][7] == held, f"{held} replays")
