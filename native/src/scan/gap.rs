//! Where a recording has no frames though it should, and where its frames go on behind that.
//!
//! Frames can only be found one after the other, so the first that is missing or damaged hides all
//! that follow. But each one tells where it lies: term id, term offset and stream id together are
//! twelve bytes that hardly stand by chance at just the place that they name. The next 32-byte
//! boundary with such a header is where the frames go on.

use super::recording::Recording;
use super::walk;
use super::window::Window;
use crate::frame::{FRAME_ALIGNMENT, FrameHeader, HEADER_LENGTH, TYPE_DATA, TYPE_PAD};

/// What stands where a frame should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// No segment file, or one that ends before, or one that cannot be read.
    Missing,
    /// Zeros: nothing was ever written there.
    Unwritten,
    /// Something that is no frame of that place.
    Damaged,
}

impl GapKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unwritten => "unwritten",
            Self::Damaged => "damaged",
        }
    }
}

/// What is at `position`, where a walk has just failed.
pub fn kind(window: &mut Window, position: i64, limit: i64) -> GapKind {
    let header = window
        .bytes(position, HEADER_LENGTH)
        .ok()
        .and_then(FrameHeader::read);
    match header {
        None => GapKind::Missing,
        Some(header) if header.frame_length == 0 => GapKind::Unwritten,
        // What would be a right frame has failed only because its file ends within it.
        Some(header)
            if is_frame(window.recording(), position, limit, &header)
                && window.bytes(position, header.aligned_length()).is_err() =>
        {
            GapKind::Missing
        }
        Some(_) => GapKind::Damaged,
    }
}

/// Position of the first frame after `position`, the limit when there is none.
pub fn end(window: &mut Window, position: i64, limit: i64) -> i64 {
    let recording = window.recording().clone();
    let mut at = position + FRAME_ALIGNMENT as i64;
    while at < limit {
        let Ok(bytes) = window.bytes(at, HEADER_LENGTH) else {
            at = recording.segment_base(at) + recording.segment_length;
            continue;
        };
        // All that has been read, so that a long gap does not cost a call for each boundary.
        for place in bytes.chunks_exact(FRAME_ALIGNMENT) {
            if let Some(header) = FrameHeader::read(place)
                && is_frame(&recording, at, limit, &header)
            {
                return at;
            }
            at += FRAME_ALIGNMENT as i64;
        }
    }
    limit
}

#[inline]
fn is_frame(recording: &Recording, position: i64, limit: i64, header: &FrameHeader) -> bool {
    header.frame_length > 0
        && header.stream_id == recording.stream_id
        && header.term_offset == recording.term_offset(position)
        && matches!(header.frame_type, TYPE_DATA | TYPE_PAD)
        && walk::check(recording, position, limit, header).is_ok()
}
