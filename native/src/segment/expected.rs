//! What a frame at a place in a segment file must say of itself.

use crate::checksum::Checksum;
use crate::frame::{FrameHeader, HEADER_LENGTH, TYPE_DATA, TYPE_PAD};

/// What to walk, and what the frames there must say of themselves.
#[derive(Clone, Copy, Debug)]
pub struct WalkRange {
    /// Offset of the first frame in the file.
    pub start_offset: u64,
    /// Offset at which to stop, at most the segment length.
    pub limit: u64,
    /// Position in the stream of the file's first byte.
    pub base_position: i64,
    pub term_length: u32,
    pub initial_term_id: i32,
    pub stream_id: i32,
    pub checksum: Option<Checksum>,
}

impl WalkRange {
    /// Where in its term the byte at `offset` of the file is.
    #[inline]
    pub fn term_offset(&self, offset: u64) -> i64 {
        self.position(offset) & (i64::from(self.term_length) - 1)
    }

    #[inline]
    fn position(&self, offset: u64) -> i64 {
        self.base_position.wrapping_add(offset as i64)
    }

    /// Terms are counted from the initial one and wrap around, as Aeron's do.
    #[inline]
    fn term_id(&self, offset: u64) -> i32 {
        let terms = self.position(offset) >> self.term_length.trailing_zeros();
        self.initial_term_id.wrapping_add(terms as i32)
    }

    /// Whether a header says that it is where it is.
    #[inline]
    pub fn is_at(&self, header: &FrameHeader, offset: u64) -> bool {
        i64::from(header.term_offset) == self.term_offset(offset)
            && header.term_id == self.term_id(offset)
            && header.stream_id == self.stream_id
    }
}

/// Whether a header may stand at `offset` of a file of which `limit` bytes are there.
#[inline]
pub fn is_sound(header: &FrameHeader, offset: u64, limit: u64, range: &WalkRange) -> bool {
    let aligned = header.aligned_length() as u64;
    header.frame_length >= HEADER_LENGTH as i32
        && (header.frame_type == TYPE_DATA || header.frame_type == TYPE_PAD)
        && range.is_at(header, offset)
        && range.term_offset(offset) as u64 + aligned <= u64::from(range.term_length)
        && offset + aligned <= limit
}

/// Say what is wrong with a header that is not sound.
#[cold]
pub fn explain(header: &FrameHeader, offset: u64, limit: u64, range: &WalkRange) -> String {
    let length = header.frame_length;
    if length < HEADER_LENGTH as i32 {
        return format!("frame length {length} is less than a header");
    }
    if header.frame_type != TYPE_DATA && header.frame_type != TYPE_PAD {
        return format!(
            "frame type {} is neither data nor padding",
            header.frame_type
        );
    }
    let term_offset = range.term_offset(offset);
    for (name, actual, expected) in [
        ("term offset", i64::from(header.term_offset), term_offset),
        (
            "term id",
            i64::from(header.term_id),
            i64::from(range.term_id(offset)),
        ),
        (
            "stream id",
            i64::from(header.stream_id),
            i64::from(range.stream_id),
        ),
    ] {
        if actual != expected {
            return format!("{name} {actual} should be {expected}");
        }
    }
    if term_offset as u64 + header.aligned_length() as u64 > u64::from(range.term_length) {
        return format!("frame of {length} bytes crosses the end of its term");
    }
    format!(
        "frame of {length} bytes is cut off: the file ends {} bytes into it",
        limit.saturating_sub(offset)
    )
}
