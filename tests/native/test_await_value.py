"""Waiting for the value of a counter."""

from __future__ import annotations

import resource
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from aerotape import _native
from aerotape.errors import ClosedError

SECOND_NS = 1_000_000_000


def test_a_wait_ends_with_the_value(client: _native.AeronClient) -> None:
    """It returns at once for a value that is reached, and in time for one that another thread
    sets; at the timeout it returns the value so far."""
    counter = client.add_counter(1_200, b"", "test")
    counters = client.counters()
    counter.set(7)
    place = counter.id, counter.registration_id
    assert counters.await_value(*place, 7, 60 * SECOND_NS) == 7
    assert counters.await_value(*place, 8, 0) == 7
    begin_s = time.monotonic()
    assert counters.await_value(*place, 8, SECOND_NS // 20) == 7
    assert time.monotonic() - begin_s >= 0.05
    later = threading.Timer(0.1, lambda: counter.set(9))
    later.start()
    assert counters.await_value(*place, 8, 60 * SECOND_NS) == 9
    later.join()


def test_a_wait_ends_with_the_counter(client: _native.AeronClient) -> None:
    """None for a counter that is freed meanwhile, or another one with that id."""
    counter = client.add_counter(1_200, b"", "test")
    counters = client.counters()
    assert counters.await_value(counter.id, counter.registration_id + 1, 0, 0) is None
    closing = threading.Timer(0.1, counter.close)
    closing.start()
    place = counter.id, counter.registration_id
    assert counters.await_value(*place, 1, 60 * SECOND_NS) is None
    closing.join()
    client.close()
    with pytest.raises(ClosedError):
        counters.await_value(*place, 1, 0)


def test_one_thread_of_a_client_polls_for_all(client: _native.AeronClient) -> None:
    """Fifty waiting threads wake as often as one does, which sleeps for at least 50 µs."""
    counter = client.add_counter(1_200, b"", "test")
    counters = client.counters()
    place = counter.id, counter.registration_id
    with ThreadPoolExecutor(50) as threads:
        waits = [threads.submit(counters.await_value, *place, 1, 60 * SECOND_NS) for _ in range(50)]
        time.sleep(0.2)
        begin_s, before = time.monotonic(), _voluntary_switches()
        time.sleep(0.5)
        switches, took_s = _voluntary_switches() - before, time.monotonic() - begin_s
        counter.set(1)
        assert [wait.result(10) for wait in waits] == [1] * 50
    assert switches < 1.5 * took_s / 50e-6


def test_every_waiting_thread_is_woken(client: _native.AeronClient) -> None:
    """Threads whose waits begin, end and expire in any order: each gets its value in time."""
    own = [client.add_counter(1_200, b"", "test") for _ in range(12)]
    counters = client.counters()

    def alternate(counter: _native.Counter, seed: int) -> None:
        chance = Random(seed)
        for value in range(1, 301):
            setting = threads.submit(counter.set, value)
            if chance.random() < 0.3:
                counters.await_value(counter.id, counter.registration_id, value + 1, 20_000)
            begin_s = time.monotonic()
            place = counter.id, counter.registration_id
            assert counters.await_value(*place, value, 60 * SECOND_NS) == value
            assert time.monotonic() - begin_s < 30
            setting.result()

    with ThreadPoolExecutor(4) as threads, ThreadPoolExecutor(12) as waiting:
        for ended in [waiting.submit(alternate, each, seed) for seed, each in enumerate(own)]:
            ended.result()


def test_the_end_of_the_client_ends_all_waits(client: _native.AeronClient) -> None:
    """The waits of all threads raise ClosedError, not only that of the one that polls."""
    counter = client.add_counter(1_200, b"", "test")
    counters = client.counters()
    place = counter.id, counter.registration_id
    with ThreadPoolExecutor(5) as threads:
        waits = [threads.submit(counters.await_value, *place, 1, 60 * SECOND_NS) for _ in range(5)]
        time.sleep(0.1)
        client.close()
        for wait in waits:
            with pytest.raises(ClosedError):
                wait.result(10)


def _voluntary_switches() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
