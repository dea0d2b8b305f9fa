"""Publish to streams that an archive records, plain ones or ledgers; `durability.py` runs it.

    adding.py AERON_DIR CONTROL_CHANNEL KIND STREAMS LENGTH flood COUNT
    adding.py AERON_DIR CONTROL_CHANNEL KIND STREAMS LENGTH one SECONDS

KIND is PLAIN, PD_JOURNAL or VD_JOURNAL. One loop of one thread serves all streams, and reads the
counters of their positions; a single one with one message outstanding is awaited as by
`LedgerWriter.add`. It prints "ready", and at the end JSON: with `flood`, the messages and the
megabytes of frames per second until COUNT messages of each stream are acknowledged, all sent as
fast as there is room, the second of two times; with `one`, the acknowledgements per second and
their median and 99th percentile in microseconds, with one message outstanding in each stream.
"""

from __future__ import annotations

import json
import os
import sys
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from aerotape import _native
from aerotape.aeron import Aeron
from aerotape.client.blocking.ledgers import LedgerWriter
from aerotape.clients import ArchiveClient, connect
from aerotape.codecs.journal_type import JournalType
from aerotape.counter_keys import CounterType

FIRST_STREAM_ID = 1001
BURST = 256
WARM_UP_S = 1.0
PATIENCE_S = 60.0
PATIENCE_NS = 10_000_000_000
WAIT_NS = 50_000_000


class Stream(Protocol):
    """A recorded stream: the counter that acknowledges, and how to send."""

    counter_id: int

    def send(self, count: int) -> int:
        """Send messages while there is room; return how many."""

    def add(self) -> None:
        """Send one message."""

    @property
    def position(self) -> int:
        """The position after the last message."""


class PlainStream:
    """A publication, with the counter of its recording."""

    def __init__(self, publication: _native.ExclusivePublication, payload: bytes) -> None:
        self.publication = publication
        self.counter_id = -1
        self._payload = payload
        self._slices = array("q", [0, len(payload)] * BURST)

    def send(self, count: int) -> int:
        sent, _ = self.publication.offer_slices(b"", self._payload, self._slices[: 2 * count])
        return sent

    def add(self) -> None:
        if self.publication.offer_within(self._payload, PATIENCE_NS) < 0:
            raise RuntimeError("the archive does not take messages")

    @property
    def position(self) -> int:
        return self.publication.position


class LedgerStream:
    """The writer of a ledger, with the counter that acknowledges its entries."""

    def __init__(self, writer: LedgerWriter, payload: bytes) -> None:
        info = writer._writing.info
        is_durable = info.type == "PD_JOURNAL"
        self.counter_id = info.confirmed_counter_id if is_durable else info.recording_counter_id
        self._writer = writer._writing.native
        self._payload = payload
        self._payloads = [payload] * BURST

    def send(self, count: int) -> int:
        before = self._writer.last_add_pushed
        last, _ = self._writer.add_many(self._payloads[:count])
        return last - before

    def add(self) -> None:
        if self._writer.add(self._payload, PATIENCE_NS)[1] < 0:
            raise RuntimeError("the archive does not take entries")

    @property
    def position(self) -> int:
        return self._writer.position


def recordings(
    aeron: Aeron, client: ArchiveClient, channel: str, streams: int, payload: bytes
) -> list[PlainStream]:
    """Record new publications, each of a stream of its own."""
    native = aeron.native
    created = []
    for stream_id in range(FIRST_STREAM_ID, FIRST_STREAM_ID + streams):
        client.start_recording(channel, stream_id)
        publication = native.add_exclusive_publication(channel, stream_id)
        created.append(PlainStream(publication, payload))
    deadline = time.monotonic() + PATIENCE_S
    while any(stream.counter_id < 0 for stream in created):
        if time.monotonic() > deadline:
            raise RuntimeError("the recordings do not start")
        time.sleep(0.01)
        found = {
            int.from_bytes(key[8:12], "little", signed=True): counter_id
            for counter_id, _, key, *_ in native.counters().rows(CounterType.RECORDING_POSITION)
        }
        for stream in created:
            stream.counter_id = found.get(stream.publication.session_id, -1)
    return created


def flood(
    streams: Sequence[Stream], count: int, counters: _native.CountersReader
) -> dict[str, float]:
    """Send as fast as there is room, until all is acknowledged; return the rates."""
    begin = sum(stream.position for stream in streams)
    began_at = time.perf_counter()
    left = dict.fromkeys(range(len(streams)), count)
    while left:
        has_sent = False
        for number in tuple(left):
            sent = streams[number].send(min(BURST, left[number]))
            has_sent |= sent > 0
            left[number] -= sent
            if left[number] == 0:
                del left[number]
        if not has_sent:
            check_patience(began_at)
            os.sched_yield()
    for stream in streams:
        while counters.value(stream.counter_id) < stream.position:
            check_patience(began_at)
            os.sched_yield()
    took_s = time.perf_counter() - began_at
    length = sum(stream.position for stream in streams) - begin
    return {"per_s": count * len(streams) / took_s, "mb_per_s": length / took_s / 1e6}


def check_patience(began_at: float) -> None:
    """Raise an error if a flood takes so long that the archive must have failed."""
    if time.perf_counter() - began_at > PATIENCE_S:
        raise RuntimeError("the archive does not keep up")


def one_each(
    streams: Sequence[Stream], seconds: float, counters: _native.CountersReader
) -> dict[str, float]:
    """Send a message to each stream whenever the one before is acknowledged."""
    count = len(streams)
    began_ns, ends, counter_ids = [0] * count, [0] * count, [each.counter_id for each in streams]
    registration_ids = [counters.registration_id(counter_id) for counter_id in counter_ids]
    value, taken_ns = counters.value, array("q")
    begin_at = time.perf_counter_ns() + int(WARM_UP_S * 1e9)
    end_at = begin_at + int(seconds * 1e9)
    for number, stream in enumerate(streams):
        began_ns[number] = time.perf_counter_ns()
        stream.add()
        ends[number] = stream.position
    while (now := time.perf_counter_ns()) < end_at:
        is_idle = True
        for number in range(count):
            if value(counter_ids[number]) >= ends[number]:
                now = time.perf_counter_ns()
                if now >= begin_at:
                    taken_ns.append(now - began_ns[number])
                began_ns[number] = now
                stream = streams[number]
                stream.add()
                ends[number] = stream.position
                is_idle = False
        if is_idle and count == 1:
            counters.await_value(counter_ids[0], registration_ids[0], ends[0], WAIT_NS)
        elif is_idle:
            os.sched_yield()
    ordered = sorted(taken_ns)
    return {
        "per_s": len(ordered) / seconds,
        "median_us": ordered[len(ordered) // 2] / 1e3,
        "p99_us": ordered[len(ordered) * 99 // 100] / 1e3,
    }


def main() -> None:
    """Publish and print the result."""
    aeron_dir, control_channel, kind, *numbers, mode, amount = sys.argv[1:]
    streams, length = map(int, numbers)
    channel = f"aeron:ipc?term-length={'16m' if streams == 1 else '1m'}"
    payload = bytes(length)
    with (
        Aeron(Path(aeron_dir)) as aeron,
        connect(aeron=aeron, control_request_channel=control_channel) as client,
    ):
        opened: Sequence[Stream]
        if kind == "PLAIN":
            opened = recordings(aeron, client, channel, streams, payload)
        else:
            type_name: JournalType = "VD_JOURNAL" if kind == "VD_JOURNAL" else "PD_JOURNAL"
            writers = [client.create_ledger(type_name, channel=channel) for _ in range(streams)]
            opened = [LedgerStream(writer, payload) for writer in writers]
        print("ready", flush=True)
        counters = aeron.native.counters()
        if mode == "flood":
            flood(opened, int(amount), counters)
            result = flood(opened, int(amount), counters)
        else:
            result = one_each(opened, float(amount), counters)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
