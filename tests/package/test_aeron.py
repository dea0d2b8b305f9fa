"""Publishing and subscribing from Python, over a driver for each test."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon.archives import EMBEDDED_DRIVER
from support.jvm.java import free_port
from support.model.messages import messages

import aerotape
from aerotape.aeron import BACK_PRESSURED, NOT_CONNECTED
from aerotape.errors import AeronError, AeronTimeoutError, ClosedError


@pytest.fixture
def aeron(aeron_dir: Path) -> Iterator[aerotape.Aeron]:
    """A client of a new driver."""
    with (
        aerotape.MediaDriver.launch(aeron_dir, EMBEDDED_DRIVER) as driver,
        aerotape.Aeron(driver.aeron_dir) as client,
    ):
        yield client


@pytest.mark.parametrize("channel", ["aeron:ipc", "aeron:udp?endpoint=localhost:0"])
@pytest.mark.parametrize("exclusive", [False, True])
def test_messages_arrive(aeron: aerotape.Aeron, channel: str, exclusive: bool) -> None:
    """Messages arrive in order and complete, with the header's fields."""
    payloads = list(messages(seed=7, count=100, min_length=0, max_length=6000))
    with aeron.add_subscription(channel, 11) as subscription:
        endpoint = subscription.resolved_endpoint()
        while channel != "aeron:ipc" and endpoint is None:
            endpoint = subscription.resolved_endpoint()
        target = channel if endpoint is None else f"aeron:udp?endpoint={endpoint}"
        add = aeron.add_exclusive_publication if exclusive else aeron.add_publication
        with add(target, 11) as publication:
            publication.wait_connected()
            subscription.wait_connected()
            sent: list[int] = []
            sender = threading.Thread(
                target=lambda: sent.extend(
                    publication.send(payload, reserved_value=index)
                    for index, payload in enumerate(payloads)
                )
            )
            sender.start()
            received = []
            for message in subscription:
                received.append(message)
                if len(received) == len(payloads):
                    break
            sender.join()
            assert [each.payload for each in received] == payloads
            assert [each.end_position for each in received] == sent
            assert [each.reserved_value for each in received] == list(range(100))
            assert {each.session_id for each in received} == {publication.session_id}
            assert {each.stream_id for each in received} == {11}
            whole = [len(each.payload) <= publication.max_payload_length for each in received]
            assert [each.flags == 0xC0 for each in received] == whole
            assert received[0].position == 0
            assert received[0].term_id == publication.initial_term_id
            assert publication.position == sent[-1]
            assert publication.channel == target


def test_without_a_subscriber(aeron: aerotape.Aeron) -> None:
    """Without a subscriber, offer returns at once, send and wait_connected raise after the
    timeout."""
    with aeron.add_publication("aeron:ipc", 12) as publication:
        assert publication.offer(b"x") == NOT_CONNECTED
        with pytest.raises(AeronTimeoutError, match=r"stream 12: no subscriber .* for 0.05 s"):
            publication.send(b"x", 50_000_000)
        with pytest.raises(AeronTimeoutError, match="no subscriber"):
            publication.wait_connected(50_000_000)
    channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    for options, names_spies in [("", True), ("|ssc=true", False)]:
        with (
            aeron.add_publication(channel + options, 12) as publication,
            pytest.raises(AeronTimeoutError, match=r"for 0\.05 s") as caught,
        ):
            publication.send(b"x", 50_000_000)
        assert ("is a spy" in str(caught.value)) is names_spies


def test_a_subscriber_that_does_not_read(aeron: aerotape.Aeron) -> None:
    """With a subscriber that does not read, sending ends in back pressure."""
    with (
        aeron.add_subscription("aeron:ipc", 13) as subscription,
        aeron.add_publication("aeron:ipc", 13) as publication,
    ):
        publication.wait_connected()
        while publication.offer(bytes(1000)) > 0:
            pass
        with pytest.raises(AeronTimeoutError, match="back pressure"):
            while True:
                publication.send(bytes(1000), 50_000_000)
        assert publication.offer(bytes(1000)) == BACK_PRESSURED
        assert len(subscription.poll(fragment_limit=5)) == 5


def test_too_long(aeron: aerotape.Aeron) -> None:
    """A message longer than an eighth of a term is refused."""
    with (
        aeron.add_subscription("aeron:ipc", 14),
        aeron.add_exclusive_publication("aeron:ipc", 14) as publication,
    ):
        publication.wait_connected()
        assert publication.max_message_length == publication.term_buffer_length // 8
        publication.send(bytes(publication.max_message_length))
        with pytest.raises((AeronError, ValueError), match=r"(?i)length"):
            publication.send(bytes(publication.max_message_length + 1))


def test_closed(aeron: aerotape.Aeron) -> None:
    """Closed publications and subscriptions raise ClosedError; iterating ends when closed."""
    subscription = aeron.add_subscription("aeron:ipc", 15)
    publication = aeron.add_publication("aeron:ipc", 15)
    publication.close()
    publication.close()
    assert publication.is_closed
    with pytest.raises(ClosedError, match="stream 15: the publication is closed"):
        publication.send(b"x")
    with (
        aeron.add_subscription("aeron:ipc", 16) as lonely,
        pytest.raises(AeronTimeoutError, match="no publisher"),
    ):
        lonely.wait_connected(50_000_000)
    threading.Timer(0.1, subscription.close).start()
    assert list(subscription) == []


def test_refused_by_the_driver(aeron: aerotape.Aeron) -> None:
    """A channel that the driver refuses raises AeronError with the reason."""
    with pytest.raises(AeronError, match=r"(?i)nonsense|channel"):
        aeron.add_publication("aeron:nonsense", 1)


def test_waiting_for_a_driver_can_be_interrupted(tmp_path: Path) -> None:
    """Ctrl-C ends the wait for a missing driver before the timeout."""
    # A shell may start the tests with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            aerotape.Aeron(tmp_path / "none", driver_timeout_ns=60_000_000_000)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


def test_the_error_without_a_driver_has_advice(tmp_path: Path) -> None:
    """The error has the directory, Aeron's code and the option for another directory."""
    with pytest.raises(AeronError, match=r"\(aeron_dir, \$AERON_DIR\)") as caught:
        aerotape.Aeron(tmp_path / "none", driver_timeout_ns=10_000_000)
    assert str(tmp_path / "none") in str(caught.value)
    assert caught.value.code == -1000


def test_a_file_as_a_drivers_directory(tmp_path: Path) -> None:
    """The error is raised without waiting, because no driver can start there."""
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(AeronError, match="it is not a directory; give that of one that runs"):
        aerotape.Aeron(file, driver_timeout_ns=3_600_000_000_000)


def test_a_driver_warns_about_unknown_properties(tmp_path: Path) -> None:
    """Names that are not Aeron's are ignored, with a warning."""
    done = subprocess.run(
        [sys.executable, "-m", "aerotape", "driver", "--aeron-dir", str(tmp_path / "driver"),
         "-Dareon.mtu.length=1408", "-Daeron.term.buffer.length=1"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    first, last = done.stderr.splitlines()
    assert first == "warning: areon.mtu.length is not an Aeron property, ignored"
    assert "aeron.term.buffer.length=1: expected a size" in last


def test_a_second_driver_in_a_directory_is_refused(aeron: aerotape.Aeron) -> None:
    """The error names the directory and the two remedies."""
    second = subprocess.run(
        [sys.executable, "-m", "aerotape", "driver", "--aeron-dir", aeron.aeron_dir],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert second.returncode == 1
    assert f"runs in {aeron.aeron_dir} already" in second.stderr
    assert "--driver external" in second.stderr


def receive(subscription: aerotape.Subscription, count: int) -> list[bytes]:
    """Return the payloads of the next `count` messages."""
    return [message.payload for _, message in zip(range(count), subscription, strict=False)]


@pytest.mark.parametrize("exclusive", [False, True])
def test_destinations_of_a_publication(aeron: aerotape.Aeron, exclusive: bool) -> None:
    """A publication with manual control sends only to its current destinations."""
    add = aeron.add_exclusive_publication if exclusive else aeron.add_publication
    with (
        aeron.add_subscription("aeron:udp?endpoint=localhost:0", 21) as first,
        aeron.add_subscription("aeron:udp?endpoint=localhost:0", 21) as second,
        add("aeron:udp?control-mode=manual|fc=max", 21) as publication,
    ):
        one, two = (wildcard_resolved(each) for each in (first, second))
        publication.add_destination(one)
        publication.send(b"to the first")
        assert receive(first, 1) == [b"to the first"]
        publication.add_destination(two)
        second.wait_connected()
        publication.remove_destination(one)
        publication.send(b"to the second")
        assert receive(second, 1) == [b"to the second"]
        assert first.poll(timeout_ns=100_000_000) == []
        publication.remove_destination(one)  # which the driver accepts as done
    with pytest.raises(ClosedError, match=r"publication .* closed"):
        publication.add_destination(one)


def test_destinations_of_a_subscription(aeron: aerotape.Aeron) -> None:
    """One image arrives over both destinations, and continues when one is removed."""
    control = f"aeron:udp?control=localhost:{free_port()}"
    live = f"{control}|endpoint=localhost:0"
    with (
        aeron.add_publication(f"{control}|control-mode=dynamic", 22) as publication,
        aeron.add_subscription("aeron:udp?control-mode=manual", 22) as subscription,
    ):
        pending = subscription.native.async_add_destination(live)
        while not pending.poll():
            pass
        assert pending.registration_id > 0
        with pytest.raises(ClosedError, match="completed or cancelled"):
            pending.poll()
        publication.send(b"over one")
        assert receive(subscription, 1) == [b"over one"]
        (image,) = subscription.images()
        while image.active_transport_count < 1:  # the driver checks about every second
            pass
        other = live.replace("endpoint=localhost", "endpoint=127.0.0.1")
        subscription.add_destination(other)
        while image.active_transport_count < 2:
            publication.send(b"until both are there")
            subscription.poll()
        subscription.remove_destination(live)
        publication.send(b"over the other")
        assert b"over the other" in (message.payload for message in subscription)
        assert [each.correlation_id for each in subscription.images()] == [image.correlation_id]
        assert not image.is_publication_revoked
    with pytest.raises(ClosedError, match="subscription is closed"):
        subscription.remove_destination(other)


def test_destinations_refused(aeron: aerotape.Aeron) -> None:
    """Destinations need manual control and a valid channel; else AeronError."""
    with (
        aeron.add_subscription("aeron:udp?endpoint=localhost:0", 23) as plain,
        aeron.add_subscription("aeron:udp?control-mode=manual", 23) as manual,
    ):
        with pytest.raises(AeronError, match="cannot add the destination aeron:udp"):
            plain.add_destination("aeron:udp?endpoint=localhost:0")
        with pytest.raises(AeronError, match="cannot add the destination nonsense"):
            manual.add_destination("nonsense")
        # Commands whose responses are not polled do not affect later ones.
        for _ in range(10):
            manual.native.async_add_destination("nonsense")
            manual.native.async_add_destination("aeron:udp?endpoint=localhost:0")
        manual.add_destination("aeron:udp?endpoint=localhost:0")


def wildcard_resolved(subscription: aerotape.Subscription) -> str:
    """Return the channel of a subscription with a port chosen by the system."""
    while (endpoint := subscription.resolved_endpoint()) is None:
        pass
    return f"aeron:udp?endpoint={endpoint}"
