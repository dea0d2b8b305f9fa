"""A running archive: its parts, started and stopped in order.

Start: lock the directory, start or find the media driver, write the mark file (which may lie in the
driver's directory, so after a driver has emptied it), subscribe to the control channels, open the
catalog, recover recordings, start the conductor. Stop: in reverse order. An archive directory in
the driver's directory is created and locked after the driver's start.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeVar

from aerotape import _native
from aerotape.archive.compaction import compact_at_start
from aerotape.archive.composition import OpenedParts
from aerotape.archive.conductor import Conductor
from aerotape.archive.config.archive_config import LIVENESS_TIMEOUT_MS, ArchiveConfig
from aerotape.archive.config.values import Idle
from aerotape.archive.control.control_subscriptions import add_control_subscriptions
from aerotape.archive.control.feature import recovery_of
from aerotape.archive.counters import ArchiveCounters, CycleCounters
from aerotape.archive.driver_directory import check_driver_directory, is_within
from aerotape.archive.error_log import LOGGER, ErrorLog
from aerotape.archive.features.built_in import FEATURES, SECTIONS
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.archive.security.authentication import Authenticator
from aerotape.archive.security.authorisation import AuthorisationService
from aerotape.archive.security.plugins import (
    check_authenticator,
    check_authorisation_service,
    load_authenticator,
    load_authorisation_service,
)
from aerotape.archive.threads import show_thread_name, thread_name
from aerotape.catalog.durability import make_directory
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.mark.layout import LOCK_FILE_NAME, MarkFileHeader
from aerotape.catalog.mark.mark_file import MarkFile
from aerotape.catalog.mark.ownership import claim
from aerotape.catalog.recovery.refresh import Outcome, RecordingOutcome, refresh
from aerotape.clock import epoch_ms
from aerotape.context import Closing
from aerotape.errors import ConfigurationError, StorageError
from aerotape.formatting import shown
from aerotape.media_driver import (
    await_driver,
    default_aeron_dir,
    launch_driver,
    text_of,
    with_c_names,
)
from aerotape.protocol import NULL_VALUE
from aerotape.worker_arguments import WorkerOptions

DriverKind = Literal["embedded", "external"]
_PartT = TypeVar("_PartT", MarkFile, Catalog, _native.MediaDriver, _native.AeronClient)


class Archive(Closing):
    """A running archive. Use as a context manager, or call `close`.

    Attributes:
        config: its effective settings.
        archive_dir: directory of the recordings.
        aeron_dir: the media driver's directory.
        archive_id: its id on that driver.
        control_channel: for requests of remote clients ("" when disabled).
        local_control_channel: for requests over IPC.
        outcomes: what the start found about recordings and files, as `refresh` returns it.
    """

    def __init__(
        self,
        config: ArchiveConfig,
        driver: DriverKind,
        authenticator: Authenticator | None = None,
        authorisation_service: AuthorisationService | None = None,
    ) -> None:
        """Start; call `launch` instead."""
        if driver == "embedded":
            with_c_names(config.driver_properties)  # raises before anything is changed
        self.config = config
        self.aeron_dir = config.aeron_dir or default_aeron_dir()
        self.control_channel = config.control_channel if config.control_channel_enabled else ""
        self.local_control_channel = config.local_control_channel
        self._is_nested = is_within(config.archive_dir, self.aeron_dir)
        self.archive_dir = config.archive_dir
        if not self._is_nested:
            self.archive_dir = _make_directory(config.archive_dir)
        if config.archive_id == NULL_VALUE:
            # The reference uses the client id; here the mark file is written before the client.
            self.archive_id = int.from_bytes(os.urandom(8)) >> 2
        else:
            self.archive_id = config.archive_id
        self.outcomes: list[RecordingOutcome] = []
        self._cleanup = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._closed = False
        try:
            self._choose_access(authenticator, authorisation_service)
            if config.retention_file is not None:
                from aerotape.archive.retention.policy import read_policy

                # Validates it: each retention pass reads it again.
                read_policy(config.retention_file)
            self._start(driver)
        except BaseException:
            self._cleanup.close()
            raise
        self._pid = os.getpid()
        atexit.register(self._close_at_exit)

    @classmethod
    def launch(
        cls,
        dir: str | Path | None = None,
        aeron_dir: str | Path | None = None,
        driver: DriverKind = "embedded",
        properties: Mapping[str, object] | None = None,
        authenticator: Authenticator | None = None,
        authorisation_service: AuthorisationService | None = None,
        users_file: str | Path | None = None,
    ) -> Archive:
        """Start an archive and return once clients can connect to it.

        >>> with aerotape.Archive.launch(dir="archive", properties=properties) as archive:
        ...     with aerotape.connect(aeron_dir=archive.aeron_dir) as client:
        ...         print(list(client.list_recordings()))
        []

        Args:
            dir: the archive directory, created if missing; overrides ``aeron.archive.dir``.
            aeron_dir: the media driver's directory; overrides ``aeron.dir``.
            driver: ``embedded`` starts a C media driver in this process, ``external`` uses the
                driver of `aeron_dir`.
            properties: `aeron.archive.*` for the archive, other `aeron.*` for the driver.
            authenticator: admits clients (`aerotape.archive.security`); overrides
                ``aeron.archive.authenticator.supplier``.
            authorisation_service: permits requests (`aerotape.archive.security`); overrides
                ``aeron.archive.authorisation.service.supplier``.
            users_file: the users that may connect, with secrets and roles; overrides
                ``aerotape.users.file``.

        Raises:
            ConfigurationError: a property has an invalid value.
            ArchiveInUseError: another archive uses the directory.
            AerotapeError: the driver, the catalog or the mark file cannot be used.
        """
        merged = _texts({} if properties is None else properties)
        for name, value in (
            ("aeron.archive.dir", dir),
            ("aeron.dir", aeron_dir),
            ("aerotape.users.file", users_file),
        ):
            if value is not None:
                merged[name] = str(value)
        if driver not in ("embedded", "external"):
            raise ConfigurationError(f"driver={driver!r} must be embedded or external", "driver")
        if authenticator is not None:
            check_authenticator(authenticator, "authenticator")
        if authorisation_service is not None:
            check_authorisation_service(authorisation_service, "authorisation_service")
        config = ArchiveConfig.from_properties(merged, sections=SECTIONS)
        return cls(config, driver, authenticator, authorisation_service)

    def _choose_access(
        self,
        authenticator: Authenticator | None,
        authorisation_service: AuthorisationService | None,
    ) -> None:
        """Choose authenticator and authorisation: arguments, users file, or properties."""
        config = self.config
        if config.users_file is not None:
            if authenticator is not None:
                raise ConfigurationError(
                    f"authenticator and users file {config.users_file} both decide on clients:"
                    " give one",
                    "authenticator",
                )
            from aerotape.archive.security.permissions import Permissions
            from aerotape.archive.security.users import UsersGuard
            from aerotape.control_address import OwnAddresses

            addresses = OwnAddresses(self.control_channel, config.control_addresses)
            users = UsersGuard(
                config.users_file, addresses, Permissions(FEATURES), config.thread_naming
            )
            self._cleanup.callback(users.close)
            authenticator = users
            if not config.authorisation_service_supplier:
                authorisation_service = authorisation_service or users
        self._authenticator = authenticator or load_authenticator(config.authenticator_supplier)
        self._authorisation_service = authorisation_service or load_authorisation_service(
            config.authorisation_service_supplier
        )

    # ---- starting -----------------------------------------------------------------------------

    def _start(self, driver: DriverKind) -> None:
        config = self.config
        for warning in config.warnings:
            LOGGER.warning("%s", warning)
        if not self._is_nested:
            self._cleanup.callback(self._claim(driver))
            self._start_driver(driver)
        else:
            if driver == "embedded" and self.archive_dir.exists():
                # Another archive may be using it. The driver deletes it with the lock.
                self._claim(driver)()
            self._start_driver(driver)
            self.archive_dir = _make_directory(config.archive_dir)
            self._cleanup.callback(self._claim("external"))
        mark_file = self._mark_file = self._open(self._create_mark_file())
        mark_file.acquire()
        # Recovery may take longer than the liveness timeout of the mark file.
        with mark_file.kept_alive():
            self._start_parts(mark_file)

    def _claim(self, driver: DriverKind) -> Callable[[], None]:
        """Lock the archive directory, and empty it if so configured; return what frees it."""
        config = self.config
        free = claim(self.archive_dir, config.mark_file_dir, LIVENESS_TIMEOUT_MS)
        try:
            deletes = config.delete_archive_on_start
            if driver == "embedded" and not (deletes and self._is_nested):
                check_driver_directory(config, self.aeron_dir)
            if deletes:
                _delete_contents(self.archive_dir)
        except BaseException:
            free()
            raise
        return free

    def _start_driver(self, driver: DriverKind) -> None:
        config = self.config
        if driver == "embedded":
            self._open(launch_driver({**config.driver_properties, "aeron.dir": self.aeron_dir}))
        else:
            await_driver(self.aeron_dir, config.driver_timeout_ms * 1_000_000)

    def _start_parts(self, mark_file: MarkFile) -> None:
        config = self.config
        # What it calls waits for a disk that stands still, and nothing else does.
        mark_file_worker = FileWorker("mark", lambda: None, config.thread_naming)
        self._cleanup.callback(mark_file_worker.close, is_completed=True)
        mailbox = _native.Mailbox()
        client = self._open(
            _native.AeronClient(
                self.aeron_dir,
                client_name=f"archive archiveId={self.archive_id}",
                driver_timeout_ms=config.driver_timeout_ms,
                mailbox=mailbox,
            )
        )
        # Recovery comes after: meanwhile the driver connects clients, whose requests wait.
        subscriptions = add_control_subscriptions(client, mailbox, config)
        catalog = self._open_catalog()
        archive_counters = ArchiveCounters(client, self.archive_id, config)
        errors = ErrorLog(archive_counters.errors, mark_file, mark_file_worker.submit)
        recorder, replayer = self._workers(mailbox, archive_counters)
        opened = OpenedParts(
            config=config,
            archive_id=self.archive_id,
            archive_dir=self.archive_dir,
            client=client,
            mailbox=mailbox,
            control_subscriptions=subscriptions,
            catalog=catalog,
            mark_file=mark_file,
            mark_file_worker=mark_file_worker,
            counters=archive_counters,
            recorder=recorder,
            replayer=replayer,
            errors=errors,
        )
        self._conductor = Conductor(
            opened, self._authenticator, self._authorisation_service, FEATURES
        )
        name = thread_name("conductor", config.thread_naming)
        self._thread = threading.Thread(target=self._conduct, args=(name,), name=name, daemon=True)
        mark_file.ready()
        with _started_on(config.conductor_cpu, "aeron.archive.conductor.cpu.affinity"):
            self._thread.start()
        self._cleanup.callback(self._stop_conductor)

    def _conduct(self, thread_name: str) -> None:
        show_thread_name(thread_name)
        self._conductor.run()

    def _open_catalog(self) -> Catalog:
        """Open the catalog and recover recordings that were open at a crash."""
        config = self.config
        catalog = self._open(
            Catalog.open(
                self.archive_dir,
                create=True,
                capacity_bytes=config.catalog_capacity,
                sync_level=config.catalog_file_sync_level,
                checksum=config.record_checksum,
            )
        )
        self.outcomes = refresh(
            catalog,
            self.archive_dir,
            checksum=config.record_checksum,
            now_ms=epoch_ms(),
            judge=recovery_of(FEATURES, self.archive_dir),
        )
        for outcome in self.outcomes:
            if outcome.outcome is not Outcome.CLEAN:
                LOGGER.log(logging.WARNING if outcome.suspect else logging.INFO, "%s", outcome)
        compact_at_start(catalog, self.archive_dir, config.catalog_capacity, FEATURES)
        return catalog

    def _open(self, part: _PartT) -> _PartT:
        self._cleanup.callback(part.close)
        return part

    def _create_mark_file(self) -> MarkFile:
        config = self.config
        if config.mark_file_dir is not None:
            _make_directory(config.mark_file_dir)
        settings = MarkFileHeader(
            archive_id=self.archive_id,
            control_channel=self.control_channel,
            control_stream_id=config.control_stream_id,
            local_control_channel=config.local_control_channel,
            local_control_stream_id=config.local_control_stream_id,
            events_channel=config.recording_events_channel,
            events_stream_id=config.recording_events_stream_id,
            aeron_directory=self.aeron_dir,
            error_buffer_length=config.error_buffer_length,
        )
        return MarkFile(
            self.archive_dir,
            settings,
            liveness_timeout_ms=LIVENESS_TIMEOUT_MS,
            mark_file_dir=config.mark_file_dir,
        )

    def _workers(
        self, mailbox: _native.Mailbox, counters: ArchiveCounters
    ) -> tuple[_native.SessionWorker, _native.SessionWorker]:
        config = self.config

        def worker(role: str, idle: Idle | None, cycle: CycleCounters) -> _native.SessionWorker:
            options = WorkerOptions(
                thread_name(role, config.thread_naming),
                self.archive_dir,
                file_io_max_length=config.file_io_max_length,
                file_sync_level=config.file_sync_level,
                record_checksum=config.record_checksum,
                replay_checksum=config.replay_checksum,
                idle=idle or config.idle,
                write_counters=counters.written,
                read_counters=counters.read,
                sync_counters=counters.syncs,
                cycle_counters=cycle,
            )
            made = _native.SessionWorker(mailbox, options)
            # The conductor closes it first; this is for a start that fails.
            self._cleanup.callback(made.close)
            return made

        if config.threading_mode == "SHARED":
            with _started_on(config.conductor_cpu, "aeron.archive.conductor.cpu.affinity"):
                shared = worker("worker", None, counters.conductor_cycle)
            return shared, shared
        with _started_on(config.recorder_cpu, "aeron.archive.recorder.cpu.affinity"):
            recorder = worker("recorder", config.recorder_idle, counters.recorder_cycle)
        with _started_on(config.replayer_cpu, "aeron.archive.replayer.cpu.affinity"):
            replayer = worker("replayer", config.replayer_idle, counters.replayer_cycle)
        return recorder, replayer

    # ---- running and stopping -----------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    @property
    def last_duty_cycle_ns(self) -> int:
        """The begin of the conductor's last duty cycle, of `time.monotonic_ns`.

        An idle conductor begins one each 0.1 s.
        """
        return self._conductor.last_cycle_ns

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def failure(self) -> BaseException | None:
        """The error that ended the archive; None while it runs or after `close`."""
        return self._conductor.failure

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the archive has failed or was closed; False after the timeout."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _stop_conductor(self) -> None:
        self._conductor.stop()
        self._thread.join()

    def close(self) -> None:
        """Write the stop positions of recordings, and unlock the directory. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self._close_at_exit)
        with self._mark_file.kept_alive():
            self._cleanup.close()

    def __repr__(self) -> str:
        return shown(self, "archive_dir", "aeron_dir", "archive_id", "control_channel")

    def _close_at_exit(self) -> None:
        """Close an archive that was left open at exit; not in a forked child."""
        if os.getpid() == self._pid:
            self.close()


def _texts(properties: Mapping[str, object]) -> dict[str, str]:
    """Return properties with values as in a properties file (ConfigurationError)."""
    if not isinstance(properties, Mapping):
        kind = type(properties).__name__
        raise ConfigurationError(f"properties must be a mapping, not {kind}", "properties")
    for name in properties:
        if not isinstance(name, str):
            raise ConfigurationError(f"properties: name {name!r} must be a string", "properties")
    return {name: text_of(value) for name, value in properties.items()}


def _make_directory(path: Path) -> Path:
    try:
        make_directory(path)
        return path.resolve(strict=True)
    except OSError as error:
        raise StorageError(f"cannot create directory {path}: {error.strerror}", path) from error


def _delete_contents(directory: Path) -> None:
    """Empty an archive directory that has been claimed."""
    import shutil

    for entry in directory.iterdir():
        if entry.name == LOCK_FILE_NAME:
            continue
        remove: Callable[[Path], None] = (
            shutil.rmtree if entry.is_dir() and not entry.is_symlink() else Path.unlink
        )
        try:
            remove(entry)
        except OSError as error:
            raise StorageError(f"cannot delete {entry}: {error.strerror}", entry) from error


@contextlib.contextmanager
def _started_on(cpu: int, name: str) -> Iterator[None]:
    """Pin the threads that are started in the block to one processor; -1 pins none.

    A thread, native ones too, inherits the affinity of the thread that starts it, so that it never
    runs on another processor. `name` is the property with the value (ConfigurationError).
    """
    if cpu == -1:
        yield
        return
    before = os.sched_getaffinity(0)
    if cpu not in before:
        allowed = ", ".join(map(str, sorted(before)))
        raise ConfigurationError(
            f"{name}={cpu}: this process may not run on that processor; allowed: {allowed}", name
        )
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
