"""A hundred clients at once, each with a session, a recording and a replay."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from support.daemon.archives import KINDS
from support.daemon.control_rig import await_true
from support.daemon.recording import new_stream_id, wait_until
from support.model.messages import messages

import aerotape

pytestmark = pytest.mark.slow

CLIENTS = 100
# Archive clients per Aeron client; each Aeron client has a thread.
CLIENTS_OF_AN_AERON = 5
IPC = "aeron:ipc?term-length=64k"
# One counter for each recording and each session.
OF_EACH = (100, 113)
# Counters of control, recording and replay sessions, which are not closed.
TOTALS = (102, 111, 112)
PROPERTIES = {
    "aeron.archive.max.concurrent.recordings": "200",
    "aeron.archive.max.concurrent.replays": "200",
    # A hundred threads and an archive on a core or two.
    "aeron.archive.connect.timeout": "60s",
}
TIMEOUT_NS = 60_000_000_000


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest, run_archive: Callable[..., Any]) -> Iterator[Any]:
    """Each archive in turn, with limits high enough for all."""
    with run_archive(request.param, PROPERTIES) as running:
        yield running


class Crowd:
    """Barriers and results that the clients share, so that all are active at once."""

    def __init__(self, archive: Any, aerons: list[aerotape.Aeron]) -> None:
        self.archive = archive
        self.aerons = itertools.cycle(aerons)
        self.together = threading.Barrier(CLIENTS, timeout=120)
        self.seen: list[dict[int, int]] = []

    def counted(self) -> dict[int, int]:
        """Return the values of the totals, and the number of counters of each other kind."""
        counters = next(self.aerons).native.counters()
        totals = {type_id: counters.rows(type_id)[0][7] for type_id in TOTALS}
        return totals | {type_id: len(counters.rows(type_id)) for type_id in OF_EACH}

    def be_one_of(self, number: int, aeron: aerotape.Aeron) -> int:
        """Connect, record, list, replay, stop; return how many of its messages were replayed."""
        try:
            channel = "aeron:ipc" if number % 2 else self.archive.control_channel
            with aerotape.connect(
                aeron=aeron,
                control_request_channel=channel,
                control_response_stream_id=10_000 + number,
                timeout_ns=TIMEOUT_NS,
            ) as client:
                return self._use(client, number)
        except BaseException:
            self.together.abort()
            raise

    def _use(self, client: aerotape.ArchiveClient, number: int) -> int:
        stream_id = new_stream_id()
        sent = list(messages(number, 40, 0, 4000))
        subscription_id = client.start_recording(IPC, stream_id)
        publication = client.aeron.add_exclusive_publication(IPC, stream_id)
        wait_until(
            lambda: bool(list(client.list_recordings_for_uri("", stream_id))),
            "a recording",
            timeout_s=60,
        )
        [recording] = client.list_recordings_for_uri("", stream_id)
        assert (recording.session_id, recording.stop_position) == (publication.session_id, -1)
        for payload in sent:
            publication.send(payload)
        self.together.wait()
        if number == 0:
            self.seen.append(self.counted())
        self.together.wait()
        with client.replay(recording.recording_id, follow=True) as replayed:
            came = [each.payload for each in itertools.islice(replayed, len(sent))]
            self.together.wait()
            if number == 0:
                self.seen.append(self.counted())
            self.together.wait()
        client.stop_recording_subscription(subscription_id)
        wait_until(
            lambda: client.stop_position(recording.recording_id) == publication.position,
            "the stop position",
            timeout_s=60,
        )
        publication.close()
        assert came == sent
        return len(came)


def test_a_hundred_clients(archive: Any) -> None:
    """All clients are served concurrently, and their resources are released."""
    with ExitStack() as stack, ThreadPoolExecutor(CLIENTS) as pool:
        aerons = [
            stack.enter_context(aerotape.Aeron(archive.aeron_dir))
            for _ in range(CLIENTS // CLIENTS_OF_AN_AERON)
        ]
        crowd = Crowd(archive, aerons)
        made = [
            pool.submit(crowd.be_one_of, number, next(crowd.aerons)) for number in range(CLIENTS)
        ]
        assert sum(each.result() for each in made) == 40 * CLIENTS
        recording, replaying = crowd.seen
        assert recording == {102: CLIENTS, 111: CLIENTS, 112: 0, 100: CLIENTS, 113: CLIENTS}
        assert replaying == {**recording, 112: CLIENTS}
        await_true(lambda: not any(crowd.counted().values()))
        with aerotape.connect(aeron=aerons[0]) as client:
            assert len(list(client.list_recordings())) == CLIENTS
