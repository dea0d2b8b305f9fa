"""Waiting: the one form of code that continues when something outside has happened.

A task is a generator. It yields a *wait*, an object that says what it waits for, and continues when
the wait is over. Nothing is sent into a task: a wait with an outcome stores it in an attribute. So
a protocol is written once, from top to bottom, and a runner decides how to wait:

- `run` blocks the caller's thread, in native code where there is a call for it;
- `client.event_loop` awaits in an event loop;
- `Running` continues a task in the duty cycles of its owner and never blocks.

What is raised while a runner waits is raised in the task, at its `yield`; an interrupt, a
cancellation or an early end closes the task. So `except` and `finally` in a task clean up after
each of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, assert_never, cast

if TYPE_CHECKING:
    from concurrent.futures import Future

    from aerotape._native import CountersReader, Subscription
    from aerotape.message import MessageBuffer

T = TypeVar("T")

# When to poll again for a response of the driver or of a client.
SOON_NS: Final = 1_000_000
# The longest single native call, so that Ctrl-C and a close take effect.
SLICE_NS: Final = 50_000_000


class ResponseStream(Protocol):
    """The part of a client's control session that a task needs to wait for responses."""

    def ensure_open(self, what: str) -> None:
        """Raise ClosedError when the session has ended."""

    def read(self, timeout_ns: int, is_enough: Callable[[], bool], what: str) -> None:
        """Wait for messages, by polling or while another thread polls, and dispatch them."""


class Pause:
    """A time to wait; 0: until the next duty cycle."""

    __slots__ = ("deadline_ns",)

    def __init__(self, duration_ns: int = 0) -> None:
        self.deadline_ns = time.monotonic_ns() + duration_ns if duration_ns else 0

    def is_over(self) -> bool:
        """Whether the time has passed."""
        return self.deadline_ns == 0 or time.monotonic_ns() >= self.deadline_ns


def _never() -> bool:
    return False


def _nothing() -> None:
    pass


class Responses:
    """The messages of an archive that are read until it is enough, or a time has passed.

    Raises ClosedError when the session ends before. Without a condition it is a pause in which
    the session is read.

    Attributes:
        deadline_ns: of the monotonic clock; None: no limit.
        what: the operation, for the error.
    """

    __slots__ = ("deadline_ns", "is_enough", "session", "what")

    def __init__(
        self,
        session: ResponseStream,
        what: str,
        timeout_ns: int | None = 0,
        is_enough: Callable[[], bool] = _never,
    ) -> None:
        self.session = session
        self.what = what
        self.deadline_ns = None if timeout_ns is None else time.monotonic_ns() + timeout_ns
        self.is_enough = is_enough

    def is_late(self) -> bool:
        """Whether the time has passed."""
        return self.deadline_ns is not None and time.monotonic_ns() >= self.deadline_ns

    def is_over(self) -> bool:
        """Read what has arrived, and return whether nothing more is awaited."""
        if self.is_enough():
            return True
        self.session.ensure_open(self.what)
        self.session.read(0, self.is_enough, self.what)
        return self.is_enough() or self.is_late()

    def block(self) -> None:
        """Read until nothing more is awaited."""
        session, what, is_enough = self.session, self.what, self.is_enough
        while not is_enough():
            slice_ns = SLICE_NS
            if self.deadline_ns is not None:
                slice_ns = min(self.deadline_ns - time.monotonic_ns(), SLICE_NS)
            session.ensure_open(what)
            session.read(max(slice_ns, 0), is_enough, what)
            if slice_ns <= 0 or self.is_late():
                return


class Fragments:
    """Fragments of a stream; the messages that they complete go into `backlog`.

    Attributes:
        recorded_as: recording, session and stream id for the messages of a replay.
    """

    __slots__ = ("backlog", "deadline_ns", "fragment_limit", "recorded_as", "subscription")

    def __init__(
        self,
        subscription: Subscription,
        backlog: MessageBuffer,
        fragment_limit: int,
        timeout_ns: int,
        recorded_as: tuple[int, int, int] | None,
    ) -> None:
        self.subscription = subscription
        self.backlog = backlog
        self.fragment_limit = fragment_limit
        self.deadline_ns = time.monotonic_ns() + timeout_ns
        self.recorded_as = recorded_as

    def take(self, timeout_ns: int) -> None:
        """Poll the stream, in native code for up to `timeout_ns`."""
        poll, limit = self.subscription.poll, self.fragment_limit
        self.backlog.take(poll, limit, timeout_ns, self.recorded_as)

    def is_over(self) -> bool:
        """Poll the stream once, and return whether there are messages or the time has passed."""
        self.take(0)
        return bool(self.backlog) or time.monotonic_ns() >= self.deadline_ns


class CounterValue:
    """A value that a counter of the media driver has to reach, or a time that passes.

    Attributes:
        counter: its id and registration id.
        least: what it has to reach.
        value: of the counter at the end; None: it was freed.
    """

    __slots__ = ("_counters", "counter", "deadline_ns", "least", "value")

    def __init__(
        self, counters: CountersReader, counter: tuple[int, int], least: int, timeout_ns: int
    ) -> None:
        """Wait for the counter with this id and registration id to be at least `least`."""
        self._counters = counters
        self.counter = counter
        self.least = least
        self.deadline_ns = time.monotonic_ns() + timeout_ns
        self.value: int | None = None

    def take(self, timeout_ns: int) -> None:
        """Read the value, waiting for it in native code for up to `timeout_ns`."""
        self.value = self._counters.await_value(*self.counter, self.least, timeout_ns)

    def is_over(self) -> bool:
        """Read the value once, and return whether it is reached or never will be."""
        self.take(0)
        value = self.value
        return value is None or value >= self.least or time.monotonic_ns() >= self.deadline_ns


class Until(Generic[T]):
    """A condition that only a repeated call can tell, or a time that passes.

    Attributes:
        value: what the call has returned at last: not None and not False, unless it is late.
        every_ns: between two calls, where nothing else decides.
    """

    __slots__ = ("_probe", "deadline_ns", "every_ns", "value")

    def __init__(
        self,
        probe: Callable[[], T | None],
        deadline_ns: int | None = None,
        every_ns: int = 1_000_000,
    ) -> None:
        """Wait until `probe` returns something, or until a time of the monotonic clock."""
        self._probe = probe
        self.deadline_ns = deadline_ns
        self.every_ns = every_ns
        self.value: T | None = None

    def is_over(self) -> bool:
        """Call once, and return whether the condition holds or the time has passed."""
        self.value = self._probe()
        if self.value is not None and self.value is not False:
            return True
        return self.deadline_ns is not None and time.monotonic_ns() >= self.deadline_ns


class Attempt(Generic[T]):
    """One native call that may wait for a time.

    Attributes:
        value: what it has returned.
    """

    __slots__ = ("_call", "timeout_ns", "value")

    value: T

    def __init__(self, call: Callable[[int], T], timeout_ns: int) -> None:
        """Attempt a call, which is given the longest time to wait, nanoseconds."""
        self._call = call
        self.timeout_ns = timeout_ns

    def take(self, timeout_ns: int) -> None:
        self.value = self._call(timeout_ns)

    def is_over(self) -> bool:
        """Call without waiting; it is over then."""
        self.take(0)
        return True


class Blocking(Generic[T]):
    """A call that may block for long, of a library that has no other form of it.

    A runner that must not block makes it in another thread, which a cancellation does not end.

    Attributes:
        value: what it has returned.
        every_ns: between two looks, where nothing else decides.
    """

    __slots__ = ("_call", "_future", "value")

    every_ns: Final = SOON_NS
    value: T

    def __init__(self, call: Callable[[], T]) -> None:
        """Call a function once, when this is awaited."""
        self._call = call
        self._future: Future[T] | None = None

    def take(self) -> None:
        self.value = self._call()

    def is_over(self) -> bool:
        """Begin the call in a thread, and return whether it has ended; raises what it raises."""
        if self._future is None:
            self._future = begin_in_thread(self._call, "aerotape blocking call")
        if self._future.done():
            self.value = self._future.result()
            return True
        return False


class Done(Generic[T]):
    """The end of work that other code continues and reports, once.

    Attributes:
        result: what it has returned.
        on_over: called when it is reported, in the thread that does.
        every_ns: between two looks, where nothing else decides.
    """

    __slots__ = ("_failure", "_is_over", "on_over", "result")

    every_ns: Final = SOON_NS
    result: T

    def __init__(self) -> None:
        self.on_over: Callable[[], None] = _nothing
        self._failure: Exception | None = None
        self._is_over = False

    def set(self, result: T) -> None:
        """Report the result."""
        self.result = result
        self._is_over = True
        self.on_over()

    def fail(self, failure: Exception) -> None:
        """Report an error, which is raised in the task that waits."""
        self._failure = failure
        self.on_over()

    def is_over(self) -> bool:
        """Whether the work has ended; raises what it has raised."""
        if self._failure is not None:
            raise self._failure
        return self._is_over


Wait = (
    Pause
    | Responses
    | Fragments
    | CounterValue
    | Until[Any]
    | Attempt[Any]
    | Blocking[Any]
    | Done[Any]
)
Task = Generator[Wait, None, T]


def pause(duration_ns: int) -> Task[None]:
    """Wait for a time."""
    yield Pause(duration_ns)


def begin_in_thread(work: Callable[[], T], name: str) -> Future[T]:
    """Begin work in a thread that the end of the process does not wait for."""
    from concurrent.futures import Future

    future = Future[T]()

    def run() -> None:
        try:
            future.set_result(work())
        # Also SystemExit of a user's function: its caller waits for it.
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def await_future(future: Future[T]) -> Task[T]:
    """Wait for a call in another thread; return its result, or raise its exception.

    A call that has not begun is cancelled with the task.
    """
    try:
        if not future.done():
            yield Until(future.done)
    finally:
        future.cancel()
    return future.result()


def run(task: Task[T]) -> T:
    """Run a task in the caller's thread, and return what it returns."""
    try:
        wait = next(task)
        while True:
            try:
                _block(wait)
            except Exception as error:
                wait = task.throw(error)
            else:
                wait = next(task)
    except StopIteration as end:
        return cast(T, end.value)
    finally:
        task.close()


def _block(wait: Wait) -> None:
    match wait:
        case CounterValue() | Fragments():
            wait.take(max(wait.deadline_ns - time.monotonic_ns(), 0))
        case Responses():
            wait.block()
        case Attempt():
            wait.take(wait.timeout_ns)
        case Blocking():
            wait.take()
        case Pause():
            time.sleep(max(wait.deadline_ns - time.monotonic_ns(), 0) / 1e9)
        case Until() | Done():
            while not wait.is_over():
                time.sleep(wait.every_ns / 1e9)
        case _:
            assert_never(wait)


class Running(Generic[T]):
    """A task that its owner continues once a duty cycle. Never blocks; for one thread.

    Attributes:
        is_done: whether the task has ended, by returning, by raising, or by `close`.
    """

    result: T

    def __init__(self, task: Task[T]) -> None:
        """Create a task that begins with the first `advance`."""
        self.is_done = False
        self._task = task
        self._wait: Wait | None = None

    def advance(self) -> bool:
        """Continue the task, unless it is waiting; return whether it has continued.

        What the task raises is raised, and ends it. `result` is what it returns.
        """
        if self.is_done:
            return False
        try:
            try:
                if self._wait is not None and not self._wait.is_over():
                    return False
            except Exception as error:
                self._wait = self._task.throw(error)
            else:
                self._wait = next(self._task)
        except StopIteration as end:
            self.is_done = True
            self.result = end.value
        except BaseException:
            self.close()
            raise
        return True

    @property
    def is_pausing(self) -> bool:
        """Whether it waits for a time, or for other tasks, which do not wake its owner."""
        return not self.is_done and isinstance(self._wait, Pause | Done)

    def close(self) -> None:
        """Cancel the task. Idempotent."""
        self.is_done = True
        self._task.close()


class BackgroundTasks:
    """The unfinished tasks of one part of the archive, as an agent. For the conductor's thread."""

    def __init__(self) -> None:
        self._tasks: list[Running[None]] = []

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, task: Task[None]) -> None:
        """Run a task to its first wait; what it raises is raised."""
        running = Running(task)
        self._tasks.append(running)
        self._advance(running)

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: a task pauses; the waits of others wake the conductor."""
        return SOON_NS if any(each.is_pausing for each in self._tasks) else None

    def do_work(self) -> None:
        """Continue each task whose wait is over; what one raises ends it and is raised."""
        for running in list(self._tasks):
            self._advance(running)

    def close(self) -> None:
        """Cancel all tasks."""
        while self._tasks:
            self._tasks.pop().close()

    def _advance(self, running: Running[None]) -> None:
        try:
            running.advance()
        finally:
            if running.is_done:
                self._tasks.remove(running)
