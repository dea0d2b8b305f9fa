//! The worker's thread: executes commands, calls each session in turn, and posts its events.

use super::discards::Discards;
use super::events::EventStream;
use super::failure::Failure;
use super::recording::{
    EndingRecording, RecordingEnd, RecordingOutcome, RecordingRequest, RecordingSession,
};
use super::replay::{ReplayOutcome, ReplayRequest, ReplaySession};
use super::segment_writer::{SCRATCH_LENGTH, Storage};
use super::statistics::{CycleTime, SyncCounters, Traffic, count_syncs};
use super::sync_pool::{RecordingSync, SyncPool};
use crate::aeron::ImageHandle;
use crate::checksum::Checksum;
use crate::idle::{Backoff, sleep_precisely};
use crate::mailbox::{Event, Mailbox, RecordingStopped, ReplayDone, ReplayReady, TimeIndexFailed};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

/// How long a close sleeps, at most, before it looks again for syncs that have ended.
const CLOSE_PARK: Duration = Duration::from_millis(100);

/// After a cycle that has moved less than this, bytes, other threads get the processor. The data
/// of a stream over UDP comes in packets: where processors are few, the driver that receives them
/// would wait for a recorder that writes each one.
const LITTLE: i64 = 64 << 10;

/// Commands from Python.
pub enum Command {
    PublishEvents(EventStream),
    Record(Box<RecordingRequest>),
    StopRecording(i64, RecordingEnd),
    Discard(ImageHandle),
    RequestSync(i64),
    Replay(Box<ReplayRequest>),
    StopReplay(i64),
    Close,
}

pub struct DutyCycle {
    pub mailbox: Mailbox,
    pub commands: Receiver<Command>,
    pub storage: Arc<Storage>,
    pub replay_checksum: Option<Checksum>,
    pub file_io_max_length: usize,
    pub idle: Backoff,
    /// The recording events stream; `None` unless enabled.
    pub events: Option<EventStream>,
    /// The threads that sync recordings; `None` until there is such a recording.
    pub sync_pool: Option<SyncPool>,
    pub recordings: Vec<RecordingSession>,
    /// Recordings whose last sync is not done.
    pub endings: Vec<EndingRecording>,
    pub discards: Discards,
    pub replays: Vec<ReplaySession>,
    /// Where recorded frames get their checksums; empty until needed.
    pub scratch: Vec<u8>,
    /// Where replays read to; empty until needed.
    pub replay_buffer: Vec<u8>,
    pub written: Traffic,
    pub read: Traffic,
    pub sync_counters: Option<SyncCounters>,
    pub cycle_time: CycleTime,
}

impl DutyCycle {
    /// Run until a close command, or until the sender of commands is gone.
    pub fn run(mut self) {
        sleep_precisely();
        while self.take_commands() {
            if self.has_no_session() {
                continue;
            }
            self.cycle_time.begin();
            let moved_before = self.moved();
            let worked = self.poll_recordings()
                | self.turn_endings()
                | self.turn_replays()
                | self.discards.work(self.file_io_max_length);
            let is_busy = worked && !self.has_no_session();
            self.written.publish(is_busy);
            self.read.publish(is_busy);
            if worked {
                self.idle.reset();
                if self.moved() - moved_before < LITTLE {
                    thread::yield_now();
                }
            } else if let Some(park) = self.idle.next_park() {
                // A command that arrives meanwhile ends the park.
                thread::park_timeout(park);
            }
        }
        self.close();
    }

    /// Bytes that recordings and replays have moved so far.
    fn moved(&self) -> i64 {
        self.written.total_bytes() + self.read.total_bytes()
    }

    fn has_no_session(&self) -> bool {
        self.recordings.is_empty()
            && self.endings.is_empty()
            && self.replays.is_empty()
            && self.discards.is_empty()
    }

    /// Execute pending commands; without any session, sleep until one arrives. False to end.
    fn take_commands(&mut self) -> bool {
        loop {
            let command = if self.has_no_session() {
                self.cycle_time.rest();
                match self.commands.recv() {
                    Ok(command) => command,
                    Err(_) => return false,
                }
            } else {
                match self.commands.try_recv() {
                    Ok(command) => command,
                    Err(TryRecvError::Empty) => return true,
                    Err(TryRecvError::Disconnected) => return false,
                }
            };
            self.idle.reset();
            match command {
                Command::PublishEvents(events) => self.events = Some(events),
                Command::Record(request) => self.start_recording(*request),
                Command::StopRecording(recording_id, end) => self.stop_recording(recording_id, end),
                Command::Discard(image) => self.discards.add(image),
                Command::RequestSync(recording_id) => self.request_sync(recording_id),
                Command::Replay(request) => self.start_replay(*request),
                Command::StopReplay(replay_session_id) => self.stop_replay(replay_session_id),
                Command::Close => return false,
            }
        }
    }

    fn start_recording(&mut self, request: RecordingRequest) {
        if self.storage.checksum.is_some() && self.scratch.is_empty() {
            self.scratch = vec![0; SCRATCH_LENGTH];
        }
        let recording_id = request.arguments.recording_id;
        let image = request.image.clone();
        let started = self
            .recording_sync(&request)
            .map_err(|failure| (request.image.join_position, failure))
            .and_then(|sync| {
                let storage = Arc::clone(&self.storage);
                let events = self.events.as_ref();
                RecordingSession::start(request, storage, sync, self.file_io_max_length, events)
            });
        match started {
            Ok(session) => self.recordings.push(session),
            Err((position, failure)) => {
                self.discards.add(image);
                self.post_recording_stopped(recording_id, position, Some(failure));
            }
        }
    }

    fn recording_sync(
        &mut self,
        request: &RecordingRequest,
    ) -> Result<Option<Arc<RecordingSync>>, Failure> {
        if !request.is_synced(self.storage.sync_level) {
            return Ok(None);
        }
        let pool = match self.sync_pool.take() {
            Some(pool) => pool,
            None => SyncPool::start(thread::current()).map_err(|error| {
                Failure::generic(format!("cannot start the threads that sync files: {error}"))
            })?,
        };
        let queue = self.sync_pool.insert(pool).queue();
        Ok(Some(request.sync(
            &self.storage,
            queue,
            self.mailbox.clone(),
        )))
    }

    /// A recording that has ended, or is about to, is synced then.
    fn request_sync(&self, recording_id: i64) {
        if let Some(session) = self
            .recordings
            .iter()
            .find(|session| session.recording_id() == recording_id)
        {
            session.request_sync();
        }
    }

    fn stop_recording(&mut self, recording_id: i64, end: RecordingEnd) {
        if let Some(index) = self
            .recordings
            .iter()
            .position(|session| session.recording_id() == recording_id)
            && let Some(session) = self.recordings.get_mut(index)
            && session.end_at(end)
        {
            self.end_recording(index, None);
        }
    }

    fn start_replay(&mut self, request: ReplayRequest) {
        if self.replay_buffer.is_empty() {
            self.replay_buffer = vec![0; self.file_io_max_length];
        }
        let archive_dir = self.storage.archive_dir.clone();
        let (checksum, length) = (self.replay_checksum, self.file_io_max_length);
        self.replays
            .push(ReplaySession::new(request, archive_dir, checksum, length));
    }

    fn stop_replay(&mut self, replay_session_id: i64) {
        if let Some(index) = self
            .replays
            .iter()
            .position(|session| session.replay_session_id() == replay_session_id)
        {
            self.end_replay(index, true, None);
        }
    }

    fn poll_recordings(&mut self) -> bool {
        let mut worked = false;
        // From the last one, so that ending a session does not skip another one.
        for index in (0..self.recordings.len()).rev() {
            let Some(session) = self.recordings.get_mut(index) else {
                continue;
            };
            let (scratch, written) = (&mut self.scratch, &mut self.written);
            let events = self.events.as_ref();
            let outcome = catch_unwind(AssertUnwindSafe(|| session.work(scratch, written, events)))
                .unwrap_or_else(|panic| RecordingOutcome::Failed(Failure::panicked(&*panic)));
            let (recording_id, failure) =
                (session.recording_id(), session.take_time_index_failure());
            match outcome {
                RecordingOutcome::Recorded(bytes) => {
                    worked |= bytes > 0;
                    if session.has_reached_its_end() {
                        self.end_recording(index, None);
                    }
                }
                RecordingOutcome::Ended => self.end_recording(index, None),
                RecordingOutcome::Failed(failure) => self.end_recording(index, Some(failure)),
            }
            self.post_time_index_failed(recording_id, failure);
        }
        worked
    }

    /// End the recordings that are synced; whether a sync has ended, after which a publisher that
    /// waited for it continues.
    fn turn_endings(&mut self) -> bool {
        for index in (0..self.endings.len()).rev() {
            if self
                .endings
                .get(index)
                .is_some_and(|ending| ending.is_settled())
            {
                let ending = self.endings.swap_remove(index);
                self.post_end(ending);
            }
        }
        let Some(took) = self.sync_pool.as_ref().and_then(SyncPool::take_progress) else {
            return false;
        };
        self.written.add_syncs(&took);
        if let Some(counters) = &self.sync_counters {
            count_syncs(counters, &took);
        }
        true
    }

    fn turn_replays(&mut self) -> bool {
        let mut worked = false;
        for index in (0..self.replays.len()).rev() {
            let Some(session) = self.replays.get_mut(index) else {
                continue;
            };
            let (buffer, read) = (&mut self.replay_buffer, &mut self.read);
            let outcome = catch_unwind(AssertUnwindSafe(|| session.work(buffer, read)))
                .unwrap_or_else(|panic| ReplayOutcome::Failed(Failure::panicked(&*panic)));
            match outcome {
                ReplayOutcome::Replayed(bytes) => worked |= bytes > 0,
                ReplayOutcome::Ready { is_answered } => {
                    self.mailbox.post(Event::ReplayReady(ReplayReady {
                        replay_session_id: session.replay_session_id(),
                        is_answered,
                    }));
                    worked = true;
                }
                ReplayOutcome::Ended => self.end_replay(index, false, None),
                ReplayOutcome::Abandoned => self.end_replay(index, true, None),
                // What was offered before is good: the subscriber must get it.
                ReplayOutcome::Failed(failure) => self.end_replay(index, false, Some(failure)),
            }
        }
        worked
    }

    fn end_recording(&mut self, index: usize, failure: Option<Failure>) {
        // The files are closed before any thread acts on the event.
        let (ending, image) = self.recordings.swap_remove(index).finish(failure);
        self.discards.add(image);
        if ending.is_settled() {
            self.post_end(ending);
        } else {
            self.endings.push(ending);
        }
    }

    fn post_end(&self, ending: EndingRecording) {
        let recording_id = ending.recording_id;
        let (position, failure, time_index_failure) = ending.end(self.events.as_ref());
        self.post_time_index_failed(recording_id, time_index_failure);
        self.post_recording_stopped(recording_id, position, failure);
    }

    fn post_time_index_failed(&self, recording_id: i64, failure: Option<String>) {
        if let Some(message) = failure {
            self.mailbox.post(Event::TimeIndexFailed(TimeIndexFailed {
                recording_id,
                message,
            }));
        }
    }

    fn post_recording_stopped(&self, recording_id: i64, position: i64, failure: Option<Failure>) {
        let (error_code, message) = match failure {
            Some(Failure { code, message }) => (
                code,
                Some(format!(
                    "recording {recording_id} stopped at position {position}: {message}"
                )),
            ),
            None => (0, None),
        };
        self.mailbox.post(Event::RecordingStopped(RecordingStopped {
            recording_id,
            position,
            error_code,
            message,
        }));
    }

    fn end_replay(&mut self, index: usize, revoke: bool, failure: Option<Failure>) {
        let session = self.replays.swap_remove(index);
        let (replay_session_id, position) = (session.replay_session_id(), session.position());
        if revoke {
            session.revoke();
        } else {
            session.close();
        }
        let (error_code, message) = match failure {
            Some(Failure { code, message }) => (code, Some(message)),
            None => (0, None),
        };
        self.mailbox.post(Event::ReplayDone(ReplayDone {
            replay_session_id,
            position,
            error_code,
            message,
        }));
    }

    fn close(&mut self) {
        while !self.replays.is_empty() {
            self.end_replay(0, false, None);
        }
        while !self.recordings.is_empty() {
            self.end_recording(0, None);
        }
        while !self.endings.is_empty() {
            if !self.turn_endings() {
                thread::park_timeout(CLOSE_PARK);
            }
        }
    }
}
