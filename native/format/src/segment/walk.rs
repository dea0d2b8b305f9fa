//! Iterates over the frames of a segment file, up to the first bad one.

use std::io;
use std::path::Path;

use super::reader::Reader;
use super::unchecked::{Run, Stored};
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
    /// Session id of the recording's last session.
    pub session_id: i32,
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
#[cfg_attr(
    feature = "python",
    pyo3::pyclass(frozen, get_all, module = "aerotape._native")
)]
#[derive(Clone, Debug, Default)]
pub struct SegmentWalk {
    pub file_length: u64,
    pub end_offset: u64,
    pub end: String,
    pub problem: Option<String>,
    pub frames: u64,
    pub last_frame_offset: i64,
    pub last_frame_length: i64,
    pub last_frame_is_padding: bool,
    pub checksum_passes: u64,
    pub checksum_failures: u64,
    pub without_checksum: u64,
    pub last_frame_is_unchecked: bool,
    pub failed_offsets: Vec<u64>,
    pub failed_tail_offset: i64,
}

/// Walk the frames of a range of a segment file.
pub fn walk(path: &Path, range: &WalkRange) -> io::Result<SegmentWalk> {
    let file = super::open_regular(path)?;
    let file_length = file.metadata()?.len();
    let limit = range.limit.min(file_length);
    let mut reader = Reader::new(&file, limit);
    let mut strays = Strays::default();
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
        found.last_frame_is_unchecked = false;
        if header.is_padding() {
            found.failed_tail_offset = -1;
            continue;
        }
        if let Some(checksum) = range.checksum {
            let body = reader.body(offset, aligned)?;
            match Stored::of(header.session_id, checksum, body, range.session_id) {
                Stored::Right | Stored::OtherKind => found.checksum_passes += 1,
                Stored::SessionId => {
                    found.without_checksum += 1;
                    found.last_frame_is_unchecked = true;
                }
                Stored::Unknown => {
                    strays.add(header.session_id, &found);
                    found.checksum_failures += 1;
                    if found.failed_offsets.len() < LISTED_FAILURES {
                        found.failed_offsets.push(offset);
                    }
                    if found.failed_tail_offset < 0 {
                        found.failed_tail_offset = offset as i64;
                    }
                    continue;
                }
            }
            // What is left at the end is of the last session, whose session id is known.
            strays.end(header.session_id, &mut found);
            found.failed_tail_offset = -1;
        }
    }
    .to_owned();
    Ok(found)
}

/// The run of frames with an unknown value that the walk is in.
#[derive(Default)]
struct Strays {
    run: Run,
    listed: usize,
    /// The value of the last frame before it.
    before: Option<i32>,
}

impl Strays {
    /// Add a frame with an unknown value, before it is counted as a failure.
    fn add(&mut self, stored: i32, found: &SegmentWalk) {
        if self.run.frames == 0 || self.run.stored != stored {
            self.listed = found.failed_offsets.len();
            self.run = Run {
                stored,
                is_checksum: self.before == Some(stored),
                ..Run::default()
            };
            self.before = None;
        }
        self.run.frames += 1;
    }

    /// Take back the failures of a run that was a session's, at a frame with a known value.
    fn end(&mut self, stored: i32, found: &mut SegmentWalk) {
        self.run.is_checksum |= self.run.stored == stored;
        if self.run.is_session() {
            found.checksum_failures -= self.run.frames;
            found.without_checksum += self.run.frames;
            found.failed_offsets.truncate(self.listed);
        }
        self.run.frames = 0;
        self.before = Some(stored);
    }
}
