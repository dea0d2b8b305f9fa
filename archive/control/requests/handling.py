"""Checks, failures and later responses, for the handlers of control requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive import removal
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.errors import AerotapeError, ArchiveError
from aerotape.protocol import NULL_POSITION, NULL_VALUE, ErrorCode
from aerotape.waiting import Task, await_future

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.recording.segments.deletion import Deletion


def check_known(services: Services, recording_id: int) -> None:
    """Raise ArchiveError if a recording does not exist."""
    removal.check_known(services.catalog, recording_id)


def check_unprotected(services: Services, recording_id: int) -> None:
    """Raise ArchiveError if a recording does not exist, or a feature protects it."""
    check_known(services, recording_id)
    services.features.check_recording(recording_id)


def check_no_listing(session: ControlSession) -> None:
    """Raise ArchiveError while a listing is in progress."""
    if session.is_listing:
        raise ArchiveError(
            "active listing already in progress: read it to its end first",
            ErrorCode.ACTIVE_LISTING,
        )


def send_failure(
    session: ControlSession, correlation_id: int, what: str, error: Exception, errors: ErrorLog
) -> None:
    """Respond to a request that has failed."""
    # As in the reference, refusals with an error code are not counted as errors, others are.
    if isinstance(error, ArchiveError):
        session.send_error(correlation_id, error.error_code, str(error))
    elif isinstance(error, AerotapeError):
        errors.record(f"{what} failed", error)
        session.send_error(correlation_id, ErrorCode.GENERIC, str(error))
    else:
        errors.record(f"{what} failed", error, exception=error)
        session.send_error(correlation_id, ErrorCode.GENERIC, f"{what} failed: {error}")


def respond_later(
    services: Services,
    session: ControlSession,
    correlation_id: int,
    task: Task[tuple[int, Deletion | None]],
) -> None:
    """Run a task and respond with its number; send DELETE at the end of its deletion."""
    services.tasks.start(_respond(services, session, correlation_id, task))


def _respond(
    services: Services,
    session: ControlSession,
    correlation_id: int,
    task: Task[tuple[int, Deletion | None]],
) -> Task[None]:
    try:
        count, deletion = yield from task
        session.send_ok(correlation_id, count)
        if deletion is None:
            return
        for problem in (yield from await_future(deletion.deleted)):
            session.send_error(correlation_id, ErrorCode.GENERIC, problem)
        session.send_signal(
            correlation_id,
            deletion.recording_id,
            NULL_VALUE,
            NULL_POSITION,
            RecordingSignal.DELETE,
        )
    except Exception as error:
        send_failure(session, correlation_id, "request", error, services.errors)
