//! Gaps: ranges of a recording without frames, and the next frame after a gap.
//!
//! A frame is found from the length of the preceding one, so the first that is missing or damaged
//! hides all that follow. But each header contains its place: term id, term offset and stream id
//! are twelve bytes that hardly occur by chance at the place that they name. The recording
//! continues at the next 32-byte boundary with such a header.

use super::recording::Recording;
use super::window::Window;
use crate::frame::{FRAME_ALIGNMENT, FrameHeader, HEADER_LENGTH};
use crate::geometry::parse_segment_name;

/// The segment files of a recording, listed once: a directory may be long, and gaps many.
#[derive(Debug, Default)]
pub struct SegmentBases {
    /// Base positions, ascending; `None` before the first use.
    listed: Option<Vec<i64>>,
}

impl SegmentBases {
    /// Base position of the first segment file after the one at `base`, if there is any.
    ///
    /// Trying each base would not end in time where a damaged stop position is very high.
    fn next(&mut self, recording: &Recording, base: i64) -> Option<i64> {
        let listed = self.listed.get_or_insert_with(|| list(recording));
        let next = listed.partition_point(|&other| other <= base);
        listed.get(next).copied()
    }
}

/// What there is in place of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// No segment file, or one that ends before, or one that cannot be read.
    Missing,
    /// Zeros: nothing was ever written there.
    Unwritten,
    /// Bytes that are not a frame of that place.
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
pub fn end(window: &mut Window, bases: &mut SegmentBases, position: i64, limit: i64) -> i64 {
    let recording = window.recording().clone();
    let mut at = position + FRAME_ALIGNMENT as i64;
    while at < limit {
        let Ok(bytes) = window.bytes(at, HEADER_LENGTH) else {
            at = bases
                .next(&recording, recording.segment_base(at))
                .unwrap_or(limit);
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

/// Base positions of all segment files of a recording that may be opened, ascending.
fn list(recording: &Recording) -> Vec<i64> {
    let Ok(entries) = std::fs::read_dir(&recording.archive_dir) else {
        return Vec::new();
    };
    let mut bases: Vec<i64> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            let (recording_id, base) = parse_segment_name(name.as_encoded_bytes())?;
            (recording_id == recording.recording_id).then_some(base)
        })
        .filter(|&base| recording.segment_base(base) == base)
        .collect();
    bases.sort_unstable();
    bases
}

#[inline]
fn is_frame(recording: &Recording, position: i64, limit: i64, header: &FrameHeader) -> bool {
    recording.geometry.check(header, position, limit).is_ok()
}
