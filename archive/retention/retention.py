"""Retention in a running archive: passes at intervals, each a plan and its removals.

Removals are those of clients (`archive.removal`), so that the same checks apply and the same
thread deletes the files. The plan is made in a separate thread and executed with one removal per
duty cycle, a few deletions at a time.

The policy is read in each pass; an invalid one is an error, and nothing is deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.archive.control import responses
from aerotape.archive.error_log import LOGGER
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.archive.retention.locked_segments import plan_directory
from aerotape.archive.retention.plan import Removal, Retained, RetentionPlan
from aerotape.archive.retention.policy import read_policy
from aerotape.archive.retention.survey import Usage
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.errors import AerotapeError, ArchiveError
from aerotape.protocol import NULL_POSITION, NULL_VALUE
from aerotape.waiting import SOON_NS, BackgroundTasks, Pause, Task, await_future

if TYPE_CHECKING:
    from aerotape._native import Counter
    from aerotape.archive.control.services import Services
    from aerotape.archive.control.signals import SignalAudience
    from aerotape.archive.threads import ThreadNaming

_MAX_UNDER_WAY: Final = 8


@dataclass(eq=False, kw_only=True)
class Retention:
    """Applies a policy; the first pass is due after an interval. For the conductor's thread.

    Attributes:
        interval_ns: from the start of one pass to that of the next.
        counters: of deleted segment files, and of their allocated bytes.
        wake: makes the conductor call `do_work` soon; called from other threads.
        audience: receives the signals.
        naming: of the thread that plans.
    """

    policy_file: Path
    interval_ns: int
    services: Services
    counters: Sequence[Counter]
    wake: Callable[[], None]
    audience: SignalAudience | None
    naming: ThreadNaming = "classic"
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    epoch_ns: Callable[[], int] = time.time_ns
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)
    _removals: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)
    _is_removing: bool = field(default=False, init=False)
    _retained: Mapping[int, Retained] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._worker = FileWorker("retain", self.wake, self.naming)
        self._due_ns = self.monotonic_ns() + self.interval_ns

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: there are removals left to begin."""
        is_removing = self._is_removing and len(self._removals) < _MAX_UNDER_WAY
        return SOON_NS if is_removing else None

    @property
    def is_at_work(self) -> bool:
        """Whether a pass is in progress."""
        return len(self._tasks) > 0

    def do_work(self) -> None:
        """Start a pass when it is due, or advance the current one by one step."""
        now_ns = self.monotonic_ns()
        self._removals.do_work()
        if self.is_at_work:
            self._tasks.do_work()
        elif now_ns >= self._due_ns:
            self._due_ns = now_ns + self.interval_ns
            self._tasks.start(self._pass())

    def _pass(self) -> Task[None]:
        try:
            usage, now_ns = self._usage(), self.epoch_ns()
            planning = self._worker.submit(lambda: self._plan(usage, now_ns))
            yield Pause()  # no removal in the duty cycle that starts a pass
            plan = yield from await_future(planning)
            self._log_retained(plan)
            self._is_removing = True
            for removal in plan.removals:
                while (
                    len(self._removals) >= _MAX_UNDER_WAY
                    or not self.services.changes.does_disk_respond()
                ):
                    yield Pause()
                if self._is_as_planned(removal):
                    self._removals.start(self._remove(removal))
                    yield Pause()
            self._is_removing = False
            while len(self._removals):
                yield Pause()
        except AerotapeError as error:
            self.services.errors.record("retention failed", error)
        finally:
            self._is_removing = False

    def _log_retained(self, plan: RetentionPlan) -> None:
        """Log what a limit cannot be applied to, unless the preceding pass has logged it."""
        before, self._retained = self._retained, {each.recording_id: each for each in plan.retained}
        for recording_id, each in self._retained.items():
            if recording_id not in before or before[recording_id].in_use != each.in_use:
                LOGGER.info("retention: %s", each)

    def _plan(self, usage: Usage, now_ns: int) -> RetentionPlan:
        policy = read_policy(self.policy_file)
        services = self.services
        return plan_directory(services.archive_dir, policy, now_ns, services.features.holds, usage)

    def _usage(self) -> Usage:
        recordings = self.services.recordings
        live = {session.recording_id: session.position for session in recordings}
        held = {
            recording_id: "a replication to it is starting"
            for recording_id in self.services.replications.recording_ids()
            if recording_id not in live
        }
        for source in recordings.subscriptions.listed():
            if source.extends is not None and source.extends not in live:
                held[source.extends] = "an extension of it is starting"
        return Usage(live, self.services.replays.lowest_positions(), held)

    def _is_as_planned(self, removal: Removal) -> bool:
        """Whether a recording is unchanged and unused since the plan."""
        recording_id = removal.recording_id
        if not self.services.catalog.has_recording(recording_id):
            return False
        descriptor, planned = self.services.catalog.descriptor(recording_id), removal.descriptor
        if descriptor.start_position != planned.start_position:
            return False
        if removal.new_start_position is None and (
            descriptor.stop_position != planned.stop_position or recording_id in self._usage().held
        ):
            return False
        return not self.services.segments.locks.is_locked(recording_id)

    def _remove(self, removal: Removal) -> Task[None]:
        """Remove what is planned of a recording, unless it is refused."""
        services, recording_id = self.services, removal.recording_id
        try:
            services.features.check_recording(recording_id)
            if removal.new_start_position is None:
                deletion = services.removals.purge(recording_id)
            else:
                deletion = services.removals.purge_segments(
                    recording_id, removal.new_start_position
                )
            segments, size = self.counters
            segments.add((yield from await_future(deletion.counted)))
            size.add(removal.size_bytes)
            LOGGER.info("retention deletes of %s", removal)
            for problem in (yield from await_future(deletion.deleted)):
                LOGGER.info("retention: recording %d: %s", recording_id, problem)
            self._signal_deletion(recording_id)
        except ArchiveError as error:
            LOGGER.info("retention: recording %d: %s", recording_id, error)
        except AerotapeError as error:
            services.errors.record("retention failed", error)

    def _signal_deletion(self, recording_id: int) -> None:
        if self.audience is not None:
            # It belongs to no client's request.
            message = responses.recording_signal(
                NULL_VALUE,
                NULL_VALUE,
                recording_id,
                NULL_VALUE,
                NULL_POSITION,
                RecordingSignal.DELETE,
            )
            self.audience.broadcast(NULL_VALUE, message)

    def close(self) -> None:
        """Cancel the removals that have not begun yet."""
        self._tasks.close()
        self._removals.close()
        self._worker.close()
