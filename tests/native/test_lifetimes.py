"""Objects that outlive their parents: closed, no access to freed memory, and no leaks.

Each test runs in a separate process, whose allocator overwrites freed memory: an access to it shows
as a wrong value or as a crash of that process, not of the test run.
"""

from __future__ import annotations

from pathlib import Path

from support.own_process import run_python

PREAMBLE = """
import gc, os, sys, threading, time
from pathlib import Path
from aerotape import _native
from aerotape.worker_arguments import RecordArguments, WorkerOptions

SECOND_NS = 1_000_000_000
driver = _native.MediaDriver.launch({
    "aeron.dir": sys.argv[1],
    "aeron.threading.mode": "SHARED",
    "aeron.dir.delete.on.start": "true",
    "aeron.dir.delete.on.shutdown": "true",
    "aeron.term.buffer.sparse.file": "true",
    "aeron.ipc.term.buffer.length": "65536",
    "aeron.publication.linger.timeout": "100ms",
    "aeron.timer.interval": "100ms",
})

def connect(**options):
    return _native.AeronClient(driver.aeron_dir, client_name="test", **options)

def wait_until(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)

def announced(mailbox):
    events = []
    wait_until(lambda: events.extend(mailbox.wait([], 0)) or
               any(isinstance(e, _native.ImageAvailable) for e in events), "no image arrived")
    return next(e.image for e in events if isinstance(e, _native.ImageAvailable))

def client_threads():
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    return sum(name.startswith("aeron-cl") for name in names)
"""


def run(script: str, aeron_dir: Path, *arguments: str) -> None:
    """Run a script after the preamble; it must end without an error."""
    finished = run_python(
        *("-P", "-X", "faulthandler", "-c", PREAMBLE + script, aeron_dir, *arguments),
        timeout_s=90,
        MALLOC_PERTURB_="165",
    )
    assert finished.returncode == 0, finished.stderr[-4000:]


def test_image_is_closed_with_its_subscription(aeron_dir: Path) -> None:
    """Images held when their subscription closes are closed; releasing them later is safe."""
    run(
        """
client = connect()
publication = client.add_exclusive_publication("aeron:ipc", 1)
for _ in range(40):
    mailbox = _native.Mailbox()
    plain = client.add_subscription("aeron:ipc", 1)
    with_mailbox = client.add_subscription("aeron:ipc", 1, mailbox)
    wait_until(lambda: plain.images(), "no image")
    images = [*plain.images(), announced(mailbox)]
    assert [image.position for image in images] == [0, 0]
    assert not any(image.is_closed for image in images)
    plain.close()
    with_mailbox.close()
    time.sleep(0.01)  # the client's thread frees images in its own time
    assert [image.position for image in images] == [-1, -1]
    assert all(image.is_closed for image in images)
    for image in images:
        image.release()
client.close()
driver.close()
""",
        aeron_dir,
    )


def test_recording_ends_when_its_subscription_closes(aeron_dir: Path, tmp_path: Path) -> None:
    """A worker whose image is closed stops at its position, and other recordings continue."""
    run(
        """
client = connect()
publication = client.add_exclusive_publication("aeron:ipc?term-length=64k", 1)
reports = _native.Mailbox()
worker = _native.SessionWorker(reports, WorkerOptions("recorder", sys.argv[2]))
stopped = {}
for recording_id in range(20):
    mailbox = _native.Mailbox()
    subscription = client.add_subscription("aeron:ipc?term-length=64k", 1, mailbox)
    image = announced(mailbox)
    start = image.join_position
    counter = client.add_counter(100, b"", "position")
    worker.record(image, counter, RecordArguments(recording_id, start, 65536))
    for _ in range(10):
        assert publication.offer_within(bytes(96), 5 * SECOND_NS) > 0
    wait_until(lambda: counter.get() == publication.position, "not recorded")
    subscription.close()
    wait_until(lambda: stopped.update({e.recording_id: (e.position, e.error_code, e.message)
                                       for e in reports.wait([], 10_000_000)
                                       if isinstance(e, _native.RecordingStopped)})
               or recording_id in stopped, "still recording")
    assert stopped[recording_id] == (publication.position, 0, None), stopped
    counter.close()
worker.close()
client.close()
driver.close()
""",
        aeron_dir,
        str(tmp_path),
    )


def test_cancelled_subscription_closes_its_images(aeron_dir: Path) -> None:
    """A subscription that is cancelled at any moment of its creation leaves no open image."""
    run(
        """
import random
seed = 7
random.seed(seed)
client = connect()
publications = [client.add_exclusive_publication("aeron:ipc", 1) for _ in range(3)]
for _ in range(150):
    mailbox = _native.Mailbox()
    pending = client.async_add_subscription("aeron:ipc", 1, mailbox)
    time.sleep(random.random() * 0.004)
    pending.cancel()
    time.sleep(random.random() * 0.004)
    images = [event.image for event in mailbox.wait([], 0)
              if isinstance(event, _native.ImageAvailable)]
    assert all(image.is_closed and image.position == -1 for image in images), seed
client.close()
driver.close()
""",
        aeron_dir,
    )


def test_client_is_freed_with_its_last_object(aeron_dir: Path) -> None:
    """Dropping all of a client's objects, none of them closed, ends its thread."""
    run(
        """
for turn in range(20):
    mailbox = _native.Mailbox()
    client = connect(mailbox=mailbox)
    subscription = client.add_subscription("aeron:ipc", 1, mailbox)
    publication = client.add_exclusive_publication("aeron:ipc", 1)
    pending = client.async_add_subscription("aeron:ipc", 2, mailbox)
    if turn % 2:
        image = announced(mailbox)
    publication = None
    client = None
    pending = None
    subscription = None
    image = None
    mailbox = None
    gc.collect()
    if turn % 4 < 2:
        time.sleep(0.02)
wait_until(lambda: client_threads() == 0, "a client is still there")
driver.close()
""",
        aeron_dir,
    )


def test_log_buffers_of_ended_images_are_unmapped(aeron_dir: Path) -> None:
    """A subscription that stays open does not retain the log buffers of ended streams."""
    run(
        """
def mapped():
    return Path("/proc/self/maps").read_text().count(".logbuffer")

mailbox = _native.Mailbox()
client = connect()
subscription = client.add_subscription("aeron:ipc", 1, mailbox)
for _ in range(5):
    publication = client.add_exclusive_publication("aeron:ipc", 1)
    announced(mailbox).release()
    publication.close()
assert mapped() > 0
wait_until(lambda: mapped() == 0, "log buffers are still mapped")
client.close()
driver.close()
""",
        aeron_dir,
    )


def test_closing_client_subscription_and_images_at_once(aeron_dir: Path) -> None:
    """Threads that close and poll all objects at the same moment all end."""
    run(
        """
import random
seed = 11
random.seed(seed)
sender = connect()
publication = sender.add_exclusive_publication("aeron:ipc", 1)
for _ in range(40):
    mailbox = _native.Mailbox()
    client = connect(mailbox=mailbox)
    with_mailbox = client.add_subscription("aeron:ipc", 1, mailbox)
    plain = client.add_subscription("aeron:ipc", 1)
    go = threading.Barrier(5)

    def poll_told():
        go.wait()
        while not with_mailbox.is_closed:
            mailbox.wait([with_mailbox], 1_000_000)

    def poll_plain():
        go.wait()
        while not plain.is_closed:
            try:
                plain.poll(10)
            except Exception as error:
                assert type(error).__name__ == "ClosedError", error
            plain.images(), plain.image_count, plain.is_connected

    def close(thing, delay):
        go.wait()
        time.sleep(delay)
        thing.close()

    threads = [threading.Thread(target=poll_told), threading.Thread(target=poll_plain)]
    threads += [threading.Thread(target=close, args=(thing, random.random() * 0.003))
                for thing in (with_mailbox, plain, client)]
    for thread in threads:
        thread.start()
    publication.offer(b"message")
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive(), seed
sender.close()
driver.close()
""",
        aeron_dir,
    )


def test_child_process_does_not_affect_objects_of_its_parent(
    aeron_dir: Path, tmp_path: Path
) -> None:
    """In a forked child every object is closed; dropping it there does not affect the parent."""
    run(
        """
client = connect()
mailbox = _native.Mailbox()
subscription = client.add_subscription("aeron:ipc", 1, mailbox)
publication = client.add_exclusive_publication("aeron:ipc", 1)
counter = client.add_counter(100, b"", "counter")
worker = _native.SessionWorker(mailbox, WorkerOptions("recorder", sys.argv[2]))
image = announced(mailbox)
child = os.fork()
if child == 0:
    status = 1
    try:
        assert client.is_closed and subscription.is_closed and publication.is_closed
        assert publication.offer(b"from the child") == -4
        worker.close()
        image = publication = counter = subscription = client = worker = None
        driver.close()
        driver = None
        gc.collect()
        status = 0
    finally:
        os._exit(status)
ended = []
wait_until(lambda: ended.append(os.waitpid(child, os.WNOHANG)) or ended[-1][0] == child,
           "the child hangs")
assert ended[-1][1] == 0
time.sleep(0.3)
assert publication.offer_within(b"from the parent", 5 * SECOND_NS) > 0
messages = []
wait_until(lambda: messages.extend(mailbox.wait([subscription], 0)) or messages, "no message")
assert messages[0].payload == b"from the parent"
counter.set(5)
assert client.counters().value(counter.id) == 5
worker.close()
client.close()
driver.close()
""",
        aeron_dir,
        str(tmp_path),
    )


def test_closing_a_client_with_outstanding_responses(aeron_dir: Path) -> None:
    """A client can be closed while responses are outstanding and a thread waits on its mailbox."""
    run(
        """
for round in range(40):
    mailbox = _native.Mailbox()
    client = connect(mailbox=mailbox)
    subscription = client.add_subscription("aeron:ipc", 1, mailbox)
    kinds, is_over = [], threading.Event()

    def wait():
        while not is_over.is_set():
            kinds.extend(map(type, mailbox.wait([subscription], SECOND_NS // 100)))

    waiting = threading.Thread(target=wait)
    waiting.start()
    pending = [client.async_add_exclusive_publication("aeron:ipc", 1) for _ in range(5)]
    if round % 2:
        wait_until(lambda: all(each.poll() is not None for each in pending[:1]), "no answer")
        wait_until(lambda: _native.ImageAvailable in kinds, "the mailbox heard of no image")
    client.close()
    is_over.set()
    waiting.join(20)
    assert not waiting.is_alive()
    assert subscription.is_closed
    del pending
    gc.collect()
assert client_threads() == 0
driver.close()
""",
        aeron_dir,
    )


def test_closing_a_client_while_threads_add_objects(aeron_dir: Path) -> None:
    """A client that closes while other threads add objects frees none that they still read."""
    run(
        """
import random
seed = 5
random.seed(seed)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

def add_until_closed(add):
    # On one processor the thread that closes continues wherever it interrupts one of these.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    try:
        while True:
            add()
    except Exception as error:
        assert type(error).__name__ == "ClosedError", error

ends = time.monotonic() + 4
while time.monotonic() < ends:
    client = connect()
    adds = [
        lambda: client.add_publication("aeron:ipc", 1),
        lambda: client.add_exclusive_publication("aeron:ipc", 2),
        lambda: client.add_subscription("aeron:ipc", 3),
        lambda: client.add_counter(100, b"key", "counter"),
    ]
    threads = [threading.Thread(target=add_until_closed, args=(add,)) for add in adds]
    for thread in threads:
        thread.start()
    time.sleep(0.01 + random.random() * 0.01)
    client.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), seed
driver.close()
""",
        aeron_dir,
    )


def test_a_result_that_is_not_fetched_costs_no_processor_time(aeron_dir: Path) -> None:
    """A client's thread polls often for a response only until the driver has timed out."""
    run(
        """
def spent(seconds):
    before = os.times()
    time.sleep(seconds)
    return sum(os.times()[:2]) - sum(before[:2])

idle = connect(driver_timeout_ms=500)
time.sleep(1)
rested = spent(2)
pending = idle.async_add_subscription("aeron:ipc", 9)
time.sleep(1)
held = spent(2)
assert held < rested + 0.15, (rested, held)
assert pending.poll() is not None
driver.close()
""",
        aeron_dir,
    )
