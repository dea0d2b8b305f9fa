//! A recording session: moves what an image receives into a recording's segment files.

use super::events::{EventMessages, EventStream, RecordingEvents};
use super::failure::Failure;
use super::segment_writer::{Placement, SegmentWriter, Storage};
use super::statistics::Traffic;
use super::time_index::{TimeIndex, TimeIndexRequest};
use crate::aeron::{CounterHandle, ImageHandle};
use crate::frame::FRAME_ALIGNMENT;
use crate::geometry::StreamGeometry;
use std::sync::Arc;
use std::time::Instant;

/// Blocks taken from one image in one duty cycle. More than one, so that a
/// sync at levels 1 and 2 is shared; few, so that a fast stream does not hold up the others.
const BLOCKS_PER_CYCLE: usize = 8;

/// A recording as Python requests it.
pub struct RecordingRequest {
    pub recording_id: i64,
    pub start_position: i64,
    pub segment_length: i64,
    pub image: ImageHandle,
    pub position_counter: CounterHandle,
    pub events: Option<EventMessages>,
    pub time_index: Option<TimeIndexRequest>,
}

impl RecordingRequest {
    /// Refuse numbers that no recording has, before any file is touched.
    pub fn check(&self) -> Result<(), String> {
        let term_length = self.image.term_buffer_length as i64;
        check_segment_length(self.segment_length, term_length)?;
        let (start, join) = (self.start_position, self.image.join_position);
        if start < 0 || start > join || start % FRAME_ALIGNMENT as i64 != 0 {
            return Err(format!(
                "start_position={start}: must be on a frame boundary from 0 to {join}, where the \
                 image begins"
            ));
        }
        self.events.as_ref().map_or(Ok(()), EventMessages::check)
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

pub struct RecordingSession {
    recording_id: i64,
    image: ImageHandle,
    position_counter: CounterHandle,
    /// What the counter was set to last.
    counted_position: i64,
    block_length_limit: usize,
    writer: SegmentWriter,
    events: Option<RecordingEvents>,
    time_index: Option<TimeIndex>,
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
        file_io_max_length: usize,
        event_stream: Option<&EventStream>,
    ) -> Result<Self, (i64, Failure)> {
        let RecordingRequest {
            recording_id,
            start_position,
            segment_length,
            ..
        } = request;
        let RecordingRequest {
            image,
            position_counter,
            events,
            time_index,
            ..
        } = request;
        let join_position = image.join_position;
        let term_length = image.term_buffer_length;
        let placement = Placement {
            recording_id,
            start_position,
            join_position,
            segment_length,
            geometry: StreamGeometry {
                initial_term_id: image.initial_term_id,
                term_length: term_length as i64,
                stream_id: image.stream_id,
            },
        };
        position_counter.set_release(join_position);
        let writer =
            SegmentWriter::open(storage, placement).map_err(|failure| (join_position, failure))?;
        let events = event_stream
            .zip(events)
            .map(|(stream, events)| RecordingEvents::start(events, join_position, stream));
        let session_id = image.session_id;
        let time_index = time_index.map(|request| TimeIndex::new(request, session_id));
        Ok(Self {
            recording_id,
            image,
            position_counter,
            counted_position: join_position,
            block_length_limit: term_length.min(file_io_max_length),
            writer,
            events,
            time_index,
        })
    }

    pub fn recording_id(&self) -> i64 {
        self.recording_id
    }

    /// Position up to which the recording is good.
    pub fn recorded_position(&self) -> i64 {
        self.writer.recorded_position()
    }

    /// Close files and image, and publish where the recording has ended. Returns why its time index
    /// was not written, if that has failed.
    pub fn end(mut self, event_stream: Option<&EventStream>) -> Option<String> {
        let position = self.recorded_position();
        if let Some((stream, events)) = event_stream.zip(self.events.take()) {
            events.stop(position, stream);
        }
        if let Some(index) = &mut self.time_index {
            index.end(position);
        }
        self.take_time_index_failure()
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
        let outcome = self.record_blocks(scratch, written);
        // Also after a failure: a replay that follows must see the last good frame.
        let position = self.writer.recorded_position();
        if position != self.counted_position {
            self.position_counter.set_release(position);
            self.counted_position = position;
        }
        if let Some((stream, events)) = event_stream.zip(self.events.as_mut()) {
            events.progress(position, stream);
        }
        if let Some(index) = &mut self.time_index {
            if matches!(outcome, Ok(0)) {
                index.idle(position);
            }
            index.flush();
        }
        match outcome {
            Err(failure) => RecordingOutcome::Failed(failure),
            Ok(0) if self.image.is_end_of_stream() || self.image.is_closed() => {
                RecordingOutcome::Ended
            }
            Ok(bytes) => RecordingOutcome::Recorded(bytes),
        }
    }

    fn record_blocks(
        &mut self,
        scratch: &mut [u8],
        traffic: &mut Traffic,
    ) -> Result<usize, Failure> {
        let mut total = 0;
        for _ in 0..BLOCKS_PER_CYCLE {
            let writer = &mut self.writer;
            let time_index = &mut self.time_index;
            let counted_position = self.counted_position;
            let mut written = Ok(0);
            let length = self
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
            total += length;
            // Short blocks mean that the recorder keeps up: coming back later makes longer ones.
            if length < self.block_length_limit / 4 {
                break;
            }
        }
        if self.writer.wants_sync() {
            let began = Instant::now();
            self.writer.sync()?;
            traffic.add(0, began);
        }
        Ok(total)
    }
}
