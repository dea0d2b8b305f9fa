"""Random histories of recordings: nothing is missing that was accepted before a stop was sent."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

import pytest
from support.daemon.archives import ServedArchive, serve
from support.daemon.control_rig import await_true
from support.daemon.recording import await_listed, new_stream_id
from support.processes import free_port

import aerotape
from aerotape.codecs.generated.archive import SourceLocation

TIMEOUT_NS = 60_000_000_000
PERIODS = 12


@dataclass
class Sender:
    """A publication, and what it has accepted.

    Attributes:
        sent: payloads by the position after each.
        accepted: position up to which messages were accepted before the stop was sent.
    """

    publication: aerotape.ExclusivePublication
    sent: dict[int, bytes] = field(default_factory=dict)
    accepted: int = 0

    def __post_init__(self) -> None:
        self.session_id = self.publication.session_id
        self.begin = self.accepted = self.publication.position

    def send(self, payload: bytes) -> None:
        self.sent[self.publication.send(payload, timeout_ns=TIMEOUT_NS)] = payload

    def close(self) -> None:
        self.accepted = max(self.sent, default=self.begin)
        self.publication.close()


class History:
    """Recordings that are started, extended and stopped, one after the other, at random."""

    def __init__(self, client: aerotape.ArchiveClient, kind: str, rng: random.Random) -> None:
        self.client, self.rng = client, rng
        udp = f"aeron:udp?endpoint=localhost:{free_port()}"
        self.channel = "aeron:ipc" if kind == "ipc" else udp
        self.location = SourceLocation.REMOTE if kind == "udp" else SourceLocation.LOCAL
        self.senders: list[tuple[int, Sender]] = []
        self.extendable: list[int] = []

    def pause(self) -> None:
        time.sleep(self.rng.choice([0, 0, 0, 0.0005, 0.003, 0.02]))

    def run(self) -> None:
        for _ in range(PERIODS):
            if self.extendable and self.rng.random() < 0.4:
                self.extend(self.rng.choice(self.extendable))
            else:
                self.record()
            self.pause()

    def record(self) -> None:
        stream_id = new_stream_id()
        auto_stop = self.rng.random() < 0.3
        subscription_id = self.client.start_recording(
            self.channel, stream_id, self.location, auto_stop=auto_stop
        )
        self.pause()
        senders = [self.add(stream_id) for _ in range(self.rng.choice([1, 1, 2, 3]))]
        self.send(senders)
        how = self.rng.choice(["channel", "subscription", "identity", "close"])
        if how == "identity" and len(senders) == 1 and senders[0].sent:
            recording_id = await_listed(self.client, stream_id)
            self.note(senders)
            self.client.stop_recording_by_identity(recording_id)
        elif how == "subscription":
            self.note(senders)
            self.client.stop_recording_subscription(subscription_id)
        elif how == "close" and auto_stop:
            self.note(senders)
            senders[0].close()
        else:
            self.note(senders)
            self.client.stop_recording(self.channel, stream_id)
        self.leave(senders)
        if len(senders) == 1 and senders[0].sent:
            self.extendable.append(stream_id)

    def extend(self, stream_id: int) -> None:
        found = list(self.client.list_recordings_for_uri("", stream_id))
        if not found or found[0].is_active:
            return
        [recording] = found
        self.client.extend_recording(recording.recording_id, self.channel, stream_id, self.location)
        sender = self.add(stream_id, aerotape.extension_channel(recording, self.channel))
        self.send([sender])
        self.note([sender])
        self.client.stop_recording(self.channel, stream_id)
        self.leave([sender])

    def add(self, stream_id: int, channel: str = "") -> Sender:
        add = self.client.aeron.add_exclusive_publication
        sender = Sender(add(channel or self.channel, stream_id))
        self.senders.append((stream_id, sender))
        self.pause()
        return sender

    def send(self, senders: list[Sender]) -> None:
        for _ in range(self.rng.choice([0, 1, 7, 40])):
            self.rng.choice(senders).send(self.rng.randbytes(self.rng.randrange(3_000)))
            if self.rng.random() < 0.05:
                self.pause()

    def note(self, senders: list[Sender]) -> None:
        for sender in senders:
            sender.accepted = max(sender.sent, default=sender.begin)

    def leave(self, senders: list[Sender]) -> None:
        """Publish what need not be recorded; close, soon or late."""
        for sender in senders:
            self.pause()
            if self.rng.random() < 0.3 and not sender.publication.is_closed:
                payload = self.rng.randbytes(100)
                position = sender.publication.offer(payload)
                if position > 0:
                    sender.sent[position] = payload
            sender.publication.close()

    def check(self, served: ServedArchive) -> None:
        """Compare each sender's messages with those of the recordings of its stream."""
        streams = {stream_id for stream_id, _ in self.senders}
        await_true(
            lambda: (
                not any(
                    each.is_active
                    for each in self.client.list_recordings()
                    if each.stream_id in streams
                )
            )
        )
        read: dict[int, list[dict[int, bytes]]] = {}
        for recording in aerotape.open_directory(served.archive_dir).recordings():
            if recording.descriptor.stream_id in streams:
                messages = {each.end_position: each.payload for each in recording.messages()}
                read.setdefault(recording.descriptor.stream_id, []).append(messages)
        for stream_id, sender in self.senders:
            wanted = {
                end: payload for end, payload in sender.sent.items() if end <= sender.accepted
            }
            found = read.get(stream_id, [])
            assert not wanted or any(wanted.items() <= each.items() for each in found), (
                f"stream {stream_id} from {sender.begin} to {sender.accepted}:"
                f" recorded up to {[max(each, default=0) for each in found]}"
            )


@pytest.mark.parametrize("kind", ["ipc", "udp", "spy"])
@pytest.mark.parametrize("mode", ["SHARED", "DEDICATED"])
def test_random_histories(seeds: range, mode: str, kind: str) -> None:
    """Starts, extensions, messages, all kinds of stops and ends, with small delays."""
    properties = {
        "aeron.archive.max.concurrent.recordings": "1000",
        "aeron.spies.simulate.connection": "true",
        "aeron.archive.threading.mode": mode,
    }
    with serve("aerotape", properties) as served, served.connect() as client:
        for seed in seeds:
            history = History(client, kind, random.Random(f"{seed} {mode} {kind}"))
            history.run()
            history.check(served)
