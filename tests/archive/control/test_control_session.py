"""States of a control session, with a fake publication and a manual clock."""

from __future__ import annotations

from typing import Any

import pytest
from support.control_session_rig import BACK_PRESSURED, ControlSessionRig, FakePublication

from aerotape.aeron import CLOSED, MAX_POSITION_EXCEEDED
from aerotape.archive.control.control_session import ControlSessionState
from aerotape.archive.control.responses import MAX_QUEUED_LENGTH
from aerotape.archive.security.authentication import AllowAll
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode
from aerotape.errors import AeronError
from aerotape.protocol import KNOWS_LEDGERS, PROTOCOL_VERSION, ErrorCode


@pytest.mark.parametrize(
    ("capabilities", "version"),
    [(0, PROTOCOL_VERSION), (KNOWS_LEDGERS, PROTOCOL_VERSION | KNOWS_LEDGERS)],
)
def test_the_connect_response_has_session_id_and_version(capabilities: int, version: int) -> None:
    """The response has the session id as relevantId, and the archive's version, with the bits of
    features only for clients that ask for them."""
    rig = ControlSessionRig(capabilities=capabilities)
    rig.work(1)
    assert rig.publication.messages == []
    rig.work(2, 3)
    assert rig.session.state is ControlSessionState.AUTHENTICATED
    (response,) = rig.publication.messages
    assert response == codecs.ControlResponse(
        control_session_id=7,
        correlation_id=100,
        relevant_id=7,
        code=ControlResponseCode.OK,
        version=version,
        error_message="",
    )
    assert rig.counter.value == 7


def test_the_ok_is_repeated_until_the_first_request() -> None:
    """It is sent every 200 ms while AUTHENTICATED, but not when ACTIVE."""
    rig = ControlSessionRig()
    rig.work(1, 2, 3, 100, 203, 300, 403)
    assert len(rig.publication.messages) == 3
    rig.session.attempt_to_activate()
    rig.work(700)
    assert len(rig.publication.messages) == 3


def test_a_refused_version_is_sent_until_the_connect_timeout() -> None:
    """ERROR is sent every 200 ms; the session is never active, and ends after 5 s."""
    rig = ControlSessionRig(version="invalid client version 0.1.0")
    rig.work(1, 2, *range(3, 1004, 200))
    assert [message.code for message in rig.publication.messages] == [ControlResponseCode.ERROR] * 6
    rig.session.attempt_to_activate()
    assert rig.session.state is ControlSessionState.CONNECTED
    rig.work(5_003)
    assert rig.session.is_done


def test_a_client_that_never_subscribes_times_out() -> None:
    """The state is CONNECTING until the connect timeout, then the session is closed."""
    rig = ControlSessionRig()
    rig.publication.is_connected = False
    rig.work(1, 2, 5_001)
    assert rig.session.state is ControlSessionState.CONNECTING
    rig.work(5_003)
    assert rig.session.is_done
    assert rig.session.ended_badly
    rig.session.close()
    assert rig.publication.revoked
    assert rig.counter.closed


def test_back_pressured_responses_are_queued_in_order() -> None:
    """With a slow client, responses are sent in order and none is lost."""
    rig = ControlSessionRig()
    rig.activate()
    rig.publication.result = BACK_PRESSURED
    rig.session.send_ok(1, 11)
    rig.session.send_error(2, ErrorCode.UNKNOWN_RECORDING, "no")
    rig.work(10)
    rig.publication.result = None
    rig.session.send_recording_unknown(4, 44)
    assert rig.publication.messages == []
    rig.work(11)
    assert [(m.correlation_id, m.relevant_id, m.code.name) for m in rig.publication.messages] == [
        (1, 11, "OK"),
        (2, 5, "ERROR"),
        (4, 44, "RECORDING_UNKNOWN"),
    ]


def test_responses_sent_by_other_threads_stay_in_order() -> None:
    """A response for another thread is returned only while no response is queued."""
    rig = ControlSessionRig()
    assert rig.session.deferred_ok(1, 11) is None
    rig.activate()
    given = rig.session.deferred_ok(1, 11)
    assert given is not None
    assert given[0] is rig.publication  # type: ignore[comparison-overlap]
    message: Any = codecs.decode(given[1])
    assert (message.control_session_id, message.correlation_id) == (7, 1)
    assert (message.relevant_id, message.code.name) == (11, "OK")
    rig.publication.result = BACK_PRESSURED
    rig.session.send_ok(2)
    assert rig.session.deferred_ok(3, 33) is None
    rig.publication.result = None
    rig.work(10)
    assert rig.session.deferred_ok(3, 33) is not None
    rig.session.abort("over")
    assert rig.session.deferred_ok(4, 44) is None


def test_a_client_that_does_not_read_is_dropped_after_the_timeout() -> None:
    """Back pressure for longer than the connect timeout ends the session."""
    rig = ControlSessionRig()
    rig.activate()
    rig.publication.result = BACK_PRESSURED
    rig.session.send_ok(1)
    rig.work(4_000)
    assert rig.session.is_active
    rig.work(5_010)
    assert rig.session.is_done
    assert rig.session.ended_badly


@pytest.mark.parametrize(
    ("result", "reason"), [(CLOSED, "is closed"), (MAX_POSITION_EXCEEDED, "is at max position")]
)
def test_a_publication_that_has_ended_ends_the_session(result: int, reason: str) -> None:
    """The reason is in the words of the Java archive."""
    rig = ControlSessionRig()
    rig.activate()
    rig.publication.result = result
    rig.session.send_ok(1)
    assert rig.session.is_done
    assert rig.session.end_reason == f"control response publication {reason}"


def test_responses_are_queued_up_to_a_limit() -> None:
    """A client that sends requests without reading is dropped at a limit of queued responses."""
    rig = ControlSessionRig()
    rig.activate()
    rig.publication.result = BACK_PRESSURED
    sent = 0
    while rig.session.is_active:
        rig.session.send_error(sent, ErrorCode.GENERIC, "x" * 2_000)
        sent += 1
    assert sent * 2_000 <= MAX_QUEUED_LENGTH <= sent * 2_100
    assert rig.session.ended_badly


def test_responses_queued_before_the_first_request_are_sent() -> None:
    """A refused request leaves the session AUTHENTICATED; its error is sent nevertheless."""
    rig = ControlSessionRig()
    rig.work(1, 2, 3)
    rig.publication.messages.clear()
    rig.publication.result = BACK_PRESSURED
    rig.session.send_error(9, ErrorCode.UNAUTHORISED_ACTION, "no")
    rig.publication.result = None
    rig.work(4)
    (response,) = rig.publication.messages
    assert response.correlation_id == 9


def test_a_sent_response_restarts_the_timeout() -> None:
    """The timeout counts the time since the last response sent, not since the first attempt."""
    rig = ControlSessionRig()
    rig.activate()
    rig.publication.result = BACK_PRESSURED
    rig.session.send_ok(1)
    rig.work(4_000)
    rig.publication.result = None
    rig.work(4_500)
    rig.publication.result = BACK_PRESSURED
    rig.session.send_ok(2)
    rig.work(6_000)
    assert rig.session.is_active


def test_natively_sent_messages_count_as_sent() -> None:
    """Pings that are back-pressured during a listing do not end the session."""
    rig = ControlSessionRig()
    rig.activate()
    rig.publication.result = BACK_PRESSURED
    for now_ms in range(1_000, 30_000, 500):
        rig.publication.position += 64
        rig.work(now_ms)
        assert rig.session.is_active
    rig.work(34_000)
    assert rig.session.is_active
    rig.work(*range(34_500, 41_000, 500))
    assert rig.session.is_done


def test_an_active_session_is_pinged_each_interval() -> None:
    """A Ping is sent every second."""
    rig = ControlSessionRig()
    rig.activate()
    rig.work(999, 1_000, 1_500, 2_000, 3_001)
    assert [type(message).__name__ for message in rig.publication.messages] == ["Ping"] * 3


@pytest.mark.parametrize("result", [-1, -4, -5])
def test_a_publication_that_cannot_send_ends_the_session(result: int) -> None:
    """NOT_CONNECTED, CLOSED and MAX_POSITION_EXCEEDED are not retried."""
    rig = ControlSessionRig()
    rig.activate()
    rig.publication.result = result
    rig.session.send_ok(1)
    assert rig.session.is_done
    assert rig.session.ended_badly is (result != -1)


def test_a_client_that_disconnects_ends_the_session_without_an_error() -> None:
    """The loss of the subscriber is a normal end of a session."""
    rig = ControlSessionRig()
    rig.activate()
    rig.publication.is_connected = False
    rig.work(10)
    assert rig.session.is_done
    assert not rig.session.ended_badly


def test_a_response_publication_that_is_busy_is_requested_again() -> None:
    """RESOURCE_TEMPORARILY_UNAVAILABLE is retried; any other refusal is raised."""
    publication = FakePublication()
    rig = ControlSessionRig(publications=[AeronError("in use", -10), publication])
    while rig.session.state is ControlSessionState.INIT:
        rig.work(1)
    assert rig.session.state is ControlSessionState.CONNECTING
    refused = ControlSessionRig(publications=[AeronError("invalid channel", -1)])
    with pytest.raises(AeronError):
        refused.work(1, 2)


@pytest.mark.parametrize(
    ("why", "text"),
    [((), "authentication rejected"), (("no time",), "authentication rejected: no time")],
)
def test_rejection_carries_its_error_code(why: tuple[str, ...], text: str) -> None:
    """A rejection reaches the client as AUTHENTICATION_REJECTED with the given reason."""

    class Refuse(AllowAll):
        def on_connected_session(self, session: Any, now_ms: int) -> None:
            session.reject(*why)

    rig = ControlSessionRig(authenticator=Refuse())
    rig.work(1, 2, 3, 300)
    (response,) = rig.publication.messages
    assert (response.code, response.relevant_id) == (
        ControlResponseCode.ERROR,
        ErrorCode.AUTHENTICATION_REJECTED,
    )
    assert response.error_message == text
    rig.work(5_003)
    assert rig.session.is_done


def test_text_beyond_ascii_does_not_break_a_response() -> None:
    """An error message that quotes a client's odd channel is still sent."""
    rig = ControlSessionRig()
    rig.activate()
    rig.session.send_error(1, ErrorCode.GENERIC, "канал")
    (response,) = rig.publication.messages
    assert response.error_message == "?????"
