"""Interrupts while a session dispatches messages, at every line of that code."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from support.daemon.scripted_session import ScriptedStreams, descriptor, ok, session_over

from aerotape.client.session.request import Call, Listing, relevant_id
from aerotape.codecs.generated import archive as codecs


class Interrupt(BaseException):
    """The exception of a signal handler."""


def _interrupted(call: Callable[[], object], line: int, *functions: str) -> bool:
    """Interrupt a call at the nth line that these functions run; return whether it was reached.

    The call is made in a generator: an exception raised where an `except` clause ends leaves the
    interpreter handling that clause's exception, and in a generator only until that is left.
    Otherwise each later error of this thread would have that exception as its context.
    """
    lines = itertools.count(1)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_name not in functions:
            return None
        if event == "line" and next(lines) == line:
            raise Interrupt
        return trace

    def traced_call() -> Iterator[bool]:
        was_interrupted = False
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            call()
        except Interrupt:
            was_interrupted = True
        finally:
            sys.settrace(before)
        yield was_interrupted

    was_interrupted = next(traced_call())
    assert sys.exc_info() == (None, None, None)
    return was_interrupted


def test_an_interrupt_at_any_line_loses_no_response() -> None:
    """The next reader dispatches the messages already read: each request receives its response
    once."""
    for line in itertools.count(1):
        streams = ScriptedStreams()
        session = session_over(streams)
        listing = session.begin(Listing(codecs.ListRecordingsRequest(), "list", 3))
        asked = session.begin(Call(codecs.StopPositionRequest(), "ask", relevant_id))
        answer = ok(asked, 5)
        descriptors = [descriptor(each, listing) for each in range(3)]
        streams.push(descriptors[0], b"garbage", answer, *descriptors[1:])
        was_interrupted = _interrupted(
            lambda session=session: session.read(0),  # type: ignore[misc]
            line,
            "take",
            "_sort_arrived",
            "_sort",
            "_decode",
        )
        session.read(0)
        assert [each.recording_id for each in listing.items] == [0, 1, 2], line  # type: ignore[union-attr]
        assert listing.is_done
        assert asked.response() == answer
        assert not session.has_pending
        # A malformed message may be reported twice.
        assert len({str(each) for each in session.take_errors()}) == 1
        if not was_interrupted:
            break
    assert line > 40


def test_an_interrupted_reader_does_not_block_others() -> None:
    """The next reader does not wait for the interrupted one."""
    streams = ScriptedStreams()
    session = session_over(streams, 60_000_000_000)
    asked = session.begin(Call(codecs.StopPositionRequest(), "ask", relevant_id))
    streams.push(ok(asked, 5))
    assert _interrupted(lambda: session.read(0), 1, "_sort_arrived")
    other = threading.Thread(target=session.read, args=(60_000_000_000,))
    other.start()
    other.join(30)
    assert not other.is_alive()
    assert asked.is_done
