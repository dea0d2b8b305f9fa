"""Session workers on a real embedded driver, for the tests of recording and replay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from aerotape import _native
from aerotape.worker_arguments import RecordArguments, ReplayArguments, WorkerOptions
from support.model.term_log import TermLog
from support.native_events import as_tuple

IPC = "aeron:ipc?term-length=65536"
TIMEOUT_S = 60.0
T = TypeVar("T")
RECORDING_POSITION_TYPE_ID = 100
LEDGER_CONFIRMED_TYPE_ID = 1_200


@dataclass
class LiveRecording:
    """A recording under way, and what should come to stand in its files.

    Attributes:
        confirmed: the counter of the durable position of a recording with a durability.
    """

    recording_id: int
    publication: _native.ExclusivePublication
    subscription: _native.Subscription
    counter: _native.Counter
    segment_length: int
    log: TermLog
    confirmed: _native.Counter | None = None
    start_position: int = 0
    messages: list[bytes] = field(default_factory=list)

    def offer(self, messages: Iterable[bytes]) -> int:
        """Publish messages, waiting for the recorder where it holds up; return the position."""
        for message in messages:
            result = self.publication.offer_within(message, int(TIMEOUT_S * 1e9))
            assert result > 0, f"offer answered {result}"
            self.log.append([message])
            self.messages.append(message)
        assert self.publication.position == len(self.log.data)
        return self.publication.position


class WorkerRig:
    """A driver, a client and workers over one archive directory."""

    def __init__(self, aeron_dir: Path, archive_dir: Path) -> None:
        self.archive_dir = archive_dir
        self._exits = ExitStack()
        self.events: list[tuple[Any, ...]] = []
        self.mailbox = _native.Mailbox()
        self.driver = _native.MediaDriver.launch(
            {
                "aeron.dir": str(aeron_dir),
                "aeron.threading.mode": "SHARED",
                "aeron.shared.idle.strategy": "backoff",
                "aeron.publication.linger.timeout": "200ms",
                "aeron.dir.delete.on.shutdown": "true",
            }
        )
        self._exits.callback(self.driver.close)
        self.client = _native.AeronClient(str(aeron_dir))
        self._exits.callback(self.client.close)

    def close(self) -> None:
        self._exits.close()

    def worker(self, **options: Any) -> _native.SessionWorker:
        """Start a worker on the archive directory; closed with the rig."""
        settings = WorkerOptions("worker", self.archive_dir, **options)
        worker = _native.SessionWorker(self.mailbox, settings)
        self._exits.callback(worker.close)
        return worker

    def record(
        self,
        worker: _native.SessionWorker,
        channel: str = IPC,
        *,
        recording_id: int = 0,
        stream_id: int = 1001,
        segment_length: int = 65_536,
        durability: Literal["pd", "vd"] | None = None,
    ) -> LiveRecording:
        """Publish to `channel` and have `worker` record it."""
        publication = self.client.add_exclusive_publication(channel, stream_id)
        subscription = self.client.add_subscription(channel, stream_id)
        self._exits.callback(subscription.close)
        image = self.until(lambda: subscription.image_by_session_id(publication.session_id))
        counter = self.client.add_counter(
            RECORDING_POSITION_TYPE_ID, recording_id.to_bytes(8, "little"), f"rec {recording_id}"
        )
        confirmed = None
        if durability is not None:
            confirmed = self.client.add_counter(
                LEDGER_CONFIRMED_TYPE_ID, recording_id.to_bytes(8, "little"), "confirmed"
            )
        arguments = RecordArguments(
            recording_id=recording_id,
            start_position=0,
            segment_length=segment_length,
            durability=durability,
            confirmed_counter=confirmed,
        )
        worker.record(image, counter, arguments)
        log = TermLog(
            session_id=publication.session_id,
            stream_id=stream_id,
            initial_term_id=publication.initial_term_id,
            term_length=publication.term_buffer_length,
            max_payload_length=publication.max_payload_length,
        )
        return LiveRecording(
            recording_id, publication, subscription, counter, segment_length, log, confirmed
        )

    def replay(
        self,
        worker: _native.SessionWorker,
        recording: LiveRecording,
        *,
        position: int = 0,
        length: int | None = None,
        stop_position: int | None = None,
        replay_session_id: int = 1,
        stream_id: int = 2001,
        channel: str = "aeron:ipc",
        subscribe: bool = True,
        **options: Any,
    ) -> _native.Subscription:
        """Replay a recording, by default all of it, to a new subscription."""
        end = len(recording.log.data) if stop_position is None else stop_position
        term_length = recording.log.term_length
        terms, term_offset = divmod(position, term_length)
        initial = recording.log.initial_term_id
        term_id = (initial + terms + (1 << 31)) % (1 << 32) - (1 << 31)
        separator = "|" if "?" in channel else "?"
        publication = self.client.add_exclusive_publication(
            f"{channel}{separator}term-length={term_length}|init-term-id={initial}"
            f"|term-id={term_id}|term-offset={term_offset}",
            stream_id,
        )
        subscription = self.client.add_subscription(channel, stream_id if subscribe else 9999)
        self._exits.callback(subscription.close)
        arguments = ReplayArguments(
            replay_session_id=replay_session_id,
            recording_id=recording.recording_id,
            replay_position=position,
            replay_length=end - position if length is None else length,
            start_position=recording.start_position,
            stop_position=end,
            segment_length=recording.segment_length,
            term_length=term_length,
            stream_id=recording.log.stream_id,
            channel=channel,
            **{"connect_timeout_ns": 5_000_000_000} | options,
        )
        worker.replay(publication, arguments)
        return subscription

    def segment_bytes(self, recording: LiveRecording) -> bytes:
        """Return the segment files of a recording one after the other."""
        files = self.archive_dir.glob(f"{recording.recording_id}-*.rec")
        by_base = sorted(files, key=lambda path: int(path.stem.split("-")[1]))
        for index, path in enumerate(by_base):
            assert path.name == f"{recording.recording_id}-{index * recording.segment_length}.rec"
            assert path.stat().st_size == recording.segment_length
        return b"".join(path.read_bytes() for path in by_base)

    def poll(self, timeout_ns: int = 0) -> None:
        """Add what the mailbox has to `events`, as tuples."""
        self.events += map(as_tuple, self.mailbox.wait(timeout_ns=timeout_ns))

    def event(self, kind: str, identifier: int) -> tuple[Any, ...]:
        """Wait for and take an event of one recording or replay."""

        def look() -> tuple[Any, ...] | None:
            self.poll(timeout_ns=10_000_000)
            for event in self.events:
                if event[:2] == (kind, identifier):
                    self.events.remove(event)
                    return event
            return None

        return self.until(look)

    def await_position(self, recording: LiveRecording, position: int) -> None:
        """Wait until the position counter is there; it must not pass it."""
        self.until(lambda: recording.counter.get() >= position or None)
        assert recording.counter.get() == position

    def await_confirmed(self, recording: LiveRecording, position: int) -> None:
        """Wait until the recording is durable up to a position; it must not be beyond it."""
        confirmed = recording.confirmed
        assert confirmed is not None
        self.until(lambda: confirmed.get() >= position or None)
        assert confirmed.get() == position

    def receive(
        self, subscription: _native.Subscription, count: int, at_a_time: int = 100
    ) -> list[tuple[Any, ...]]:
        """Take `count` messages from a subscription."""
        messages: list[tuple[Any, ...]] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(messages) < count:
            assert time.monotonic() < deadline, f"{len(messages)} of {count} messages came"
            messages += subscription.poll(at_a_time, timeout_ns=10_000_000)
        return messages

    @staticmethod
    def until(look: Callable[[], T | None], timeout_s: float = TIMEOUT_S) -> T:
        """Call `look` until it returns something."""
        deadline = time.monotonic() + timeout_s
        while (found := look()) is None:
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.001)
        return found
