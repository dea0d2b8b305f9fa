"""What the archive reads of its driver's streams, on a real driver."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.daemon.control_rig import await_true
from support.daemon.recording import new_stream_id
from support.model.log_buffer import write_log_buffer
from support.processes import FAST_DRIVER, free_port

from aerotape import _native
from aerotape.archive.recording.driver_streams import DriverStreams
from aerotape.media_driver import launch_driver

IPC = "aeron:ipc?term-length=65536"
INITIAL_TERM_IDS = (0, -5, (1 << 31) - 2)
# So that the third term is reached, and the first one is used again.
ROUNDS = 300


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_native.AeronClient]:
    directory = str(tmp_path_factory.mktemp("streams") / "aeron")
    properties = {
        name: value for name, value in FAST_DRIVER.items() if not name.endswith("idle.strategy")
    }
    properties["aeron.spies.simulate.connection"] = "true"
    driver = launch_driver({**properties, "aeron.dir": directory})
    connected = _native.AeronClient(directory)
    yield connected
    connected.close()
    driver.close()


def the_image(subscription: _native.Subscription) -> _native.Image:
    await_true(lambda: subscription.image_count == 1)
    return subscription.images()[0]


@pytest.mark.parametrize("initial_term_id", INITIAL_TERM_IDS)
@pytest.mark.parametrize("kind", ["ipc", "udp", "spy"])
@pytest.mark.parametrize("is_exclusive", [True, False])
def test_what_a_publication_has_accepted(
    client: _native.AeronClient, kind: str, is_exclusive: bool, initial_term_id: int
) -> None:
    """After each message its position is the stop point, in each term."""
    udp = f"aeron:udp?endpoint=localhost:{free_port()}|term-length=65536"
    channel = IPC if kind == "ipc" else udp
    subscribed = f"aeron-spy:{channel}" if kind == "spy" else channel
    begin = ""
    if is_exclusive:
        begin = f"|init-term-id={initial_term_id}|term-id={initial_term_id}|term-offset=0"
    add = client.add_exclusive_publication if is_exclusive else client.add_publication
    stream_id = new_stream_id()
    with_end: Any = add(channel + begin, stream_id)
    subscription = client.add_subscription(subscribed, stream_id)
    image = the_image(subscription)
    streams = DriverStreams(client)
    assert streams.images(subscription.registration_id) == {image.correlation_id}
    assert streams.images(-1) == set()
    for index in range(ROUNDS):
        accepted = with_end.offer_within(bytes(700 + index), 10_000_000_000)
        assert accepted > 0
        point = streams.stop_point(image, subscribed)
        assert point.position == accepted
        assert streams.settle(point, image) == accepted
        subscription.poll(10)
    assert not streams.has_nothing(image)
    for each in (image.release, with_end.close, subscription.close):
        each()


def test_the_publication_of_another_driver(client: _native.AeronClient, tmp_path: Path) -> None:
    """Its stop point is what has been received a while later; a session id alone is no match."""
    directory = str(tmp_path / "aeron")
    properties = {
        name: value for name, value in FAST_DRIVER.items() if not name.endswith("idle.strategy")
    }
    driver = launch_driver({**properties, "aeron.dir": directory})
    other = _native.AeronClient(directory)
    channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    subscription = client.add_subscription(channel, 1)
    publication = other.add_exclusive_publication(f"{channel}|session-id=77", 1)
    elsewhere = f"aeron:udp?endpoint=localhost:{free_port()}|session-id=77"
    same_session = client.add_exclusive_publication(elsewhere, 1)
    image = the_image(subscription)
    streams = DriverStreams(client)
    publication.offer_within(bytes(500), 10_000_000_000)
    point = streams.stop_point(image, channel, 300_000_000)
    assert (point.position, streams.settle(point, image)) == (None, None)
    accepted = publication.offer_within(bytes(500), 10_000_000_000)
    await_true(lambda: time.monotonic_ns() >= point.known_ns)
    assert streams.settle(point, image) == point.position == accepted
    for each in (image.release, same_session.close, publication.close, subscription.close):
        each()
    other.close()
    driver.close()


@pytest.mark.parametrize("initial_term_id", [*INITIAL_TERM_IDS, -(1 << 31)])
@pytest.mark.parametrize("terms", [0, 1, 2, 3, 4, 1_000_000])
@pytest.mark.parametrize("offset", [0, 32, 65_504])
def test_log_buffers(tmp_path: Path, initial_term_id: int, terms: int, offset: int) -> None:
    """Also after many terms, where term ids overflow."""
    client: Any = type("Client", (), {"aeron_dir": str(tmp_path)})
    position = terms * 65_536 + offset
    write_log_buffer(tmp_path, 5, initial_term_id, 65_536, position)
    streams = DriverStreams(client)
    log = streams._log(5)
    assert log is not None
    assert (log.position, log.is_ended) == (position, False)
    assert streams._log(6) is None
    at_the_end: Any = SimpleNamespace(correlation_id=5, join_position=position)
    assert not streams.has_nothing(at_the_end)
    write_log_buffer(tmp_path, 5, initial_term_id, 65_536, position, is_ended=True)
    assert streams.has_nothing(at_the_end)
    earlier: Any = SimpleNamespace(correlation_id=5, join_position=position - 32)
    assert not streams.has_nothing(earlier)
