//! Iterates over the frames of a segment file, up to the first bad one.

use std::io;
use std::path::Path;

use pyo3::prelude::*;

use super::reader::Reader;
use crate::checksum::Checksum;
use crate::frame::{FrameHeader, HEADER_LENGTH};
use crate::geometry::{FrameFault, StreamGeometry};

/// So many failing frames are listed by offset; the rest is counted.
const LISTED_FAILURES: usize = 100;

/// The part of a segment file to walk, and the stream that its frames must belong to.
#[derive(Clone, Copy, Debug)]
pub struct WalkRange {
    /// Offset of the first frame in the file.
    pub start_offset: u64,
    /// Offset at which to stop, at most the segment length.
    pub limit: u64,
    /// Position in the stream of the file's first byte.
    pub base_position: i64,
    pub geometry: StreamGeometry,
    pub checksum: Option<Checksum>,
}

impl WalkRange {
    #[inline]
    pub fn position(&self, offset: u64) -> i64 {
        self.base_position.wrapping_add(offset as i64)
    }

    /// Check a header at `offset` of a file that has `length` bytes.
    #[inline]
    pub fn check(&self, header: &FrameHeader, offset: u64, length: u64) -> Result<(), FrameFault> {
        self.geometry
            .check(header, self.position(offset), self.position(length))
    }
}

/// The result of a walk; `aerotape/_native/` describes the fields.
#[pyclass(frozen, get_all, module = "aerotape._native")]
#[derive(Clone, Debug, Default)]
pub struct SegmentWalk {
    pub file_length: u64,
    pub end_offset: u64,
    pub end: String,
    pub problem: Option<String>,
    pub frames: u64,
    pub padding_frames: u64,
    pub payload_bytes: u64,
    pub last_frame_offset: i64,
    pub last_frame_length: i64,
    pub last_frame_is_padding: bool,
    pub checksum_passes: u64,
    pub checksum_failures: u64,
    pub failed_offsets: Vec<u64>,
    pub failed_tail_offset: i64,
}

/// Walk the frames of a range of a segment file.
pub fn walk(path: &Path, range: &WalkRange) -> io::Result<SegmentWalk> {
    let file = super::open_regular(path)?;
    let file_length = file.metadata()?.len();
    let limit = range.limit.min(file_length);
    let mut reader = Reader::new(&file, limit);
    let mut found = SegmentWalk {
        file_length,
        end_offset: range.start_offset,
        last_frame_offset: -1,
        last_frame_length: -1,
        failed_tail_offset: -1,
        ..SegmentWalk::default()
    };
    found.end = loop {
        let offset = found.end_offset;
        if offset >= range.limit {
            break "limit";
        }
        if offset >= limit {
            break "file-end";
        }
        let bytes = reader.at(offset, HEADER_LENGTH)?;
        let Some(header) = FrameHeader::read(bytes) else {
            // Fewer bytes than a header are left. If they are zeros nothing was written here.
            if bytes.iter().all(|&byte| byte == 0) {
                break "file-end";
            }
            found.problem = Some(format!("the file ends {} bytes into a header", bytes.len()));
            break "invalid";
        };
        if header.frame_length == 0 {
            break "unwritten";
        }
        if let Err(fault) = range.check(&header, offset, limit) {
            found.problem = Some(fault.to_string());
            break "invalid";
        }
        let aligned = header.aligned_length();
        found.frames += 1;
        found.last_frame_offset = offset as i64;
        found.last_frame_length = i64::from(header.frame_length);
        found.last_frame_is_padding = header.is_padding();
        found.end_offset = offset + aligned as u64;
        if header.is_padding() {
            found.padding_frames += 1;
            found.failed_tail_offset = -1;
            continue;
        }
        found.payload_bytes += (header.frame_length as u64).saturating_sub(HEADER_LENGTH as u64);
        if let Some(checksum) = range.checksum {
            if reader.checksum(checksum, offset, aligned)? == Some(header.session_id) {
                found.checksum_passes += 1;
                found.failed_tail_offset = -1;
            } else {
                found.checksum_failures += 1;
                if found.failed_offsets.len() < LISTED_FAILURES {
                    found.failed_offsets.push(offset);
                }
                if found.failed_tail_offset < 0 {
                    found.failed_tail_offset = offset as i64;
                }
            }
        }
    }
    .to_owned();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{SESSION_ID_OFFSET, TYPE_DATA, TYPE_PAD};
    use crate::test_support::frames::{data_frame, padding_frame};

    const TERM: u32 = 65_536;

    fn frame(position: i64, length: usize, kind: u16, checksum: Option<Checksum>) -> Vec<u8> {
        let term_offset = (position & i64::from(TERM - 1)) as i32;
        let term_id = 7 + (position / i64::from(TERM)) as i32;
        if kind == TYPE_PAD {
            return padding_frame(term_offset, term_id, length);
        }
        let mut bytes = data_frame(term_offset, term_id, &vec![1; length - HEADER_LENGTH]);
        if let Some(checksum) = checksum {
            let sum = checksum.compute(&bytes[HEADER_LENGTH..]);
            bytes[SESSION_ID_OFFSET..SESSION_ID_OFFSET + 4].copy_from_slice(&sum.to_le_bytes());
        }
        bytes
    }

    fn walk_bytes(name: &str, bytes: &[u8], checksum: Option<Checksum>) -> SegmentWalk {
        let path = std::env::temp_dir().join(format!("walk-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).expect("writable");
        let range = WalkRange {
            start_offset: 0,
            limit: 2 * u64::from(TERM),
            base_position: 0,
            geometry: StreamGeometry {
                initial_term_id: 7,
                term_length: i64::from(TERM),
                stream_id: 1001,
            },
            checksum,
        };
        let found = walk(&path, &range).expect("readable");
        std::fs::remove_file(&path).expect("removable");
        found
    }

    #[test]
    fn frames_are_walked_over_padding_to_the_unwritten_part() {
        let mut bytes = frame(0, 100, TYPE_DATA, None);
        bytes.extend(frame(128, TERM as usize - 128, TYPE_PAD, None));
        bytes.extend(frame(i64::from(TERM), 64, TYPE_DATA, None));
        bytes.resize(2 * TERM as usize, 0);
        let found = walk_bytes("padding", &bytes, None);
        assert_eq!((found.frames, found.padding_frames), (3, 1));
        assert_eq!(found.end_offset, u64::from(TERM) + 64);
        assert_eq!(found.end, "unwritten");
        assert_eq!(found.last_frame_offset, i64::from(TERM));
    }

    #[test]
    fn failing_frames_at_the_end_are_told_from_those_within() {
        let sum = Some(Checksum::Crc32c);
        let mut bytes = Vec::new();
        for index in 0..6 {
            bytes.extend(frame(index * 64, 64, TYPE_DATA, sum));
        }
        bytes[64 + 40] ^= 1;
        bytes[4 * 64 + 40] ^= 1;
        bytes[5 * 64 + 40] ^= 1;
        let found = walk_bytes("failing", &bytes, sum);
        assert_eq!((found.checksum_passes, found.checksum_failures), (3, 3));
        assert_eq!(found.failed_offsets, [64, 256, 320]);
        assert_eq!(found.failed_tail_offset, 256);
        assert_eq!(found.end, "file-end");
    }

    #[test]
    fn a_frame_that_is_not_where_it_says_ends_the_walk() {
        let mut bytes = frame(0, 64, TYPE_DATA, None);
        bytes.extend(frame(96, 64, TYPE_DATA, None));
        let found = walk_bytes("misplaced", &bytes, None);
        assert_eq!((found.end.as_str(), found.end_offset), ("invalid", 64));
        assert_eq!(
            found.problem.as_deref(),
            Some("not a frame of this place: term offset 96, expected 64")
        );
    }

    #[test]
    fn a_frame_cut_off_by_the_end_of_the_file_is_not_whole() {
        let mut bytes = frame(0, 64, TYPE_DATA, None);
        bytes.extend(&frame(64, 1000, TYPE_DATA, None)[..500]);
        let found = walk_bytes("cut", &bytes, None);
        assert_eq!((found.end.as_str(), found.end_offset), ("invalid", 64));
    }
}
