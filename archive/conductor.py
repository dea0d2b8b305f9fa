"""The conductor: the one loop that answers clients and keeps the archive's books.

It waits on the mailbox, which brings whole control messages and what the native threads have to
say, dispatches these, then lets everything that waits for the driver, for a client or for time
take a step. With nothing to do it sleeps in native code, a tenth of a second at most.

It owns the catalog, the control sessions, the recordings and the replays: only its thread touches
them. Nothing that a client sends ends it; the loss of the media driver does, and a fault of ours.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aerotape.archive import counters
from aerotape.archive.config.archive_config import MARK_FILE_UPDATE_INTERVAL_MS, ArchiveConfig
from aerotape.archive.control import requests
from aerotape.archive.control.control_session import (
    REQUEST_IMAGE_GONE,
    SESSION_CLOSED,
    SOON_NS,
    ControlSession,
)
from aerotape.archive.control.control_session_adapter import Reception
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.recordings import Recordings
from aerotape.archive.recording.segment_deletion import SegmentDeletions
from aerotape.archive.recording.segment_requests import SegmentMoves
from aerotape.archive.recording.storage_space import StorageSpace
from aerotape.archive.replay.replay_session import Replays
from aerotape.archive.replay.tokens import ReplayTokens
from aerotape.archive.replication.replications import Replications
from aerotape.archive.retrying import Retrying
from aerotape.archive.security.authentication import Authenticator, GuardedAuthenticator
from aerotape.archive.security.authorisation import (
    AuthorisationService,
    GuardedAuthorisation,
)
from aerotape.catalog.recovery.trailing_segment import make_next_segments
from aerotape.channel_uri import ChannelUri
from aerotape.clock import epoch_ms
from aerotape.errors import AeronError, AerotapeError, ClosedError

if TYPE_CHECKING:
    from aerotape._native import AeronClient, Mailbox, SessionWorker, Subscription
    from aerotape.archive.agent import Agent
    from aerotape.archive.retention.retention import Retention
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.mark.mark_file import MarkFile

FRAGMENT_LIMIT = 10
MAX_REJECT_REASON_LENGTH = 1_000
# Aeron's codes for a driver that gives no sign of life, a client that the driver has given up,
# and a client conductor that was held up for too long: after these the client is of no use.
_FATAL_CLIENT_ERRORS = (1000, 1001, 1002)
_IDLE_TIMEOUT_NS = 100_000_000
_SESSION_INTERVAL_MS = 10
# What the books, and clients that were answered, must not miss when the archive closes.
_LAST_WORDS = ("recording_stopped", "time_index_failed", "replay_answered", "replay_done")


class Conductor:
    """The archive's duty cycle. `run` is its thread; `stop` may be called from any other.

    Attributes:
        archive_id: which archive this is, among those on one driver.
        archive_dir: where its recordings are.
        failure: what ended the conductor, None after a stop that was asked for.
    """

    def __init__(
        self,
        *,
        config: ArchiveConfig,
        archive_id: int,
        archive_dir: Path,
        client: AeronClient,
        mailbox: Mailbox,
        catalog: Catalog,
        mark_file: MarkFile,
        archive_counters: counters.ArchiveCounters,
        recorder: SessionWorker,
        replayer: SessionWorker,
        errors: ErrorLog,
        authenticator: Authenticator,
        authorisation_service: AuthorisationService,
    ) -> None:
        """Subscribe to the control channels; waits for the driver.

        Raises:
            AeronError: the driver refuses a control channel.
        """
        self.config = config
        self.archive_id = archive_id
        self.archive_dir = archive_dir
        self.catalog = catalog
        self.errors = errors
        self.failure: BaseException | None = None
        self._client = client
        self._mailbox = mailbox
        self._mark_file = mark_file
        self._counters = archive_counters
        self._workers = [recorder] if recorder is replayer else [recorder, replayer]
        self._deferred: list[Callable[[], None]] = []
        # What has come and is not handled yet; the end of the driver may come in between.
        self._events: deque[tuple[Any, ...]] = deque()
        self._mark_file_due_ms = 0
        # When sessions are looked after that have nothing to do but to stay alive: rounds are many
        # while clients are busy, and so may be the clients.
        self._sessions_due_ms = 0
        self._session_interval_ms = min(
            _SESSION_INTERVAL_MS, config.session_liveness_check_interval_ns // 1_000_000
        )
        self._stopping = False
        self._now_ms = self._clock_ms()
        self._control_subscriptions = self._subscribe()
        if config.recording_events_enabled:
            recorder.publish_events(
                client.add_exclusive_publication(
                    config.recording_events_channel, config.recording_events_stream_id
                )
            )
        self.deletions = SegmentDeletions(errors=errors, wake=mailbox.wake)
        self.deletions.delete_left_over(archive_dir, catalog.purged_ids())
        self._storage = StorageSpace(
            archive_dir, config.low_storage_space_threshold, archive_counters.low_storage
        )
        self.recordings = Recordings(
            config=config,
            archive_id=archive_id,
            archive_dir=archive_dir,
            client=client,
            mailbox=mailbox,
            catalog=catalog,
            recorder=recorder,
            storage=self._storage,
            deletions=self.deletions,
            session_counter=archive_counters.recording_sessions,
            errors=errors,
            epoch_ms=epoch_ms,
        )
        self.replays = Replays(
            config=config,
            client=client,
            catalog=catalog,
            recordings=self.recordings,
            replayer=replayer,
            session_counter=archive_counters.replay_sessions,
            errors=errors,
            defer=self._deferred.append,
            deleted_up_to=self.deletions.end_position,
        )
        self.replay_tokens = ReplayTokens(config.connect_timeout_ns)
        self._reception = Reception(
            config=config,
            archive_id=archive_id,
            client=client,
            subscriptions=self._control_subscriptions,
            session_counter=archive_counters.control_sessions,
            errors=errors,
            authenticator=GuardedAuthenticator(authenticator, errors),
            authorisation=GuardedAuthorisation(authorisation_service, errors),
            replay_tokens=self.replay_tokens,
            handle=partial(requests.handle, self),
        )
        self._sessions = self._reception.sessions
        self.replications = Replications(
            config=config,
            archive_id=archive_id,
            client=client,
            catalog=catalog,
            recordings=self.recordings,
            errors=errors,
            next_id=partial(next, self._reception.session_ids),
        )
        self.segments = SegmentMoves(
            archive_dir=archive_dir,
            catalog=catalog,
            deletions=self.deletions,
            errors=errors,
            sync=config.file_sync_level > 0,
        )
        self._retention = self._make_retention()
        self._parts: tuple[tuple[str, Callable[[], None]], ...] = (
            ("recordings", self.recordings.do_work),
            ("replays", self.replays.do_work),
            ("replications", self.replications.do_work),
            ("deletions", self.deletions.do_work),
            ("segments", self.segments.do_work),
            *(("retention", each.do_work) for each in self._retention),
        )
        self._handlers: dict[str, Callable[..., None]] = {
            "message": self._reception.on_message,
            "image_available": self._on_image_available,
            "image_unavailable": self._on_image_unavailable,
            "client_closed": self._on_client_closed,
            "client_error": self._on_client_error,
            "recording_stopped": self._on_recording_stopped,
            "time_index_failed": self._on_time_index_failed,
            "replay_ready": self.replays.on_ready,
            "replay_answered": self.replays.on_answered,
            "replay_done": self.replays.on_done,
            "worker_failed": self._on_worker_failed,
        }

    def _make_retention(self) -> tuple[Retention, ...]:
        """Return what carries the policy out; nothing when there is none."""
        config = self.config
        if config.retention_file is None:
            return ()
        from aerotape.archive.retention.retention import Retention

        made = Retention(
            policy_file=config.retention_file,
            interval_ns=config.retention_interval_ns,
            archive_dir=self.archive_dir,
            catalog=self.catalog,
            recordings=self.recordings,
            replays=self.replays,
            replications=self.replications,
            ask=partial(requests.handle, self),
            counters=self._counters.retention,
            errors=self.errors,
            wake=self._mailbox.wake,
            audience=self._reception.audience,
        )
        return (made,)

    def _subscribe(self) -> dict[int, Subscription]:
        config = self.config
        subscriptions = []
        if config.control_channel_enabled:
            uri = ChannelUri.parse(config.control_channel)
            uri.put("sparse", str(config.control_term_buffer_sparse).lower())
            try:
                subscriptions.append(self._add_subscription(str(uri), config.control_stream_id))
            except AeronError as error:
                raise AeronError(
                    f"cannot listen on aeron.archive.control.channel={config.control_channel}: is "
                    f"its port free, and its address one of this machine? {error}",
                    error.code,
                ) from error
        subscriptions.append(
            self._add_subscription(config.local_control_channel, config.local_control_stream_id)
        )
        return {subscription.registration_id: subscription for subscription in subscriptions}

    def _add_subscription(self, channel: str, stream_id: int) -> Subscription:
        """Subscribe; where an archive before has just left the channel, the driver needs a while.

        Raises:
            AeronError: the driver refuses the channel, or is not done with it in time.
        """
        retrying = Retrying(
            lambda: self._client.async_add_subscription(channel, stream_id, self._mailbox),
            time.monotonic_ns() + self.config.driver_timeout_ms * 1_000_000,
        )
        while (added := retrying.poll()) is None:
            time.sleep(0.001)
        return added

    # ---- the loop -----------------------------------------------------------------------------

    @staticmethod
    def _clock_ms() -> int:
        return time.monotonic_ns() // 1_000_000

    def stop(self) -> None:
        """Have `run` close everything and return. Idempotent."""
        self._stopping = True
        self._mailbox.wake()

    def run(self) -> None:
        """Work until stopped, or until `failure`; then close all sessions."""
        subscriptions = list(self._control_subscriptions.values())
        try:
            while not self._stopping:
                sendings = [each.sending for each in self._sessions.values()]
                self.do_work(
                    self._mailbox.wait(
                        subscriptions,
                        self._timeout_ns(),
                        FRAGMENT_LIMIT,
                        [sending for sending in sendings if sending is not None],
                    )
                )
        except BaseException as error:
            # Whatever it is: a panic of native code is not an Exception.
            self.failure = error
            if not isinstance(error, ClosedError):
                self.errors.record("conductor failed", error, exception=error)
        finally:
            self._close()

    def do_work(self, events: list[tuple[Any, ...]]) -> None:
        """Make one round: the events, then all that waits.

        Raises:
            ClosedError: the media driver is lost, or a worker has failed.
        """
        begin_ns = time.monotonic_ns()
        self._now_ms = begin_ns // 1_000_000
        self._events.extend(events)
        while self._events:
            self._dispatch(self._events.popleft())
        if self._deferred:
            deferred, self._deferred[:] = list(self._deferred), []
            for call in deferred:
                self._guard("deferred request", call)
        for what, work in self._parts:
            try:
                work()
            except Exception as error:
                self._failed(what, error)
        is_due = self._now_ms >= self._sessions_due_ms
        if is_due:
            self._sessions_due_ms = self._now_ms + self._session_interval_ms
        for session in list(self._sessions.values()):
            if is_due or session.is_busy:
                self._work(session)
        if self._now_ms >= self._mark_file_due_ms:
            self._mark_file_due_ms = self._now_ms + MARK_FILE_UPDATE_INTERVAL_MS
            self._mark_file.update_activity(epoch_ms())
            self._storage.watch()
        self._counters.conductor_cycle.measured(time.monotonic_ns() - begin_ns)

    def _timeout_ns(self) -> int:
        """How long to wait for events before the next round, at most."""
        timeout_ns = _IDLE_TIMEOUT_NS
        if (
            self._deferred
            or self.recordings.wants_soon
            or self.replays.wants_soon
        ):
            timeout_ns = SOON_NS
        sessions = [session.wants_within_ns for session in self._sessions.values()]
        parts: list[Agent] = [self.replications, self.deletions, *self._retention]
        for wanted_ns in (*(part.wants_within_ns for part in parts), *sessions):
            if wanted_ns is not None and wanted_ns < timeout_ns:
                timeout_ns = wanted_ns
        return timeout_ns

    def _dispatch(self, event: tuple[Any, ...]) -> None:
        kind, *details = event
        try:
            self._handlers[kind](*details)
        except ClosedError:
            raise
        except Exception as error:
            self.errors.record(f"{kind} not handled", error, exception=error)

    def _guard(self, what: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:
            self._failed(what, error)

    def _failed(self, what: str, error: Exception) -> None:
        if isinstance(error, ClosedError):
            self._check_client()
        else:
            self.errors.record(f"{what} failed", error, exception=error)

    def _check_client(self) -> None:
        if self._client.is_closed:
            self._on_client_closed()

    def _work(self, session: ControlSession) -> None:
        try:
            session.do_work(self._now_ms)
        except Exception as error:
            self._check_client()
            session.abort(f"failed with exception: {error}")
        if session.is_done:
            self._remove(session)

    def _remove(self, session: ControlSession) -> None:
        if self._sessions.pop(session.session_id, None) is None:
            return
        if session.ended_badly:
            self.errors.record("control session ended", f"{session}: {session.end_reason}")
            self._guard("rejecting a request stream", partial(self._reject_stream, session))
        self._guard("closing a control session", session.close)
        self.replay_tokens.forget(session)
        self._counters.control_sessions.add(-1)

    def _reject_stream(self, session: ControlSession) -> None:
        """Cut a client off whose session has failed: it finds its requests' way closed."""
        image_id = session.image_id
        if any(other.image_id == image_id for other in self._sessions.values()):
            return
        for image in self._control_subscriptions[session.subscription_id].images():
            # A driver that is gone needs not be told, and says so itself.
            with contextlib.suppress(AerotapeError):
                if image.correlation_id == image_id:
                    image.reject(session.end_reason[:MAX_REJECT_REASON_LENGTH])
            image.release()

    # ---- what the native side reports ---------------------------------------------------------

    def _on_client_closed(self) -> None:
        raise ClosedError(
            f"the media driver in {self._client.aeron_dir} is gone, or its client was timed out"
        )

    def _on_worker_failed(self, name: str) -> None:
        raise ClosedError(f"thread {name} has failed: internal error, please report it")

    def _on_client_error(self, code: int, message: str) -> None:
        if code in _FATAL_CLIENT_ERRORS:
            raise ClosedError(f"the media driver in {self._client.aeron_dir} is lost: {message}")
        self.errors.record(f"Aeron client error {code}", message)

    def _on_image_available(self, image: Any) -> None:
        if image.subscription_registration_id in self._control_subscriptions:
            image.release()
        else:
            self.recordings.on_image(image)

    def _on_recording_stopped(
        self, recording_id: int, position: int, error_code: int, message: str | None
    ) -> None:
        # A client learns of the end of a replication before that of its recording, unless that is
        # what ends it.
        try:
            if message is None:
                self.replications.recording_stopped(recording_id, position)
        finally:
            self.recordings.on_stopped(recording_id, position, error_code, message)

    def _on_time_index_failed(self, recording_id: int, message: str) -> None:
        self.errors.record(
            "time index not written", f"recording {recording_id} goes on without: {message}"
        )

    def _on_image_unavailable(self, subscription_id: int, image_id: int) -> None:
        if subscription_id not in self._control_subscriptions:
            return
        for session in list(self._sessions.values()):
            if session.image_id == image_id:
                session.abort(REQUEST_IMAGE_GONE)

    # ---- closing ------------------------------------------------------------------------------

    def _close(self) -> None:
        """End everything in order: native sessions, their last words, the books, the clients."""
        for worker in self._workers:
            self._quietly(worker.close)
        try:
            self._events.extend(self._mailbox.wait())
        except AerotapeError as error:
            self.errors.record("closing", error)
        for event in self._events:
            if event[0] in _LAST_WORDS:
                self._quietly(partial(self._handlers[event[0]], *event[1:]))
        for retention in self._retention:
            self._quietly(retention.close)
        self._quietly(self.replications.close)
        self._quietly(self.recordings.close)
        self._quietly(self.replays.close)
        self._quietly(self.deletions.close)
        self._quietly(partial(make_next_segments, self.catalog, self.archive_dir))
        for session in list(self._sessions.values()):
            session.abort(SESSION_CLOSED)
            self._quietly(partial(self._remove, session))
        for subscription in self._control_subscriptions.values():
            self._quietly(subscription.close)

    def _quietly(self, call: Callable[[], None]) -> None:
        try:
            call()
        except ClosedError:
            pass
        except BaseException as error:
            # Whatever it is, the other parts are closed too.
            self.errors.record("closing", error, exception=error)
