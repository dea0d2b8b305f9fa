//! Segment files read outside of a recording or a replay: after a crash, by a check, or
//! by an offline reader. Only `rewrite` writes.
//!
//! There are three buffered readers: `reader` reads one file front to back, in pieces for several
//! threads; `scan/window.rs` moves through all files of a recording, also remote ones;
//! `worker/segment_reader.rs` reads straight into the buffer that a replay offers.
//!
//! Files are read with pread, not mapped: another process may cut a file short under us, which a
//! map would answer with SIGBUS. Nor would a map be faster: its page faults take longer than the
//! copy into a buffer that stays in the cache.

pub mod archive_tool_check;
pub mod check;
pub mod listing;
pub mod progress;
pub mod reader;
pub mod rewrite;
pub mod unchecked;
pub mod walk;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::checksum::Checksum;
use crate::errors::InvalidArgument;
use crate::geometry::StreamGeometry;
use walk::WalkRange;

/// A segment file to read.
#[derive(Debug)]
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct SegmentTask {
    pub path: PathBuf,
    /// Offset of the first frame in the file, bytes.
    pub start_offset: u64,
    /// Offset after the last frame that there should be.
    pub end_offset: u64,
    /// Offset up to which to look for frames after `end_offset`; none if it is not greater.
    pub limit: u64,
    pub base_position: i64,
    pub term_length: u32,
    pub initial_term_id: i32,
    pub stream_id: i32,
    pub max_frame_length: i32,
    /// Session id of the recording's last session.
    pub session_id: i32,
}

impl SegmentTask {
    /// The part of the file with the recording's frames.
    pub fn range(&self, checksum: Option<Checksum>) -> WalkRange {
        WalkRange {
            start_offset: self.start_offset,
            limit: self.end_offset,
            base_position: self.base_position,
            geometry: StreamGeometry {
                initial_term_id: self.initial_term_id,
                term_length: i64::from(self.term_length),
                stream_id: self.stream_id,
                max_frame_length: self.max_frame_length,
            },
            checksum,
            session_id: self.session_id,
        }
    }

    /// Whether another file continues where this one ends.
    pub fn is_followed_by(&self, next: &Self) -> bool {
        let end = self.base_position.wrapping_add(self.end_offset as i64);
        end == next.base_position.wrapping_add(next.start_offset as i64)
            && self.stream_id == next.stream_id
            && self.session_id == next.session_id
            && self.initial_term_id == next.initial_term_id
    }

    /// Refuse a term length that no stream has.
    pub fn check(&self) -> Result<(), InvalidArgument> {
        if self.term_length.is_power_of_two() {
            return Ok(());
        }
        Err(InvalidArgument(format!(
            "term length {} is not a power of two",
            self.term_length
        )))
    }
}

/// Open a segment file for reading. Something else of that name is refused: to open a pipe would
/// be to wait for its writer.
pub fn open_regular(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    File::open(path)
}

/// Fill `target` with the bytes at `offset`; fewer only where the file ends.
pub fn read_up_to(file: &File, target: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = target.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
