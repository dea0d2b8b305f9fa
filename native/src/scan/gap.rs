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

/// So many segment files in a row are tried before the directory is asked which there are.
const TRIED: usize = 16;

/// The segment files of a recording, listed once: a directory may be long, and gaps many.
#[derive(Debug, Default)]
pub struct SegmentBases {
    /// Base positions, ascending; `None` before the first use.
    listed: Option<Vec<i64>>,
    #[cfg(test)]
    pub listings: usize,
}

impl SegmentBases {
    /// Base position of the first segment file after the one at `base`, if there is any.
    ///
    /// Trying each base would not end in time where a damaged stop position is very high.
    fn next(&mut self, recording: &Recording, base: i64) -> Option<i64> {
        if self.listed.is_none() {
            self.listed = Some(list(recording));
            #[cfg(test)]
            {
                self.listings += 1;
            }
        }
        let listed = self.listed.as_deref()?;
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
    let mut misses = 0;
    while at < limit {
        let Ok(bytes) = window.bytes(at, HEADER_LENGTH) else {
            let base = recording.segment_base(at);
            at = base.saturating_add(recording.segment_length);
            misses += 1;
            if misses > TRIED {
                at = bases
                    .next(&recording, base)
                    .map_or(limit, |next| next.max(at));
            }
            continue;
        };
        misses = 0;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::StreamGeometry;
    use crate::test_support::frames::data_frame;
    use crate::test_support::scratch_dir::ScratchDir;

    const TERM: i64 = 65_536;

    #[test]
    fn the_directory_is_read_once_whatever_the_gaps() {
        let folder = ScratchDir::new();
        let recording = Recording {
            archive_dir: folder.path().to_owned(),
            recording_id: 3,
            start_position: 0,
            segment_length: TERM,
            session_id: 1,
            geometry: StreamGeometry {
                initial_term_id: 0,
                term_length: TERM,
                stream_id: 1001,
            },
        };
        // A frame in each thirtieth segment. Of those in between most are not there, and the
        // others cannot be read.
        for term in 0..300 {
            let name = format!("3-{}.rec", i64::from(term) * TERM);
            if term % 30 == 29 {
                folder.write(&name, &data_frame(0, term, b"there"));
            } else if term % 30 > 20 {
                std::fs::create_dir(folder.path().join(name)).expect("a folder");
            }
        }
        // Names of other files: of another recording, and no multiple of its length.
        folder.write("33-65536.rec", b"");
        folder.write("3-65600.rec", b"");
        folder.write("3--65536.rec", b"");
        let limit = 400 * TERM;
        let mut window = Window::new(recording, limit);
        let mut bases = SegmentBases::default();
        let mut found = Vec::new();
        let mut at = 0;
        while at < limit {
            at = end(&mut window, &mut bases, at, limit);
            found.push(at);
        }
        let mut expected: Vec<i64> = (0..10).map(|run| (30 * run + 29) * TERM).collect();
        expected.push(limit);
        assert_eq!(found, expected);
        assert_eq!(bases.listings, 1);
    }
}
