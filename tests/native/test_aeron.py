"""The Aeron client and the embedded driver of `aerotape._native`."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.own_process import run_python

from aerotape import _native
from aerotape.errors import AeronError, ClosedError

SECOND_NS = 1_000_000_000
NOT_CONNECTED, BACK_PRESSURED, CLOSED = -1, -2, -4


@pytest.fixture
def driver(aeron_dir: Path) -> Iterator[_native.MediaDriver]:
    properties = {
        "aeron.dir": str(aeron_dir),
        "aeron.threading.mode": "SHARED",
        "aeron.dir.delete.on.start": "true",
        "aeron.dir.delete.on.shutdown": "true",
        "aeron.term.buffer.sparse.file": "true",
        "aeron.term.buffer.length": "65536",
        "aeron.ipc.term.buffer.length": "65536",
    }
    driver = _native.MediaDriver.launch(properties)
    yield driver
    driver.close()


def receive(subscription: _native.Subscription, count: int) -> list[tuple[object, ...]]:
    """Poll until `count` messages have arrived, or fail after 10 seconds without one."""
    messages: list[tuple[object, ...]] = []
    while len(messages) < count:
        polled = subscription.poll(100, 10 * SECOND_NS)
        assert polled, f"only {len(messages)} of {count} messages came"
        messages += polled
    return messages


def test_driver_directory_is_created_and_deleted(
    driver: _native.MediaDriver, aeron_dir: Path
) -> None:
    """A launched driver has its CnC file in the given directory; closing deletes it."""
    assert (aeron_dir / "cnc.dat").exists()
    assert driver.aeron_dir == str(aeron_dir)
    driver.close()
    driver.close()
    assert driver.is_closed
    assert not aeron_dir.exists()


def test_driver_refuses_a_bad_property(aeron_dir: Path) -> None:
    """A property that the driver cannot use is an AeronError, and no driver keeps running."""
    with pytest.raises(AeronError, match="media driver"):
        _native.MediaDriver.launch({"aeron.dir": str(aeron_dir), "aeron.mtu.length": "7"})


def test_an_error_is_reported_once(
    driver: _native.MediaDriver, client: _native.AeronClient, aeron_dir: Path
) -> None:
    """A driver that cannot start reports its own reason, not that of an earlier failure."""
    with pytest.raises(AeronError, match="nonsense"):
        client.add_publication("aeron:udp?endpoint=nonsense", 7)
    with pytest.raises(AeronError) as failed:
        _native.MediaDriver.launch({"aeron.dir": str(aeron_dir), "aeron.threading.mode": "SHARED"})
    assert "nonsense" not in str(failed.value)
    assert str(aeron_dir) in str(failed.value)


def test_buffers_other_than_bytes_can_be_offered(client: _native.AeronClient) -> None:
    """bytearray and memoryview are sent as their bytes; a strided view is refused."""
    subscription = client.add_subscription("aeron:ipc", 7)
    publication = client.add_publication("aeron:ipc", 7)
    for data in (bytearray(b"abc"), memoryview(b"xdefx")[1:4]):
        assert publication.offer_within(data, SECOND_NS) > 0
    assert [message[0] for message in receive(subscription, 2)] == [b"abc", b"def"]
    with pytest.raises((ValueError, BufferError)):
        publication.offer(memoryview(b"abcdef")[::2])


def test_a_buffer_is_sent_as_it_was_when_it_was_offered(client: _native.AeronClient) -> None:
    """What another thread puts into it while the offer waits is not sent."""
    publication = client.add_exclusive_publication("aeron:ipc", 102)
    data = bytearray(b"offered")
    subscriptions: list[_native.Subscription] = []

    def change() -> None:
        time.sleep(0.2)
        data[:] = b"changed"
        subscriptions.append(client.add_subscription("aeron:ipc", 102))

    changing = threading.Thread(target=change)
    changing.start()
    assert publication.offer_within(data, 20 * SECOND_NS) > 0
    changing.join()
    [message] = receive(subscriptions[0], 1)
    assert message[0] == b"offered"


def test_refused_channel_is_reported(client: _native.AeronClient) -> None:
    """A channel that the driver cannot parse is an error with the channel."""
    with pytest.raises(AeronError, match="endpoint=nonsense"):
        client.add_publication("aeron:udp?endpoint=nonsense", 7)
    with pytest.raises(AeronError, match="NUL"):
        client.add_subscription("aeron:ipc\0", 7)


CONNECT_IN_THREADS = """
import threading
from aerotape import _native
from aerotape.errors import AeronError

def connect():
    for _ in range(5):
        try:
            _native.AeronClient({aeron_dir!r}, driver_timeout_ms=100)
        except AeronError as error:
            errors.append(error)

errors = []
threads = [threading.Thread(target=connect) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(errors), {{error.code for error in errors}}, errors[0])
"""


@pytest.mark.parametrize(
    ("first_bytes", "reason"),
    [(b"", "no driver heartbeat"), (bytes(4), "CnC file")],
    ids=["stale", "not initialised"],
)
def test_threads_that_find_a_dead_driver_do_not_crash(
    driver: _native.MediaDriver, tmp_path: Path, first_bytes: bytes, reason: str
) -> None:
    """Threads that connect while the driver is dead each get an error; the process continues."""
    cnc = (Path(driver.aeron_dir) / "cnc.dat").read_bytes()
    (tmp_path / "cnc.dat").write_bytes(first_bytes + cnc[len(first_bytes) :])
    time.sleep(0.2)
    done = run_python("-c", CONNECT_IN_THREADS.format(aeron_dir=str(tmp_path)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"80 {{-1000}} cannot connect to a media driver in {tmp_path}: ")
    assert reason in done.stdout


def test_mailbox_reports_losses_only_on_request(driver: _native.MediaDriver) -> None:
    """Of two subscriptions to a stream that ends, one receives its end, both its beginning."""
    mailbox = _native.Mailbox()
    client = _native.AeronClient(driver.aeron_dir, mailbox=mailbox)
    asked = [
        client.async_add_subscription("aeron:ipc", 9, mailbox, report_unavailable=reported)
        for reported in (False, True)
    ]
    publication = client.add_exclusive_publication("aeron:ipc", 9)
    events: list[_native.Event] = []
    deadline = time.monotonic() + 10

    def wait_for(kind: type, count: int) -> None:
        while sum(type(event) is kind for event in events) < count:
            assert time.monotonic() < deadline, f"{count} of {kind} are not in {events}"
            events.extend(mailbox.wait(timeout_ns=SECOND_NS // 100))

    wait_for(_native.ImageAvailable, 2)
    publication.close()
    for event in events:
        assert isinstance(event, _native.ImageAvailable)
        event.image.release()
    events.clear()
    wait_for(_native.ImageUnavailable, 1)
    # C has called for both, in the order in which they were added.
    [event] = events
    assert isinstance(event, _native.ImageUnavailable)
    assert event.subscription_registration_id == asked[1].registration_id
    assert event.image_correlation_id == publication.registration_id
    assert mailbox.wait(timeout_ns=SECOND_NS // 10) == []
    client.close()


def correlation_id(event: _native.Event) -> int:
    """Return the correlation id of the image that an event is about."""
    if isinstance(event, _native.ImageAvailable):
        return event.image.correlation_id
    assert isinstance(event, _native.ControlMessage | _native.ImageUnavailable)
    return event.image_correlation_id


def test_mailbox_reports_losses_after_messages(driver: _native.MediaDriver) -> None:
    """Image and message are reported before the loss of the image, for each image.

    With a limit of one fragment the images are polled alternately, within their messages.
    """
    mailbox = _native.Mailbox()
    client = _native.AeronClient(driver.aeron_dir, mailbox=mailbox)
    subscription = client.add_subscription("aeron:ipc", 9, mailbox)
    publications = [client.add_exclusive_publication("aeron:ipc", 9) for _ in range(2)]
    sent = {}
    for number, publication in enumerate(publications):
        sent[publication.session_id] = bytes([number]) * 3000
        assert publication.offer_within(sent[publication.session_id], SECOND_NS) > 0
        publication.close()
    events: list[_native.Event] = []
    while sum(isinstance(event, _native.ImageUnavailable) for event in events) < 2:
        received = mailbox.wait([subscription], 10 * SECOND_NS, 1)
        assert received, f"nothing more after {events}"
        events += received
    images = [event.image for event in events if isinstance(event, _native.ImageAvailable)]
    assert {image.session_id for image in images} == sent.keys()
    for image in images:
        of_image = [event for event in events if correlation_id(event) == image.correlation_id]
        [message] = [event for event in of_image if isinstance(event, _native.ControlMessage)]
        assert (message.session_id, message.payload) == (image.session_id, sent[image.session_id])
        assert message.subscription_registration_id == subscription.registration_id
        assert len(of_image) == 3
        assert isinstance(of_image[-1], _native.ImageUnavailable)
        assert image.term_buffer_length == 65536
        assert image.source_identity == "aeron:ipc"
        image.release()
    client.close()


def allocated_kib() -> int:
    """Return the memory of this process that is not mapped from files."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)[0])


def test_an_unfinished_message_goes_with_its_image(driver: _native.MediaDriver) -> None:
    """Publishers that are gone within a message leave none of its bytes in memory."""
    mailbox = _native.Mailbox()
    client = _native.AeronClient(driver.aeron_dir, mailbox=mailbox)
    subscription = client.add_subscription("aeron:ipc", 9, mailbox)
    count = 100

    def await_events(kind: type) -> None:
        deadline, missing = time.monotonic() + 20, count
        while missing:
            missing -= [type(each) for each in mailbox.wait([subscription], 0, 0)].count(kind)
            assert time.monotonic() < deadline, f"{missing} {kind} are missing"

    def begin_messages() -> None:
        """Read 20 of the 44 fragments of messages, then revoke their publications."""
        channel = "aeron:ipc?term-length=1m"
        publications = [client.add_exclusive_publication(channel, 9) for _ in range(count)]
        for publication in publications:
            assert publication.offer_within(bytes(60_000), SECOND_NS) > 0
        await_events(_native.ImageAvailable)
        for _ in range(count):  # each begins with another image
            assert mailbox.wait([subscription], 0, 20) == []
        for publication in publications:
            publication.revoke()
        await_events(_native.ImageUnavailable)

    begin_messages()
    before = allocated_kib()
    for _ in range(3):
        begin_messages()
    assert allocated_kib() - before < 3_000  # 8,000 and more if they were kept
    client.close()


def wake_ups(tasks: set[Path]) -> int:
    """Return how often threads of this process have begun to run after waiting."""
    statuses = ((task / "status").read_text() for task in tasks)
    return sum(int(re.findall(r"\nvoluntary_ctxt_switches:\s+(\d+)", each)[0]) for each in statuses)


def test_a_wait_that_polls_does_the_clients_work(driver: _native.MediaDriver) -> None:
    """It ends with the driver's response, and the client's own thread sleeps for 10 ms at a time;
    after it, that thread does the work."""
    mailbox = _native.Mailbox()
    before = set(Path("/proc/self/task").iterdir())
    client = _native.AeronClient(driver.aeron_dir, mailbox=mailbox)
    own = set(Path("/proc/self/task").iterdir()) - before
    assert len(own) == 1
    subscription = client.add_subscription("aeron:ipc", 8, mailbox)
    assert mailbox.wait([subscription], SECOND_NS // 10) == []
    count = wake_ups(own)
    assert mailbox.wait([subscription], SECOND_NS) == []
    assert wake_ups(own) - count < 200  # about a thousand if it polled the driver itself
    for stream_id in range(20):
        assert mailbox.wait([subscription], SECOND_NS // 100) == []
        pending = client.async_add_publication("aeron:ipc", 100 + stream_id)
        deadline = time.monotonic() + 10
        while (publication := pending.poll()) is None:
            assert time.monotonic() < deadline
            mailbox.wait([subscription], 60 * SECOND_NS)
        publication.close()
        client.add_publication("aeron:ipc", 200 + stream_id).close()
    client.close()


def test_results_that_are_not_fetched_cost_nothing(driver: _native.MediaDriver) -> None:
    """The client's thread wakes up about as often with pending adds as without, and they can be
    fetched after any time; so it is beside a command now and then."""
    before = set(Path("/proc/self/task").iterdir())
    client = _native.AeronClient(driver.aeron_dir)
    own = set(Path("/proc/self/task").iterdir()) - before

    def wakes_up(times: int) -> int:
        count = wake_ups(own)
        for _ in range(times):
            time.sleep(0.5)
            client.add_counter(2001, b"", "now and then").close()
        return wake_ups(own) - count

    idle = wakes_up(4)
    publication = client.async_add_publication("aeron:ipc", 1)
    subscription = client.async_add_subscription("aeron:ipc", 1)
    counter = client.async_add_counter(2000, b"", "pending")
    assert wakes_up(4) < 3 * idle + 500  # was about ten times as often
    assert None not in (publication.poll(), subscription.poll(), counter.poll())
    client.close()


def test_mailbox_wake_ends_a_wait() -> None:
    """A wait without a timeout returns as soon as another thread wakes it."""
    mailbox = _native.Mailbox()
    received: list[list[_native.Event]] = []
    waiter = threading.Thread(target=lambda: received.append(mailbox.wait((), 60 * SECOND_NS)))
    waiter.start()
    mailbox.wake()
    waiter.join(10)
    assert received == [[]]


def test_counters_are_visible_to_all_clients(client: _native.AeronClient) -> None:
    """Our counter is found by type with key, label and value; closing it frees it."""
    counter = client.add_counter(1001, b"\x01\x02", "a label")
    counter.set(5)
    assert counter.add(2) == 5
    [row] = client.counters().rows(1001)
    assert row[:2] == (counter.id, 1001)
    assert row[2].startswith(b"\x01\x02\x00")
    assert row[3:5] == ("a label", counter.registration_id)
    assert row[5] == client.client_id
    assert row[7] == 7
    counter.close()
    assert counter.is_closed
    assert counter.get() == 7
    with pytest.raises(AeronError, match="no counter"):
        client.counters().value(client.counters().max_counter_id + 1)
    with pytest.raises(AeronError, match="no counter"):
        client.counters().key(-1)


def test_everything_is_closed_with_the_client(client: _native.AeronClient) -> None:
    """After the client is closed, its objects are closed instead of accessing freed memory."""
    subscription = client.add_subscription("aeron:ipc", 7)
    publication = client.add_publication("aeron:ipc", 7)
    counter = client.add_counter(1001, b"", "x")
    assert publication.offer_within(b"x", SECOND_NS) > 0
    [image] = subscription.images()
    client.close()
    assert client.is_closed
    assert publication.offer(b"x") == CLOSED
    assert image.is_closed
    assert image.position == -1
    assert counter.is_closed
    with pytest.raises(ClosedError):
        subscription.poll()
    with pytest.raises(ClosedError):
        client.next_correlation_id()


def test_refused_adds_can_be_polled_and_cancelled(client: _native.AeronClient) -> None:
    """A pending add raises the driver's error once; cancelling one raises nothing."""
    pending = client.async_add_subscription("aeron:udp?endpoint=nonsense", 7)
    with pytest.raises(AeronError):
        while pending.poll() is None:
            pass
    with pytest.raises(ClosedError):
        pending.poll()
    cancelled = client.async_add_publication("aeron:ipc", 7)
    cancelled.cancel()
    with pytest.raises(ClosedError):
        cancelled.poll()
