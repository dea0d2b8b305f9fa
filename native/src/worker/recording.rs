//! A recording session: moves what an image receives into a recording's segment files.

use super::events::{EventMessages, EventStream, RecordingEvents};
use super::failure::Failure;
use super::segment_writer::{Placement, SegmentWriter, Storage, SyncLevel};
use super::statistics::Traffic;
use super::sync_pool::{RecordingSync, SyncMode, SyncQueue};
use super::time_index::{TimeIndex, TimeIndexArguments};
use crate::aeron::{Counter, ImageHandle};
use crate::frame::FRAME_ALIGNMENT;
use crate::geometry::StreamGeometry;
use crate::mailbox::{Event, Mailbox, RecordingSynced};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Blocks taken from one image in one duty cycle: few, so that a fast stream does not hold up the
/// others.
const BLOCKS_PER_CYCLE: usize = 8;

/// A recording as Python requests it; `aerotape/worker_arguments.py` describes the attributes.
#[derive(FromPyObject)]
pub struct RecordArguments {
    pub recording_id: i64,
    start_position: i64,
    segment_length: i64,
    events: Option<EventMessages>,
    time_index: Option<TimeIndexArguments>,
    /// `None` for the sync level of the archive.
    pub durability: Option<Durability>,
    pub confirmed_counter: Option<Counter>,
}

pub struct RecordingRequest {
    pub arguments: RecordArguments,
    pub image: ImageHandle,
    pub position_counter: Counter,
}

/// When a recording is synced whose position counter does not wait for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// All the time, by group commit.
    Persistent,
    /// On request and at its end.
    Volatile,
}

impl FromPyObject<'_, '_> for Durability {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let name: String = object.extract()?;
        match name.as_str() {
            "pd" => Ok(Self::Persistent),
            "vd" => Ok(Self::Volatile),
            _ => Err(PyValueError::new_err(format!(
                "durability={name:?}: use \"pd\" or \"vd\""
            ))),
        }
    }
}

impl RecordingRequest {
    /// Whether files are synced in an archive with this sync level.
    pub fn is_synced(&self, archive_level: SyncLevel) -> bool {
        self.arguments.durability.is_some() || archive_level > SyncLevel::Normal
    }

    /// Prepare the sync of the recording's files, which are `storage`'s.
    pub fn sync(
        &self,
        storage: &Storage,
        queue: Arc<SyncQueue>,
        mailbox: Mailbox,
    ) -> Arc<RecordingSync> {
        let recording_id = self.arguments.recording_id;
        let counter = match self.arguments.durability {
            None => Some(self.position_counter.clone()),
            Some(_) => self.arguments.confirmed_counter.clone(),
        };
        let mode = SyncMode {
            level: storage.sync_level.max(SyncLevel::Data),
            is_continuous: self.arguments.durability != Some(Durability::Volatile),
            directory: Arc::clone(&storage.directory) as _,
            directory_path: storage.archive_dir.clone(),
            synced: Box::new(move |position| {
                if let Some(counter) = &counter {
                    counter.set_release(position);
                }
            }),
            fulfilled: Box::new(move |position| {
                mailbox.post(Event::RecordingSynced(RecordingSynced {
                    recording_id,
                    position,
                }));
            }),
        };
        RecordingSync::new(queue, mode, self.image.join_position)
    }

    /// Refuse numbers that no recording has, before any file is touched.
    pub fn check(&self) -> Result<(), String> {
        let term_length = self.image.term_buffer_length as i64;
        check_segment_length(self.arguments.segment_length, term_length)?;
        let (start, join) = (self.arguments.start_position, self.image.join_position);
        if start < 0 || start > join || start % FRAME_ALIGNMENT as i64 != 0 {
            return Err(format!(
                "start_position={start}: must be on a frame boundary from 0 to {join}, where the \
                 image begins"
            ));
        }
        Ok(())
    }
}

/// A segment file holds a power of two of terms, at most 1 GiB.
pub fn check_segment_length(segment_length: i64, term_length: i64) -> Result<(), String> {
    let is_power_of_two = segment_length > 0 && segment_length & (segment_length - 1) == 0;
    if is_power_of_two && (term_length..=1 << 30).contains(&segment_length) {
        return Ok(());
    }
    Err(format!(
        "segment_length={segment_length}: must be a power of two from the term length, \
         {term_length}, to 1073741824"
    ))
}

/// Where a recording is stopped.
pub struct RecordingEnd {
    /// What precedes it is recorded.
    pub position: i64,
    /// How long that may take.
    pub timeout: Duration,
}

/// The thread that sets the position counter of a recording, and to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PositionOwner {
    /// To what is written.
    Recorder,
    /// To what is synced: nothing else counts as recorded.
    SyncThread,
}

pub struct RecordingSession {
    recording_id: i64,
    image: ImageHandle,
    position_counter: Counter,
    /// The recorded position after the last duty cycle.
    counted_position: i64,
    block_length_limit: usize,
    writer: SegmentWriter,
    /// `None` when the files are not synced.
    sync: Option<Arc<RecordingSync>>,
    position_owner: PositionOwner,
    events: Option<RecordingEvents>,
    time_index: Option<TimeIndex>,
    /// The position at which recording ends, and the time at which it ends at the latest; `None`
    /// unless it was stopped.
    end: Option<(i64, Instant)>,
}

/// The outcome of one duty cycle of a recording.
pub enum RecordingOutcome {
    /// Bytes recorded; zero for an idle cycle.
    Recorded(usize),
    /// The image ended and all of it is recorded.
    Ended,
    Failed(Failure),
}

impl RecordingSession {
    /// Open the segment in which recording begins. The failure comes with the position at which
    /// the recording then stands.
    pub fn start(
        request: RecordingRequest,
        storage: Arc<Storage>,
        sync: Option<Arc<RecordingSync>>,
        file_io_max_length: usize,
        event_stream: Option<&EventStream>,
    ) -> Result<Self, (i64, Failure)> {
        let RecordingRequest {
            arguments,
            image,
            position_counter,
        } = request;
        let join_position = image.join_position;
        let term_length = image.term_buffer_length;
        let placement = Placement {
            recording_id: arguments.recording_id,
            start_position: arguments.start_position,
            join_position,
            segment_length: arguments.segment_length,
            geometry: StreamGeometry {
                initial_term_id: image.initial_term_id,
                term_length: term_length as i64,
                stream_id: image.stream_id,
                max_frame_length: image.mtu_length as i32,
            },
        };
        position_counter.set_release(join_position);
        if let Some(counter) = arguments.confirmed_counter {
            counter.set_release(join_position);
        }
        let writer = SegmentWriter::open(storage, placement, sync.clone())
            .map_err(|failure| (join_position, failure))?;
        let events = event_stream
            .zip(arguments.events)
            .map(|(stream, events)| RecordingEvents::start(events, join_position, stream));
        let position_owner = match &sync {
            Some(_) if arguments.durability.is_none() => PositionOwner::SyncThread,
            _ => PositionOwner::Recorder,
        };
        let session_id = image.session_id;
        let time_index = arguments
            .time_index
            .map(|file| TimeIndex::new(file, session_id));
        Ok(Self {
            recording_id: arguments.recording_id,
            image,
            position_counter,
            counted_position: join_position,
            block_length_limit: term_length.min(file_io_max_length),
            writer,
            position_owner,
            sync,
            events,
            time_index,
            end: None,
        })
    }

    /// Stop at a position; true when it has been reached, as `has_reached_its_end`.
    pub fn end_at(&mut self, end: RecordingEnd) -> bool {
        self.end = Some((end.position, Instant::now() + end.timeout));
        self.has_reached_its_end()
    }

    /// Whether all is recorded that was to be when the recording was stopped, or the time for it is
    /// over.
    pub fn has_reached_its_end(&self) -> bool {
        self.end.is_some_and(|(position, latest)| {
            self.writer.written_position() >= position || Instant::now() >= latest
        })
    }

    pub fn recording_id(&self) -> i64 {
        self.recording_id
    }

    /// Position up to which the recording is good: written and, unless it has a durability of its
    /// own, synced according to the archive's sync level.
    fn recorded_position(&self) -> i64 {
        match (&self.sync, self.position_owner) {
            (Some(sync), PositionOwner::SyncThread) => sync.synced_position(),
            _ => self.writer.written_position(),
        }
    }

    /// Sync what is written, and post the synced position then.
    pub fn request_sync(&self) {
        if let Some(sync) = &self.sync {
            sync.request();
        }
    }

    /// Record nothing more of the image that is returned, after a failure if there was one. What is
    /// written is yet to be synced.
    pub fn finish(self, failure: Option<Failure>) -> (EndingRecording, ImageHandle) {
        let written_position = self.writer.written_position();
        if let Some(sync) = &self.sync {
            sync.written(written_position);
            sync.finish();
        }
        let ending = EndingRecording {
            recording_id: self.recording_id,
            written_position,
            sync: self.sync,
            failure,
            events: self.events,
            time_index: self.time_index,
        };
        (ending, self.image)
    }

    /// Why the time index of the recording is not written any more, once.
    pub fn take_time_index_failure(&mut self) -> Option<String> {
        self.time_index.as_mut()?.take_failure()
    }

    /// Record what has come, up to a few blocks.
    pub fn work(
        &mut self,
        scratch: &mut [u8],
        written: &mut Traffic,
        event_stream: Option<&EventStream>,
    ) -> RecordingOutcome {
        if let Some(failure) = self.sync.as_ref().and_then(|sync| sync.failure()) {
            return RecordingOutcome::Failed(failure);
        }
        let may_record = !self.is_far_behind();
        let outcome = if may_record {
            self.record_blocks(scratch, written)
        } else {
            Ok(Some(0))
        };
        let is_idle = matches!(outcome, Ok(None | Some(0)));
        if let Some(sync) = &self.sync
            && !is_idle
        {
            sync.written(self.writer.written_position());
        }
        // Also after a failure: a replay that follows must see the last good frame.
        let position = self.recorded_position();
        if position != self.counted_position {
            if self.position_owner == PositionOwner::Recorder {
                self.position_counter.set_release(position);
            }
            self.counted_position = position;
        }
        if let Some((stream, events)) = event_stream.zip(self.events.as_mut()) {
            events.progress(position, stream);
        }
        if let Some(index) = &mut self.time_index {
            if is_idle {
                index.idle(position);
            }
            index.flush();
        }
        match outcome {
            Err(failure) => RecordingOutcome::Failed(failure),
            Ok(None) => RecordingOutcome::Ended,
            Ok(Some(bytes)) => RecordingOutcome::Recorded(bytes),
        }
    }

    fn is_far_behind(&self) -> bool {
        let written_position = self.writer.written_position();
        self.sync
            .as_ref()
            .is_some_and(|sync| sync.is_far_behind(written_position))
    }

    /// Returns the bytes recorded, `None` at the end of the stream.
    fn record_blocks(
        &mut self,
        scratch: &mut [u8],
        traffic: &mut Traffic,
    ) -> Result<Option<usize>, Failure> {
        let mut total = 0;
        for _ in 0..BLOCKS_PER_CYCLE {
            let writer = &mut self.writer;
            let time_index = &mut self.time_index;
            let counted_position = self.counted_position;
            let mut written = Ok(0);
            let polled = self
                .image
                .block_poll(self.block_length_limit, &mut |block, _, _| {
                    let began = Instant::now();
                    if let Some(index) = time_index {
                        index.before_block(counted_position, began);
                    }
                    written = writer.write_block(block, scratch);
                    traffic.add(*written.as_ref().unwrap_or(&0), began);
                })?;
            written?;
            let Some(length) = polled else {
                return Ok((total > 0).then_some(total));
            };
            total += length;
            // Short blocks mean that the recorder keeps up: coming back later makes longer ones.
            if length < self.block_length_limit / 4 {
                break;
            }
        }
        Ok(Some(total))
    }
}

/// A recording that writes nothing more, until what it has written is synced.
pub struct EndingRecording {
    pub recording_id: i64,
    written_position: i64,
    sync: Option<Arc<RecordingSync>>,
    failure: Option<Failure>,
    events: Option<RecordingEvents>,
    time_index: Option<TimeIndex>,
}

/// The position at which a recording has ended and, if it has failed, why; likewise why its time
/// index was not written.
pub type End = (i64, Option<Failure>, Option<String>);

impl EndingRecording {
    /// Whether all is synced, or cannot be.
    pub fn is_settled(&self) -> bool {
        self.sync.as_ref().is_none_or(|sync| sync.is_settled())
    }

    /// Publish where the recording has ended.
    pub fn end(self, event_stream: Option<&EventStream>) -> End {
        let (position, sync_failure) = match &self.sync {
            Some(sync) => (sync.synced_position(), sync.failure()),
            None => (self.written_position, None),
        };
        if let Some((stream, events)) = event_stream.zip(self.events) {
            events.stop(position, stream);
        }
        let mut time_index_failure = None;
        if let Some(mut index) = self.time_index {
            index.end(position);
            time_index_failure = index.take_failure();
        }
        (position, self.failure.or(sync_failure), time_index_failure)
    }
}
