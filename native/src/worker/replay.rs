//! A replay session: offers a recording's frames to the publication of one client.

use super::batch::{Batch, Follows, FrameRewrite, prepare};
use super::failure::Failure;
use super::recording::check_segment_length;
use super::replay_limit::ReplayLimit;
use super::segment_reader::SegmentReader;
use super::statistics::Traffic;
use crate::aeron::{
    CLOSED, Counter, DeferredResponse, ExclusivePublicationHandle, ForeignCounter, NOT_CONNECTED,
    is_held_up, last_error,
};
use crate::checksum::Checksum;
use crate::frame::{FrameHeader, HEADER_LENGTH, MAX_MESSAGE_LENGTH, align};
use crate::geometry::StreamGeometry;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// A replay as Python requests it; `aerotape/worker_arguments.py` describes the attributes.
#[derive(FromPyObject)]
pub struct ReplayArguments {
    replay_session_id: i64,
    recording_id: i64,
    replay_position: i64,
    replay_length: i64,
    start_position: i64,
    /// Known end of what may be replayed.
    stop_position: i64,
    segment_length: i64,
    term_length: i64,
    /// Stream id of the recorded frames.
    stream_id: i32,
    /// Of the publication, as errors name it.
    channel: String,
    #[pyo3(attribute("connect_timeout_ns"), from_py_with = super::nanoseconds)]
    connect_timeout: Duration,
    limit_counter: Option<LimitArgument>,
    file_io_max_length: Option<usize>,
    /// The response to the client, sent once all checks have passed.
    answer: Option<DeferredResponse>,
    archive_dir: Option<PathBuf>,
}

/// Where a replay's end comes from, as Python passes it.
#[derive(FromPyObject)]
enum LimitArgument {
    Counter(Counter),
    Foreign(i32, i64),
}

pub struct ReplayRequest {
    arguments: ReplayArguments,
    limit: ReplayLimit,
    publication: ExclusivePublicationHandle,
    /// The position of the replay, for Python.
    pub progress: Arc<AtomicI64>,
}

impl ReplayRequest {
    pub fn new(mut arguments: ReplayArguments, publication: ExclusivePublicationHandle) -> Self {
        let limit = match arguments.limit_counter.take() {
            None => ReplayLimit::Stopped,
            Some(LimitArgument::Counter(counter)) => ReplayLimit::Recording(counter),
            Some(LimitArgument::Foreign(counter_id, registration_id)) => ReplayLimit::Bound(
                ForeignCounter::new(publication.client(), counter_id, registration_id),
            ),
        };
        Self {
            progress: Arc::new(AtomicI64::new(arguments.replay_position)),
            arguments,
            limit,
            publication,
        }
    }

    /// Refuse numbers that no recording has, before any file is touched.
    pub fn check(&self) -> Result<(), String> {
        let ReplayArguments {
            term_length,
            replay_position,
            replay_length,
            start_position,
            ..
        } = self.arguments;
        if term_length != self.publication.constants.term_buffer_length as i64 {
            return Err(format!(
                "term_length={term_length}: the publication has {}",
                self.publication.constants.term_buffer_length
            ));
        }
        check_segment_length(self.arguments.segment_length, term_length)?;
        if start_position < 0 || replay_position < start_position || replay_length < 0 {
            return Err(format!(
                "cannot replay {replay_length} bytes from position {replay_position} of a \
                 recording that starts at {start_position}"
            ));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The segment file is not there yet, or not checked.
    Opening,
    /// The client has been sent OK; its subscription has not connected.
    Connecting,
    Replaying,
}

/// The outcome of one duty cycle of a replay.
pub enum ReplayOutcome {
    /// Bytes offered; zero for an idle cycle.
    Replayed(usize),
    /// All checks passed: the client has been sent OK, or may be.
    Ready {
        is_answered: bool,
    },
    /// All of it was offered.
    Ended,
    /// The subscriber has gone.
    Abandoned,
    Failed(Failure),
}

pub struct ReplaySession {
    replay_session_id: i64,
    publication: ExclusivePublicationHandle,
    /// Of the publication, as errors name it.
    channel: String,
    limit: ReplayLimit,
    /// Of the recording.
    start_position: i64,
    /// What precedes it may be replayed; moves when the limit does.
    known_end: i64,
    /// The replay ends at the first frame boundary at or after this.
    replay_limit: i64,
    /// That of the recording, which the publication shares but for the stream id.
    geometry: StreamGeometry,
    batch_length_limit: usize,
    /// Part of a padding frame that is still to be appended, header included.
    padding: usize,
    connect_deadline: Instant,
    checksum: Option<Checksum>,
    reader: SegmentReader,
    /// The response to the client, until all checks have passed.
    answer: Option<DeferredResponse>,
    progress: Arc<AtomicI64>,
    state: State,
}

impl ReplaySession {
    pub fn new(
        request: ReplayRequest,
        archive_dir: PathBuf,
        checksum: Option<Checksum>,
        file_io_max_length: usize,
    ) -> Self {
        let ReplayRequest {
            arguments,
            limit,
            publication,
            progress,
        } = request;
        let reader = SegmentReader::new(
            arguments.archive_dir.unwrap_or(archive_dir),
            arguments.recording_id,
            arguments.start_position,
            arguments.replay_position,
            arguments.term_length,
            arguments.segment_length,
        );
        let batch_length_limit = arguments
            .file_io_max_length
            .filter(|&length| length > 0)
            .unwrap_or(file_io_max_length)
            .min(file_io_max_length)
            .min(arguments.term_length as usize);
        let constants = &publication.constants;
        let geometry = StreamGeometry {
            initial_term_id: constants.initial_term_id,
            term_length: arguments.term_length,
            stream_id: arguments.stream_id,
            max_frame_length: (constants.max_payload_length + HEADER_LENGTH) as i32,
        };
        Self {
            replay_session_id: arguments.replay_session_id,
            publication,
            channel: arguments.channel,
            limit,
            start_position: arguments.start_position,
            known_end: arguments.stop_position,
            replay_limit: arguments
                .replay_position
                .saturating_add(arguments.replay_length),
            geometry,
            batch_length_limit,
            padding: 0,
            connect_deadline: Instant::now() + arguments.connect_timeout,
            checksum,
            reader,
            answer: arguments.answer,
            progress,
            state: State::Opening,
        }
    }

    pub fn replay_session_id(&self) -> i64 {
        self.replay_session_id
    }

    /// Position of the next frame to offer.
    pub fn position(&self) -> i64 {
        self.reader.position()
    }

    /// Close the publication: the subscriber takes what was offered.
    pub fn close(self) {
        self.publication.close();
    }

    /// Close the publication and drop what the subscriber has not taken.
    pub fn revoke(self) {
        self.publication.revoke();
    }

    /// Take a step: open, wait for the subscriber, or offer one batch, read into `buffer`.
    pub fn work(&mut self, buffer: &mut [u8], traffic: &mut Traffic) -> ReplayOutcome {
        let outcome = match self.state {
            State::Opening => self.open(),
            State::Connecting => self.connect(),
            State::Replaying => self.replay(buffer, traffic),
        };
        self.progress.store(self.position(), Ordering::Release);
        outcome.unwrap_or_else(ReplayOutcome::Failed)
    }

    fn open(&mut self) -> Result<ReplayOutcome, Failure> {
        // At the end of a recording no file is needed: it may not exist.
        if !self.is_at_end() {
            if !self.reader.try_open()? {
                if self.is_connect_timed_out() {
                    return Err(self.damage("recording segment file not created"));
                }
                return Ok(ReplayOutcome::Replayed(0));
            }
            self.check_first_frame()?;
        }
        self.state = State::Connecting;
        let is_answered = self.answer.take().is_some_and(|answer| answer.send());
        Ok(ReplayOutcome::Ready { is_answered })
    }

    fn is_connect_timed_out(&self) -> bool {
        Instant::now() > self.connect_deadline
    }

    fn is_at_end(&self) -> bool {
        matches!(self.limit, ReplayLimit::Stopped) && self.position() >= self.known_end
    }

    /// A replay from within the recording must begin where a frame does.
    fn check_first_frame(&mut self) -> Result<(), Failure> {
        let position = self.position();
        if position <= self.start_position || position == self.known_end {
            return Ok(());
        }
        let bytes = self.reader.read_header()?;
        let is_frame = FrameHeader::read(&bytes)
            .is_some_and(|header| self.geometry.check_place(&header, position).is_ok());
        if is_frame {
            return Ok(());
        }
        Err(Failure::invalid_position(format!(
            "replayPosition={} does not point to a valid frame: {}",
            self.reader.frame_position(),
            self.reader.place()
        )))
    }

    fn connect(&mut self) -> Result<ReplayOutcome, Failure> {
        if self.publication.is_connected() {
            self.state = State::Replaying;
            return Ok(ReplayOutcome::Replayed(1));
        }
        if self.is_connect_timed_out() {
            return Err(Failure::generic(format!(
                "no connection established for replayChannel={}, replayStreamId={}: \
                 no subscriber in time",
                self.channel, self.publication.constants.stream_id
            )));
        }
        Ok(ReplayOutcome::Replayed(0))
    }

    fn replay(
        &mut self,
        buffer: &mut [u8],
        traffic: &mut Traffic,
    ) -> Result<ReplayOutcome, Failure> {
        if !self.publication.is_connected() {
            return Ok(ReplayOutcome::Abandoned);
        }
        if self.padding > 0 {
            return self.append_padding();
        }
        if self.position() >= self.replay_limit {
            return Ok(ReplayOutcome::Ended);
        }
        if self.position() >= self.known_end && !self.is_extended() {
            return Ok(self.caught_up());
        }
        if self.publication.available_window() <= 0 {
            return Ok(ReplayOutcome::Replayed(0));
        }
        self.offer_batch(buffer, traffic)
    }

    fn is_extended(&mut self) -> bool {
        self.ask_limit().0
    }

    /// Ask the limit whether the recording has grown, and whether that was the last time. Where it
    /// was, the replay is to end there.
    fn ask_limit(&mut self) -> (bool, bool) {
        let reading = self.limit.read(self.known_end);
        if reading.is_final {
            self.replay_limit = self.replay_limit.min(reading.position);
        }
        let is_extended = reading.position > self.known_end;
        self.known_end = reading.position;
        (is_extended, reading.is_final)
    }

    fn caught_up(&self) -> ReplayOutcome {
        if self.position() >= self.replay_limit {
            ReplayOutcome::Ended
        } else {
            ReplayOutcome::Replayed(0)
        }
    }

    fn offer_batch(
        &mut self,
        buffer: &mut [u8],
        traffic: &mut Traffic,
    ) -> Result<ReplayOutcome, Failure> {
        let batch_length_limit = self.batch_length_limit.min(buffer.len());
        let buffer = buffer.get_mut(..batch_length_limit).unwrap_or_default();
        let available = self.known_end - self.position();
        let expected = self.reader.readable_length(buffer.len(), available);
        let began = Instant::now();
        let read = self.reader.read(buffer, available)?;
        let bytes = buffer.get_mut(..read).unwrap_or_default();
        let rewrite = FrameRewrite {
            checksum: self.checksum,
            session_id: self.publication.constants.session_id,
            stream_id: self.publication.constants.stream_id,
        };
        let position = self.position();
        let remaining = self.replay_limit - position;
        let Batch { length, follows } =
            prepare(bytes, position, remaining, &self.geometry, rewrite);
        traffic.add(read, began);
        if length > 0 {
            let frames = bytes.get_mut(..length).unwrap_or_default();
            let result = self.publication.offer_block(frames);
            if result <= 0 {
                return self.refused(result);
            }
            self.reader.advance(length);
        }
        match follows {
            Follows::Padding(frame_length) if self.is_recorded(frame_length) => {
                self.padding = frame_length;
                self.append_padding()
            }
            // Good frames before the bad one are sent first; it is met again as the first.
            _ if length > 0 => Ok(self.offered(length)),
            Follows::Damage(what, why) => Err(self.damage(&format!(
                "{what} at position={}: {why}",
                self.reader.frame_position()
            ))),
            _ if read < expected => Err(self.damage("the segment file ends too early")),
            // More was there to be had, but for the end of the term or of a read.
            _ if (expected as i64) < available => Err(self.damage(&format!(
                "a frame is longer than the {expected} bytes it has"
            ))),
            _ => self.wait_for_rest_of_frame(),
        }
    }

    /// Whether a padding frame ends at or before what may be replayed.
    fn is_recorded(&self, frame_length: usize) -> bool {
        align(frame_length) as i64 <= self.known_end - self.position()
    }

    /// The limit is within a frame: continue when it moves past the end of the frame.
    fn wait_for_rest_of_frame(&mut self) -> Result<ReplayOutcome, Failure> {
        // One reading for both: the recording may grow a last time between two.
        let (is_extended, is_final) = self.ask_limit();
        if is_extended {
            return Ok(ReplayOutcome::Replayed(1));
        }
        match self.limit {
            ReplayLimit::Stopped => Err(self.damage(&format!(
                "a frame continues past the stop position {}",
                self.known_end
            ))),
            _ if is_final => Ok(ReplayOutcome::Ended),
            _ => Ok(ReplayOutcome::Replayed(0)),
        }
    }

    /// Append what is left of a padding frame, in pieces where it is longer than a message may
    /// be (loss gaps and long messages that did not fit leave such).
    fn append_padding(&mut self) -> Result<ReplayOutcome, Failure> {
        let piece_limit = (self.geometry.term_length as usize / 8).min(MAX_MESSAGE_LENGTH);
        let mut appended = 0;
        while self.padding > 0 {
            let is_last = self.padding - HEADER_LENGTH <= piece_limit;
            let piece = if is_last { self.padding } else { piece_limit };
            let result = self.publication.append_padding(piece - HEADER_LENGTH);
            if result <= 0 {
                return self.refused(result);
            }
            self.reader.advance(align(piece));
            self.padding -= piece;
            appended += align(piece);
        }
        Ok(self.offered(appended))
    }

    fn offered(&self, length: usize) -> ReplayOutcome {
        if self.position() >= self.replay_limit {
            ReplayOutcome::Ended
        } else {
            ReplayOutcome::Replayed(length)
        }
    }

    fn refused(&self, result: i64) -> Result<ReplayOutcome, Failure> {
        match result {
            _ if is_held_up(result) => Ok(ReplayOutcome::Replayed(0)),
            NOT_CONNECTED | CLOSED => Ok(ReplayOutcome::Abandoned),
            _ => {
                let error = last_error("the publication refused the frames");
                Err(self.damage(&error.message()))
            }
        }
    }

    fn damage(&self, what: &str) -> Failure {
        Failure::generic(format!("{what}: {}", self.reader.place()))
    }
}
