//! The recorder and the replayer: one native thread that runs sessions of either kind.
//!
//! Python sends commands and receives events through the mailbox; the bytes move between Aeron's
//! log buffers and segment files without Python. The thread never takes the interpreter lock.
//! `duty_cycle.rs` is the thread, `recording.rs` and `replay.rs` are the sessions, `discards.rs`
//! reads what is not recorded, the `segment_*.rs` files and `batch.rs` handle files and frames.

mod batch;
mod discards;
mod duty_cycle;
mod events;
mod failure;
mod recording;
mod replay;
mod replay_limit;
mod segment_file;
mod segment_reader;
mod segment_writer;
mod statistics;
mod sync_pool;
mod time_index;

use crate::aeron::{Counter, ExclusivePublication, Image, lock};
use crate::checksum::Checksum;
use crate::errors::Error;
use crate::fork;
use crate::idle::Backoff;
use crate::mailbox::{Event, Mailbox, WorkerFailed};
use discards::Discards;
use duty_cycle::{Command, DutyCycle};
use events::EventStream;
use failure::panic_text;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use recording::{RecordArguments, RecordingEnd, RecordingRequest};
use replay::{ReplayArguments, ReplayRequest};
use segment_writer::{Storage, SyncLevel};
use statistics::{CycleCounters, CycleTime, SyncCounters, Traffic, TrafficCounters};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Least value of `aeron.archive.file.io.max.length`: the longest frame of any stream.
const MIN_FILE_IO_LENGTH: usize = 65_504;
/// More than the longest term is never read or written at once.
const MAX_FILE_IO_LENGTH: usize = 1 << 30;

#[pyclass(frozen, module = "aerotape._native")]
pub struct SessionWorker {
    running: Mutex<Option<Running>>,
}

struct Running {
    commands: Sender<Command>,
    thread: JoinHandle<()>,
    process: fork::Process,
}

impl SessionWorker {
    fn send(&self, command: Command) -> PyResult<()> {
        let sent = lock(&self.running).as_ref().is_some_and(|running| {
            if !running.process.is_this() {
                return false;
            }
            let sent = running.commands.send(command).is_ok();
            running.thread.thread().unpark();
            sent
        });
        if sent {
            Ok(())
        } else {
            Err(Error::Closed("the session worker is closed".into()).into())
        }
    }
}

/// How far a replay has got. Its files must not be taken away from there on.
#[pyclass(frozen, module = "aerotape._native")]
pub struct ReplayProgress {
    position: Arc<AtomicI64>,
}

#[pymethods]
impl ReplayProgress {
    #[getter]
    fn position(&self) -> i64 {
        self.position.load(Ordering::Acquire)
    }
}

/// Options of a worker: `aerotape/worker_arguments.py` describes them.
#[derive(FromPyObject)]
struct WorkerOptions {
    name: String,
    archive_dir: PathBuf,
    file_io_max_length: usize,
    file_sync_level: i32,
    record_checksum: String,
    replay_checksum: String,
    idle: (u32, u32, u64, u64),
    write_counters: Option<TrafficCounters>,
    read_counters: Option<TrafficCounters>,
    sync_counters: Option<SyncCounters>,
    cycle_counters: Option<CycleCounters>,
}

/// Nanoseconds of an attribute that Python passes.
fn nanoseconds(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    value.extract().map(Duration::from_nanos)
}

#[pymethods]
impl SessionWorker {
    #[new]
    fn new(mailbox: Mailbox, options: WorkerOptions) -> PyResult<Self> {
        let WorkerOptions {
            file_io_max_length,
            file_sync_level,
            ..
        } = options;
        let sync_level = SyncLevel::parse(file_sync_level).ok_or_else(|| {
            PyValueError::new_err(format!("file_sync_level={file_sync_level}: use 0, 1 or 2"))
        })?;
        if file_io_max_length < MIN_FILE_IO_LENGTH {
            return Err(PyValueError::new_err(format!(
                "file_io_max_length={file_io_max_length}: at least {MIN_FILE_IO_LENGTH}, the \
                 longest frame"
            )));
        }
        let (max_spins, max_yields, min_park_ns, max_park_ns) = options.idle;
        let (min_park, max_park) = (
            Duration::from_nanos(min_park_ns),
            Duration::from_nanos(max_park_ns),
        );
        let (commands, receiver) = channel();
        let directory = File::open(&options.archive_dir)
            .map_err(|error| Error::io(&options.archive_dir, &error))?;
        let duty_cycle = DutyCycle {
            mailbox: mailbox.clone(),
            commands: receiver,
            storage: Arc::new(Storage {
                archive_dir: options.archive_dir,
                directory: Arc::new(directory),
                sync_level,
                checksum: Checksum::parse(&options.record_checksum)?,
            }),
            replay_checksum: Checksum::parse(&options.replay_checksum)?,
            file_io_max_length: file_io_max_length.min(MAX_FILE_IO_LENGTH),
            idle: Backoff::new(max_spins, max_yields, min_park, max_park),
            events: None,
            sync_pool: None,
            recordings: Vec::new(),
            endings: Vec::new(),
            discards: Discards::default(),
            replays: Vec::new(),
            scratch: Vec::new(),
            replay_buffer: Vec::new(),
            written: Traffic::new(options.write_counters),
            read: Traffic::new(options.read_counters),
            sync_counters: options.sync_counters,
            cycle_time: CycleTime::new(options.cycle_counters),
        };
        let thread = spawn(options.name, mailbox, move || duty_cycle.run())?;
        Ok(Self {
            running: Mutex::new(Some(Running {
                commands,
                thread,
                process: fork::Process::this(),
            })),
        })
    }

    fn publish_events(&self, publication: &ExclusivePublication) -> PyResult<()> {
        let publication = publication.take()?;
        self.send(Command::PublishEvents(EventStream { publication }))
    }

    fn record(
        &self,
        image: &Image,
        position_counter: Counter,
        arguments: RecordArguments,
    ) -> PyResult<()> {
        if arguments.durability.is_none() && arguments.confirmed_counter.is_some() {
            let why = "confirmed_counter: only for a recording with a durability";
            return Err(PyValueError::new_err(why));
        }
        let request = RecordingRequest {
            arguments,
            image: image.take()?,
            position_counter,
        };
        if let Err(why) = request.check() {
            self.send(Command::Discard(request.image))?;
            return Err(PyValueError::new_err(why));
        }
        self.send(Command::Record(Box::new(request)))
    }

    #[pyo3(signature = (recording_id, position=0, timeout_ns=0))]
    fn stop_recording(&self, recording_id: i64, position: i64, timeout_ns: u64) -> PyResult<()> {
        let timeout = Duration::from_nanos(timeout_ns);
        let end = RecordingEnd { position, timeout };
        self.send(Command::StopRecording(recording_id, end))
    }

    fn discard(&self, image: &Image) -> PyResult<()> {
        self.send(Command::Discard(image.take()?))
    }

    fn request_sync(&self, recording_id: i64) -> PyResult<()> {
        self.send(Command::RequestSync(recording_id))
    }

    fn replay(
        &self,
        publication: &ExclusivePublication,
        arguments: ReplayArguments,
    ) -> PyResult<ReplayProgress> {
        let request = ReplayRequest::new(arguments, publication.take()?);
        request.check().map_err(PyValueError::new_err)?;
        let position = Arc::clone(&request.progress);
        self.send(Command::Replay(Box::new(request)))?;
        Ok(ReplayProgress { position })
    }

    fn stop_replay(&self, replay_session_id: i64) -> PyResult<()> {
        self.send(Command::StopReplay(replay_session_id))
    }

    fn close(&self, py: Python<'_>) {
        let running = lock(&self.running).take();
        if let Some(running) = running {
            py.detach(|| running.end());
        }
    }
}

/// Start a thread; that it has panicked is posted to the mailbox.
fn spawn(
    name: String,
    mailbox: Mailbox,
    run: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    Builder::new().name(name.clone()).spawn(move || {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            let reason = panic_text(&*panic).to_owned();
            mailbox.post(Event::WorkerFailed(WorkerFailed { name, reason }));
        }
    })
}

impl Running {
    fn end(self) {
        if !self.process.is_this() {
            // The thread runs in the process that this one was forked from.
            return;
        }
        // Both fail only when the thread has ended already.
        let _ = self.commands.send(Command::Close);
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}

impl Drop for SessionWorker {
    fn drop(&mut self) {
        // Not joined: the thread may be in a long write. See `aeron/interpreter.rs`.
        let running = lock(&self.running).take();
        if let Some(running) = running.filter(|running| running.process.is_this()) {
            let _ = running.commands.send(Command::Close);
            running.thread.thread().unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_thread_is_posted() {
        let mailbox = Mailbox::default();
        let thread = spawn("recorder".into(), mailbox.clone(), || panic!("on purpose"));
        thread.expect("a thread").join().expect("no panic is left");
        let events = mailbox.posted();
        let [Event::WorkerFailed(WorkerFailed { name, reason })] = events.as_slice() else {
            panic!("{} events", events.len());
        };
        assert_eq!((name.as_str(), reason.as_str()), ("recorder", "on purpose"));
    }
}
