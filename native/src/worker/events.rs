//! The recording events stream: start, progress and stop of recordings, for its subscribers.
//!
//! No thread waits for it: an event that the stream does not take is dropped, and the next progress
//! event contains more.

use crate::aeron::{ExclusivePublicationHandle, NOT_CONNECTED};

/// Tries for the events that are sent once, as the reference has it.
const SEND_ATTEMPTS: usize = 3;
/// The position is the last field of the events that have one.
const POSITION_LENGTH: usize = size_of::<i64>();

/// The start, progress and stop of one recording, encoded by Python; in the last two the position is filled in.
pub type EventMessages = (Vec<u8>, Vec<u8>, Vec<u8>);

/// Where the events go.
pub struct EventStream {
    pub publication: ExclusivePublicationHandle,
}

impl EventStream {
    fn send(&self, message: &[u8], attempts: usize) -> bool {
        for _ in 0..attempts {
            match self.publication.offer(message, 0) {
                Ok(position) if position > 0 => return true,
                Ok(NOT_CONNECTED) | Err(_) => return false,
                Ok(_) => {}
            }
        }
        false
    }
}

/// The events of a recording in progress.
pub struct RecordingEvents {
    progress: Vec<u8>,
    stopped: Vec<u8>,
    /// Position of the last progress event that was taken.
    sent_position: i64,
}

impl RecordingEvents {
    pub fn start(messages: EventMessages, join_position: i64, stream: &EventStream) -> Self {
        let (started, progress, stopped) = messages;
        stream.send(&started, SEND_ATTEMPTS);
        Self {
            progress,
            stopped,
            sent_position: join_position,
        }
    }

    /// Publish the position of the recording, unless it was published.
    pub fn progress(&mut self, position: i64, stream: &EventStream) {
        if position > self.sent_position {
            put_position(&mut self.progress, position);
            if stream.send(&self.progress, 1) {
                self.sent_position = position;
            }
        }
    }

    pub fn stop(mut self, position: i64, stream: &EventStream) {
        put_position(&mut self.stopped, position);
        stream.send(&self.stopped, SEND_ATTEMPTS);
    }
}

fn put_position(message: &mut [u8], position: i64) {
    if let Some(field) = message.last_chunk_mut::<POSITION_LENGTH>() {
        *field = position.to_le_bytes();
    }
}
