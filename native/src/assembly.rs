//! Assembles fragmented messages.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use rusteron_client::bindings as c;

use crate::frame::{FLAG_BEGIN, FLAG_END, FLAGS_UNFRAGMENTED, MAX_MESSAGE_LENGTH, align};

/// Recording id, session id and stream id of the recording that a stream replays.
pub type RecordedAs = (i64, i32, i32);

/// The header of a message's first frame, as far as readers want it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Position of the frame.
    pub position: i64,
    pub session_id: i32,
    pub stream_id: i32,
    pub term_id: i32,
    pub term_offset: i32,
    pub flags: u8,
    pub reserved_value: i64,
    /// The recording that is replayed, if one is.
    pub recording_id: Option<i64>,
}

impl Header {
    /// For a frame that ends at `end_position`, with the ids of the recording if it is replayed.
    pub fn new(
        values: &c::aeron_header_values_t,
        end_position: i64,
        recorded_as: Option<RecordedAs>,
    ) -> Self {
        // Copied out field by field: the C struct is packed.
        let frame = values.frame;
        let (recording_id, session_id, stream_id) = match recorded_as {
            Some((recording_id, session_id, stream_id)) => {
                (Some(recording_id), session_id, stream_id)
            }
            None => (None, frame.session_id, frame.stream_id),
        };
        let frame_length = frame.frame_length;
        Self {
            position: end_position - align(frame_length.max(0) as usize) as i64,
            session_id,
            stream_id,
            term_id: frame.term_id,
            term_offset: frame.term_offset,
            flags: frame.flags,
            reserved_value: frame.reserved_value,
            recording_id,
        }
    }
}

/// The unfinished message of one session.
#[derive(Debug)]
pub struct Assembler {
    buffer: Vec<u8>,
    /// Bytes of a message that are stored; of a longer one the rest is dropped.
    max_length: usize,
    first: Option<Header>,
    /// Expected position of the next fragment; at another position, fragments were missed.
    next_position: i64,
}

type OnMessage<'a> = &'a mut dyn FnMut(&[u8], &Header, i64);

impl Default for Assembler {
    fn default() -> Self {
        Self::keeping(MAX_MESSAGE_LENGTH + 1)
    }
}

impl Assembler {
    /// Drop the bytes of a message past `max_length`.
    pub fn keeping(max_length: usize) -> Self {
        Self {
            buffer: Vec::new(),
            max_length,
            first: None,
            next_position: 0,
        }
    }

    fn keep(&mut self, payload: &[u8]) {
        let room = self.max_length.saturating_sub(self.buffer.len());
        let stored = payload.get(..room).unwrap_or(payload);
        self.buffer.extend_from_slice(stored);
    }

    /// A message has begun and not ended.
    pub fn is_in_message(&self) -> bool {
        self.first.is_some()
    }

    /// Take a fragment that ends at `position`; call `on_message(payload, first header, position)`
    /// when it completes a message. A fragment whose beginning was never seen is dropped.
    #[inline]
    pub fn on_fragment(
        &mut self,
        payload: &[u8],
        header: Header,
        position: i64,
        on_message: OnMessage<'_>,
    ) {
        let flags = header.flags;
        if flags & FLAGS_UNFRAGMENTED == FLAGS_UNFRAGMENTED {
            on_message(payload, &header, position);
            return;
        }
        if flags & FLAG_BEGIN != 0 {
            self.buffer.clear();
            self.keep(payload);
            self.first = Some(header);
            self.next_position = position;
            return;
        }
        let Some(first) = self.first else { return };
        if header.position != self.next_position {
            self.first = None;
            return;
        }
        self.keep(payload);
        if self.buffer.len() > MAX_MESSAGE_LENGTH {
            // No publication sends it: the publisher does not end its messages.
            (self.first, self.buffer) = (None, Vec::new());
            return;
        }
        self.next_position = position;
        if flags & FLAG_END != 0 {
            self.first = None;
            on_message(&self.buffer, &first, position);
        }
    }
}

/// Messages on their way to Python: payloads one after the other in one allocation.
#[derive(Default)]
pub struct Messages {
    payloads: Vec<u8>,
    rows: Vec<(usize, Header, i64)>,
}

impl Messages {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn push(&mut self, payload: &[u8], header: &Header, position: i64) {
        self.payloads.extend_from_slice(payload);
        self.rows.push((self.payloads.len(), *header, position));
    }

    /// The list of tuples that `aerotape/_native/` describes.
    pub fn into_list(self, py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
        let mut start = 0;
        let mut tuples = Vec::with_capacity(self.rows.len());
        for (end, header, position) in &self.rows {
            let payload = PyBytes::new(py, self.payloads.get(start..*end).unwrap_or_default());
            start = *end;
            tuples.push(
                (
                    payload,
                    *position,
                    header.session_id,
                    header.stream_id,
                    header.term_id,
                    header.term_offset,
                    header.flags,
                    header.reserved_value,
                    header.position,
                    header.recording_id,
                )
                    .into_pyobject(py)?,
            );
        }
        PyList::new(py, tuples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(fragments: &[(&[u8], i64, u8)]) -> Vec<(Vec<u8>, i64, i64)> {
        let mut assembler = Assembler::default();
        let mut out = Vec::new();
        for &(payload, position, flags) in fragments {
            let header = Header {
                position,
                flags,
                ..Header::default()
            };
            let end = position + align(payload.len() + 32) as i64;
            assembler.on_fragment(payload, header, end, &mut |bytes, first, end| {
                out.push((bytes.to_vec(), first.position, end));
            });
        }
        out
    }

    #[test]
    fn a_tail_without_its_beginning_is_dropped() {
        let messages = run(&[(b"tail", 0, FLAG_END), (b"whole", 64, FLAGS_UNFRAGMENTED)]);
        assert_eq!(messages, [(b"whole".to_vec(), 64, 128)]);
    }

    #[test]
    fn a_message_longer_than_any_is_dropped_with_its_memory() {
        let mut assembler = Assembler::default();
        let payload = vec![7; 1 << 20];
        let mut end = 0;
        for index in 0..18 {
            let header = Header {
                position: end,
                flags: if index == 0 { FLAG_BEGIN } else { 0 },
                ..Header::default()
            };
            end += align(payload.len() + 32) as i64;
            assembler.on_fragment(&payload, header, end, &mut |_, _, _| panic!("no message"));
        }
        assert!(!assembler.is_in_message());
        assert_eq!(assembler.buffer.capacity(), 0);
    }

    #[test]
    fn a_gap_between_fragments_drops_the_message() {
        assert!(run(&[(b"abc", 0, FLAG_BEGIN), (b"g", 128, FLAG_END)]).is_empty());
    }
}
