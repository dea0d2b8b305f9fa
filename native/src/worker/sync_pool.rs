//! Group commit: a few threads that force segment files to storage while the recorder writes.
//!
//! The recorder hands a recording over when something was written and no sync of it is queued or
//! running. A sync thread then takes the files written since the last sync, reads the written
//! position, syncs, and publishes that position as synced. One sync so covers all blocks written
//! during the previous one, the recorder never waits for a disk, and a recording waits only for
//! its own files. A failed sync is never retried: after an error of fsync the operating system
//! may have dropped the data and may report success the next time. Each
//! failure is one of the storage: the files and their directory are open already, so that a sync
//! needs no free descriptor.
//!
//! Five positions of a recording, in bytes; the recorder moves three, a sync thread two:
//!
//! | position  | moved by    | to                                                                |
//! |-----------|-------------|-------------------------------------------------------------------|
//! | written   | recorder    | what it has written (`written`)                                   |
//! | requested | recorder    | written: always if syncing is continuous, else by `request` and `finish` |
//! | full      | recorder    | the begin of a new file: those before it are synced in any case (`add_segment`) |
//! | stored    | sync thread | what its sync had to include: requested and full, as at its begin |
//! | synced    | sync thread | stored, but not more than requested; the only one that others see |
//!
//! A sync is due while requested is past synced, or full past stored.

use super::failure::Failure;
use super::segment_writer::SyncLevel;
use crate::aeron::lock;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// Sync threads of a recorder.
const SYNC_THREADS: usize = 16;

/// How long the sync thread that worked last polls the queue before it sleeps: to be woken takes a
/// good part of the time of a sync, and where a writer waits for each message the next one follows
/// soon.
const POLL_TIME: Duration = Duration::from_micros(50);

/// Bytes that a recording may have written and not synced, unless it is synced on request only.
/// Its image is not polled beyond that, so that only its publisher is held up by a slow disk, and
/// the operating system does not have to make the recorder wait for dirty pages.
const MAX_UNSYNCED_LENGTH: i64 = 32 << 20;

/// An open file or directory that can be forced to storage.
pub trait Syncable: Send + Sync {
    fn sync(&self, level: SyncLevel) -> io::Result<()>;
}

impl Syncable for File {
    fn sync(&self, level: SyncLevel) -> io::Result<()> {
        match level {
            SyncLevel::DataAndMetadata => self.sync_all(),
            SyncLevel::Normal | SyncLevel::Data => self.sync_data(),
        }
    }
}

/// The queue of recordings to sync.
pub struct SyncQueue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    /// Set after each sync, for the recorder.
    has_progress: AtomicBool,
    /// How long the syncs took that were not reported to the recorder yet.
    took: Mutex<Vec<Duration>>,
    recorder: Thread,
}

#[derive(Default)]
struct Waiting {
    recordings: VecDeque<Arc<RecordingSync>>,
    /// Syncs that run.
    running: usize,
    /// Whether a thread polls, so that none need be woken.
    is_polled: bool,
    is_closed: bool,
}

impl SyncQueue {
    fn new(recorder: Thread) -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            arrived: Condvar::new(),
            has_progress: AtomicBool::new(false),
            took: Mutex::default(),
            recorder,
        })
    }

    fn push(&self, recording: Arc<RecordingSync>) {
        let mut waiting = lock(&self.waiting);
        waiting.recordings.push_back(recording);
        if !waiting.is_polled {
            drop(waiting);
            self.arrived.notify_one();
        }
    }

    /// Poll for a recording while no sync runs, unless another thread polls.
    fn poll(&self) -> MutexGuard<'_, Waiting> {
        let began = Instant::now();
        let mut waiting = lock(&self.waiting);
        if waiting.is_polled || waiting.running > 0 {
            return waiting;
        }
        waiting.is_polled = true;
        while waiting.recordings.is_empty() && !waiting.is_closed && began.elapsed() < POLL_TIME {
            drop(waiting);
            thread::yield_now();
            waiting = lock(&self.waiting);
        }
        waiting.is_polled = false;
        // This thread takes the first one.
        for _ in 1..waiting.recordings.len() {
            self.arrived.notify_one();
        }
        waiting
    }

    /// Wait for a recording to sync; `None` once the pool is closed.
    fn next(&self) -> Option<Arc<RecordingSync>> {
        let mut waiting = self.poll();
        loop {
            if waiting.is_closed {
                return None;
            }
            if let Some(recording) = waiting.recordings.pop_front() {
                waiting.running += 1;
                return Some(recording);
            }
            waiting = self
                .arrived
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The loop of a sync thread.
    fn run(&self) {
        while let Some(recording) = self.next() {
            let began = Instant::now();
            let is_wanted_again = catch_unwind(AssertUnwindSafe(|| recording.sync()))
                .unwrap_or_else(|panic| {
                    recording.fail(Failure::panicked(&*panic));
                    false
                });
            let mut waiting = lock(&self.waiting);
            waiting.running -= 1;
            if is_wanted_again {
                // At the end of the queue. This thread takes the next one, so none is woken.
                waiting.recordings.push_back(recording);
            }
            drop(waiting);
            lock(&self.took).push(began.elapsed());
            self.has_progress.store(true, Ordering::Release);
            self.recorder.unpark();
        }
    }
}

/// The sync threads of a recorder.
pub struct SyncPool {
    queue: Arc<SyncQueue>,
    threads: Vec<JoinHandle<()>>,
}

impl SyncPool {
    /// Start the threads, whose names begin as that of `recorder`, which is woken after each sync.
    pub fn start(recorder: Thread) -> io::Result<Self> {
        let name = recorder.name().and_then(|name| name.rsplit_once('-'));
        let prefix = name.map_or("archive", |(prefix, _)| prefix).to_owned();
        let mut pool = Self {
            queue: SyncQueue::new(recorder),
            threads: Vec::new(),
        };
        for number in 0..SYNC_THREADS {
            let queue = Arc::clone(&pool.queue);
            let thread = Builder::new()
                .name(format!("{prefix}-sync{number}"))
                .spawn(move || queue.run())?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    pub fn queue(&self) -> Arc<SyncQueue> {
        Arc::clone(&self.queue)
    }

    /// How long each sync has taken that has ended since the last call; `None` without any.
    pub fn take_progress(&self) -> Option<Vec<Duration>> {
        let queue = &self.queue;
        let has_progress = queue.has_progress.load(Ordering::Relaxed)
            && queue.has_progress.swap(false, Ordering::Acquire);
        has_progress.then(|| std::mem::take(&mut *lock(&queue.took)))
    }
}

impl Drop for SyncPool {
    fn drop(&mut self) {
        lock(&self.queue.waiting).is_closed = true;
        self.queue.arrived.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// When and how a recording is synced, and what is done with the positions.
pub struct SyncMode {
    pub level: SyncLevel,
    /// Whether all that is written is synced and counts; else only on request and at the end.
    pub is_continuous: bool,
    /// The directory of the files.
    pub directory: Arc<dyn Syncable>,
    pub directory_path: PathBuf,
    /// Called with each new synced position.
    pub synced: Box<dyn Fn(i64) + Send + Sync>,
    /// Called once for each request, with the synced position when that request is fulfilled.
    pub fulfilled: Box<dyn Fn(i64) + Send + Sync>,
}

/// What is written and synced of one recording; shared by the recorder and a sync thread.
pub struct RecordingSync {
    queue: Arc<SyncQueue>,
    mode: SyncMode,
    synced_position: AtomicI64,
    has_failed: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// Files that are not synced to their end, in their order.
    segments: VecDeque<Segment>,
    /// Whether a file was added whose name may not be on the device.
    has_new_name: bool,
    written_position: i64,
    requested_position: i64,
    full_position: i64,
    stored_position: i64,
    /// Positions of the requests that are not fulfilled, ascending.
    requests: VecDeque<i64>,
    /// Whether a sync is queued or running.
    is_scheduled: bool,
    failure: Option<Failure>,
}

/// The positions of `State` at the begin of a sync.
#[derive(Clone, Copy)]
struct Goal {
    requested_position: i64,
    full_position: i64,
    stored_position: i64,
}

/// A segment file and the positions that are written to it.
#[derive(Clone)]
struct Segment {
    file: Arc<dyn Syncable>,
    path: PathBuf,
    begin_position: i64,
    end_position: i64,
}

impl RecordingSync {
    /// All that precedes `position` is taken for synced.
    pub fn new(queue: Arc<SyncQueue>, mode: SyncMode, position: i64) -> Arc<Self> {
        Arc::new(Self {
            queue,
            mode,
            synced_position: AtomicI64::new(position),
            has_failed: AtomicBool::new(false),
            state: Mutex::new(State {
                segments: VecDeque::new(),
                has_new_name: false,
                written_position: position,
                requested_position: position,
                full_position: position,
                stored_position: position,
                requests: VecDeque::new(),
                is_scheduled: false,
                failure: None,
            }),
        })
    }

    pub fn synced_position(&self) -> i64 {
        self.synced_position.load(Ordering::Acquire)
    }

    /// Why syncing has failed; nothing is synced after that.
    pub fn failure(&self) -> Option<Failure> {
        if !self.has_failed.load(Ordering::Acquire) {
            return None;
        }
        lock(&self.state).failure.clone()
    }

    /// Whether so much is written and not synced that the recorder must let the disk catch up.
    pub fn is_far_behind(&self, written_position: i64) -> bool {
        self.mode.is_continuous && written_position - self.synced_position() > MAX_UNSYNCED_LENGTH
    }

    /// The recorder writes to `file` from `begin_position` on, up to `end_position`.
    ///
    /// The files before it are full. They are synced also without a request, which moves no
    /// position: a file stays open until it is synced, and the process has few.
    pub fn add_segment(
        self: &Arc<Self>,
        file: Arc<dyn Syncable>,
        path: PathBuf,
        begin_position: i64,
        end_position: i64,
    ) {
        let mut state = lock(&self.state);
        state.segments.push_back(Segment {
            file,
            path,
            begin_position,
            end_position,
        });
        state.has_new_name = true;
        state.full_position = state.full_position.max(begin_position);
        self.schedule(state);
    }

    /// The recorder has written up to `position`.
    pub fn written(self: &Arc<Self>, position: i64) {
        let mut state = lock(&self.state);
        state.written_position = position;
        if self.mode.is_continuous {
            state.requested_position = position;
        }
        self.schedule(state);
    }

    /// Sync what is written now, and report it.
    pub fn request(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        state.requested_position = state.written_position;
        let written_position = state.written_position;
        if self.synced_position() >= written_position {
            drop(state);
            (self.mode.fulfilled)(written_position);
            return;
        }
        state.requests.push_back(written_position);
        self.schedule(state);
    }

    /// Nothing more is written: sync the rest.
    pub fn finish(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        state.requested_position = state.written_position;
        self.schedule(state);
    }

    /// Whether no sync is wanted, queued or running, or one has failed.
    pub fn is_settled(&self) -> bool {
        let state = lock(&self.state);
        !state.is_scheduled && !self.is_wanted(&state)
    }

    fn is_wanted(&self, state: &State) -> bool {
        state.failure.is_none()
            && (state.requested_position > self.synced_position()
                || state.full_position > state.stored_position)
    }

    fn schedule(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if !state.is_scheduled && self.is_wanted(&state) {
            state.is_scheduled = true;
            drop(state);
            self.queue.push(Arc::clone(self));
        }
    }

    /// Sync up to what is requested or full now. Returns whether more is by then: the recording
    /// stays scheduled.
    fn sync(&self) -> bool {
        let (segments, has_new_name, goal) = {
            let mut state = lock(&self.state);
            (
                state.segments.iter().cloned().collect::<Vec<_>>(),
                std::mem::take(&mut state.has_new_name),
                // Before the sync, which need not include what is written later.
                Goal {
                    requested_position: state.requested_position,
                    full_position: state.full_position,
                    stored_position: state.stored_position,
                },
            )
        };
        let stored_position = match self.sync_segments(&segments, has_new_name, goal) {
            Ok(stored_position) => stored_position,
            Err(failure) => {
                self.fail(failure);
                return false;
            }
        };
        let synced_position = self.synced_position();
        let mut fulfilled = 0;
        let mut state = lock(&self.state);
        state.stored_position = stored_position;
        while state
            .segments
            .front()
            .is_some_and(|segment| segment.end_position <= stored_position)
        {
            state.segments.pop_front();
        }
        while state
            .requests
            .front()
            .is_some_and(|&position| position <= synced_position)
        {
            state.requests.pop_front();
            fulfilled += 1;
        }
        // The end of the recording is reported after its requests: it is scheduled until then.
        drop(state);
        for _ in 0..fulfilled {
            (self.mode.fulfilled)(synced_position);
        }
        let mut state = lock(&self.state);
        state.is_scheduled = self.is_wanted(&state);
        state.is_scheduled
    }

    fn sync_segments(
        &self,
        segments: &[Segment],
        has_new_name: bool,
        goal: Goal,
    ) -> Result<i64, Failure> {
        if has_new_name {
            // A file whose name is not on the device is lost with all that was synced into it.
            let path = &self.mode.directory_path;
            self.mode
                .directory
                .sync(SyncLevel::DataAndMetadata)
                .map_err(|error| Failure::storage("sync archive directory", path, &error))?;
        }
        let end = goal.requested_position.max(goal.full_position);
        let mut stored_position = goal.stored_position;
        self.publish(stored_position.min(goal.requested_position));
        for segment in segments {
            if segment.begin_position >= end {
                break;
            }
            segment
                .file
                .sync(self.mode.level)
                .map_err(|error| Failure::storage("sync segment file", &segment.path, &error))?;
            stored_position = end.min(segment.end_position);
            self.publish(stored_position.min(goal.requested_position));
        }
        Ok(stored_position)
    }

    fn publish(&self, position: i64) {
        if position > self.synced_position() {
            self.synced_position.store(position, Ordering::Release);
            (self.mode.synced)(position);
        }
    }

    fn fail(&self, failure: Failure) {
        let mut state = lock(&self.state);
        state.failure = Some(failure);
        state.is_scheduled = false;
        self.has_failed.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
