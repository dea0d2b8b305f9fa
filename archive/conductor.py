"""The conductor: the one thread that receives requests and changes the catalog.

It owns the catalog, the control sessions, the recordings and the replays: no other thread uses
them. No request ends it; the loss of the media driver and an internal error do.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, assert_never

from aerotape import _native
from aerotape.archive.composition import OpenedParts, compose_services, retention_agent
from aerotape.archive.config.archive_config import MARK_FILE_UPDATE_INTERVAL_MS
from aerotape.archive.control.control_session_adapter import ControlSessionAdapter
from aerotape.archive.control.control_sessions import ControlSessions
from aerotape.archive.control.feature import Feature
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.archive.recording.storage import StorageSpace
from aerotape.archive.security.authentication import Authenticator, GuardedAuthenticator
from aerotape.archive.security.authorisation import AuthorisationService, GuardedAuthorisation
from aerotape.catalog.recovery.trailing_segment import make_next_segments
from aerotape.clock import epoch_ms
from aerotape.errors import AerotapeError, ClosedError
from aerotape.waiting import SOON_NS

if TYPE_CHECKING:
    from concurrent.futures import Future

    from aerotape.archive.agent import Agent

FRAGMENT_LIMIT = 10
# Aeron's codes for a driver without a sign of life, a client that the driver has timed out, and
# a client conductor that was suspended for too long: after these the client is unusable.
_FATAL_CLIENT_ERRORS = (1000, 1001, 1002)
_IDLE_TIMEOUT_NS = 100_000_000


class Conductor:
    """The archive's duty cycle. `run` is its thread; `stop` may be called from any other.

    Attributes:
        failure: the error that ended the conductor, None after a stop that was requested.
        last_cycle_ns: when its last duty cycle began, of `time.monotonic_ns`.
    """

    def __init__(
        self,
        opened: OpenedParts,
        authenticator: Authenticator,
        authorisation_service: AuthorisationService,
        features: Iterable[type[Feature]],
    ) -> None:
        """Create the archive's services.

        Raises:
            AeronError: the driver refuses the channel of the recording events.
        """
        self.failure: BaseException | None = None
        self.last_cycle_ns = time.monotonic_ns()
        self._opened = opened
        self._archive_dir, self._catalog = opened.archive_dir, opened.catalog
        self._client, self._mailbox = opened.client, opened.mailbox
        config, self._errors = opened.config, opened.errors
        self._control_subscriptions = opened.control_subscriptions
        # Received and not handled yet; the loss of the driver may interrupt their handling.
        self._events: deque[_native.Event] = deque()
        self._mark_file_update: Future[None] | None = None
        self._mark_file_due_ns = 0
        self._stopping = False
        self._storage = StorageSpace(
            opened.archive_dir,
            config.low_storage_space_threshold,
            opened.counters.low_storage,
        )
        self._files = FileWorker("files", self._mailbox.wake, config.thread_naming)
        authorisation = GuardedAuthorisation(authorisation_service, self._errors)
        services = compose_services(opened, self._storage, self._files, authorisation)
        self.recordings, self.replays = services.recordings, services.replays
        self._deletions = services.segments.deletions
        self._replications, self._changes = services.replications, services.changes
        self._imports = services.imports
        self._sessions = ControlSessions(
            subscriptions=self._control_subscriptions,
            replay_tokens=services.replay_tokens,
            session_counter=opened.counters.control_sessions,
            errors=self._errors,
            liveness_check_interval_ms=config.session_liveness_check_interval_ns // 1_000_000,
        )
        for feature in features:
            services.features.add(feature(services, config, self._mailbox.wake))
        adapter = ControlSessionAdapter(
            config=config,
            client=self._client,
            sessions=self._sessions,
            services=services,
            authenticator=GuardedAuthenticator(authenticator, self._errors),
        )
        # In the order in which they are advanced, and closed.
        self._agents: dict[str, Agent] = {
            "catalog changes": self._changes,
            "replications": self._replications,
            **services.features.agents,
            "recordings": self.recordings,
            "replays": self.replays,
            "background tasks": services.tasks,
            **retention_agent(opened, services, adapter.audience),
            "control sessions": self._sessions,
        }
        self._adapter = adapter

    # ---- the loop -----------------------------------------------------------------------------

    def stop(self) -> None:
        """Make `run` close the archive's parts and return. Idempotent."""
        self._stopping = True
        self._mailbox.wake()

    def run(self) -> None:
        """Work until stopped, or until `failure`; then close all sessions."""
        subscriptions = list(self._control_subscriptions.values())
        try:
            while not self._stopping:
                self.do_work(
                    self._mailbox.wait(
                        subscriptions,
                        self._timeout_ns(),
                        FRAGMENT_LIMIT,
                        self._sessions.bulk_offers(),
                    )
                )
        except BaseException as error:
            # A panic of native code is not an Exception.
            self.failure = error
            if not isinstance(error, ClosedError):
                self._errors.record("conductor failed", error, exception=error)
        finally:
            self._close()

    def do_work(self, events: list[_native.Event]) -> None:
        """Run one duty cycle: handle the events, then advance all agents.

        Raises:
            ClosedError: the media driver is lost, or a worker has failed.
        """
        begin_ns = self.last_cycle_ns = time.monotonic_ns()
        self._events.extend(events)
        while self._events:
            self._dispatch(self._events.popleft())
        for name, agent in self._agents.items():
            try:
                agent.do_work()
            except Exception as error:
                if self._client.is_closed:
                    self._on_client_closed()
                if not isinstance(error, ClosedError):
                    self._errors.record(f"{name} failed", error, exception=error)
        if begin_ns >= self._mark_file_due_ns:
            self._mark_file_due_ns = begin_ns + MARK_FILE_UPDATE_INTERVAL_MS * 1_000_000
            self._update_mark_file()
            if self._changes.does_disk_respond():
                self._storage.watch()
        self._opened.counters.conductor_cycle.measured(time.monotonic_ns() - begin_ns)

    def _update_mark_file(self) -> None:
        """Have the activity timestamp stored, unless the last one still waits for the disk."""
        if self._mark_file_update is not None:
            if not self._mark_file_update.done():
                return
            error = self._mark_file_update.exception()
            if error is not None:
                self._errors.record("mark file not updated", error)
        update = partial(self._opened.mark_file.update_activity, epoch_ms())
        self._mark_file_update = self._opened.mark_file_worker.submit(update)

    def _timeout_ns(self) -> int:
        """Return the longest time to wait for events before the next duty cycle."""
        timeout_ns = _IDLE_TIMEOUT_NS
        for agent in self._agents.values():
            wanted_ns = agent.wants_within_ns
            if wanted_ns is not None and wanted_ns < timeout_ns:
                timeout_ns = wanted_ns
        return timeout_ns

    def _dispatch(self, event: _native.Event) -> None:
        try:
            self._handle(event)
        except ClosedError:
            raise
        except Exception as error:
            self._errors.record(f"{type(event).__name__} not handled", error, exception=error)

    def _handle(self, event: _native.Event) -> None:
        match event:
            case _native.ControlMessage():
                self._adapter.on_message(
                    event.subscription_registration_id,
                    event.image_correlation_id,
                    event.session_id,
                    event.payload,
                )
            case _native.ImageAvailable():
                self._on_image_available(event.image)
            case _native.ImageUnavailable():
                if event.subscription_registration_id in self._control_subscriptions:
                    self._sessions.on_image_unavailable(event.image_correlation_id)
            case _native.ClientClosed():
                self._on_client_closed()
            case _native.ClientError():
                self._on_client_error(event.code, event.message)
            case _native.RecordingStopped():
                self._on_recording_stopped(event)
            case _native.RecordingSynced():
                self.recordings.on_synced(event.recording_id, event.position)
            case _native.TimeIndexFailed():
                self._on_time_index_failed(event)
            case _native.ReplayReady():
                self.replays.on_ready(event.replay_session_id, is_ok_sent=event.is_answered)
            case _native.ReplayDone():
                self.replays.on_done(
                    event.replay_session_id, event.position, event.error_code, event.message
                )
            case _native.WorkerFailed():
                self._on_worker_failed(event)
            case _:
                assert_never(event)

    # ---- events of the native threads --------------------------------------------------------

    def _on_client_closed(self) -> None:
        raise ClosedError(
            f"the media driver in {self._client.aeron_dir} is gone, or its client was timed out"
        )

    def _on_worker_failed(self, event: _native.WorkerFailed) -> None:
        raise ClosedError(
            f"thread {event.name} has failed: internal error: {event.reason}: please report it with"
            " the archive's output"
        )

    def _on_client_error(self, code: int, message: str) -> None:
        if code in _FATAL_CLIENT_ERRORS:
            raise ClosedError(f"the media driver in {self._client.aeron_dir} is lost: {message}")
        self._errors.record(f"Aeron client error {code}", message)

    def _on_image_available(self, image: _native.Image) -> None:
        if image.subscription_registration_id in self._control_subscriptions:
            image.release()
        else:
            self.recordings.on_image(image)

    def _on_recording_stopped(self, event: _native.RecordingStopped) -> None:
        def end() -> None:
            # The client receives the end of a replication before that of its recording, unless
            # the recording has failed.
            try:
                if event.message is None:
                    self._replications.recording_stopped(event.recording_id, event.position)
            finally:
                self.recordings.on_stopped(
                    event.recording_id, event.position, event.error_code, event.message
                )

        self._changes.run_when_disk_responds(end)

    def _on_time_index_failed(self, event: _native.TimeIndexFailed) -> None:
        self._errors.record(
            "time index not written",
            f"recording {event.recording_id} continues without: {event.message}",
        )

    # ---- closing ------------------------------------------------------------------------------

    def _close(self) -> None:
        """Close in order: workers, the sessions that their last events end, the clients."""
        self._quietly(self._changes.close)
        while len(self._changes):
            self._quietly(self._changes.do_work)
        if self.failure is None:
            self._quietly(self._finish_recordings)
        for worker in {self._opened.recorder, self._opened.replayer}:
            self._quietly(worker.close)
        try:
            self._events.extend(self._mailbox.wait())
        except AerotapeError as error:
            self._errors.record("closing", error)
        for event in self._events:
            # Clients wait for these, or they change the catalog.
            if isinstance(event, _native.RecordingStopped | _native.RecordingSynced):
                self._quietly(partial(self._handle, event))
        self._quietly(self._files.close)
        self._quietly(self._imports.close)
        self._quietly(self._deletions.close)
        for agent in self._agents.values():
            self._quietly(agent.close)
        self._quietly(partial(make_next_segments, self._catalog, self._archive_dir))
        for subscription in self._control_subscriptions.values():
            self._quietly(subscription.close)

    def _finish_recordings(self) -> None:
        """Record what publications have accepted by now, as a stop of each recording does."""
        self.recordings.stop_all()
        deadline_ns = time.monotonic_ns() + self._opened.config.message_timeout_ns
        while not self.recordings.is_idle and time.monotonic_ns() < deadline_ns:
            for event in self._mailbox.wait(timeout_ns=SOON_NS):
                self._dispatch(event)
            self.recordings.do_work()

    def _quietly(self, call: Callable[[], None]) -> None:
        try:
            call()
        except ClosedError:
            pass
        except BaseException as error:
            # The other parts are closed even after a panic of native code.
            self._errors.record("closing", error, exception=error)
