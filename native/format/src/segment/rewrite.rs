//! Giving checksums to the frames of segment files, several files at once.
//!
//! A checksum stands in place of a frame's session id. Frames are read up to the first
//! place where nothing was written; only runs of bytes in which a checksum changes are written.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::progress::Progress;
use crate::checksum::Checksum;
use crate::frame::{FrameHeader, HEADER_LENGTH, SESSION_ID_OFFSET, TYPE_DATA};
use crate::no_follow;

const WINDOW_LENGTH: usize = 1 << 20;

/// A segment file to go through, from `start_offset` on; `session_id` is that of its recording.
#[derive(Debug)]
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct RewriteTask {
    pub path: PathBuf,
    pub start_offset: u64,
    pub session_id: i32,
    pub max_frame_length: i32,
}

/// What was done to a segment file; offsets are bytes from its start.
#[cfg_attr(
    feature = "python",
    pyo3::pyclass(frozen, get_all, module = "aerotape._native")
)]
#[derive(Debug, Default)]
pub struct RewrittenSegment {
    pub frames: u64,
    pub changed: u64,
    pub changed_kind: u64,
    pub without: u64,
    pub end_offset: u64,
    pub problem: Option<String>,
    pub error: Option<String>,
}

/// Put checksums into the data frames of a segment file; with `dry_run` only count.
pub fn rewrite(
    task: &RewriteTask,
    checksum: Checksum,
    dry_run: bool,
    progress: &Progress,
) -> RewrittenSegment {
    let mut result = RewrittenSegment {
        end_offset: task.start_offset,
        ..RewrittenSegment::default()
    };
    if let Err(error) = result.run(task, checksum, dry_run, progress) {
        result.error = Some(error.to_string());
    }
    result
}

impl RewrittenSegment {
    fn run(
        &mut self,
        task: &RewriteTask,
        checksum: Checksum,
        dry_run: bool,
        progress: &Progress,
    ) -> io::Result<()> {
        let mut file = super::open_regular(&task.path)?;
        if !dry_run {
            file = no_follow::open(OpenOptions::new().read(true).write(true), &task.path)?;
        }
        let length = file.metadata()?.len();
        let mut window = Vec::new();
        while let Some(needed) = self.next_frame(&file, length, task)? {
            if progress.is_cancelled() {
                return Err(io::Error::other("cancelled"));
            }
            // At least one frame, however long it is.
            let begin = self.end_offset;
            let wanted = WINDOW_LENGTH.max(needed).min((length - begin) as usize);
            window.resize(wanted, 0);
            file.read_exact_at(&mut window, begin)?;
            let before = self.changed;
            self.go_through(&mut window, begin, checksum, task.session_id);
            if self.changed > before && !dry_run {
                let used = (self.end_offset - begin).min(wanted as u64) as usize;
                file.write_all_at(window.get(..used).unwrap_or_default(), begin)?;
            }
            progress.add((self.end_offset - begin) as usize);
        }
        if self.changed > 0 && !dry_run {
            file.sync_data()?;
        }
        Ok(())
    }

    /// Say how many bytes of the next frame must be in memory; `None` at the end of the frames.
    fn next_frame(
        &mut self,
        file: &File,
        length: u64,
        task: &RewriteTask,
    ) -> io::Result<Option<usize>> {
        if self.end_offset + HEADER_LENGTH as u64 > length {
            return Ok(None);
        }
        let mut bytes = [0u8; HEADER_LENGTH];
        file.read_exact_at(&mut bytes, self.end_offset)?;
        let Some(header) = FrameHeader::read(&bytes) else {
            return Ok(None);
        };
        if header.frame_length == 0 {
            return Ok(None);
        }
        let aligned = header.aligned_length();
        let is_data = header.frame_type == TYPE_DATA;
        let is_too_long = header.frame_length > task.max_frame_length
            || self.end_offset + aligned as u64 > length;
        if header.frame_length < HEADER_LENGTH as i32 || (is_data && is_too_long) {
            let length = header.frame_length;
            self.problem = Some(format!("a frame of {length} bytes cannot be there"));
            return Ok(None);
        }
        Ok(Some(if is_data { aligned } else { HEADER_LENGTH }))
    }

    /// Put checksums into the frames that are whole in `window`, which begins at `begin`.
    fn go_through(&mut self, window: &mut [u8], begin: u64, checksum: Checksum, session_id: i32) {
        loop {
            let at = (self.end_offset - begin) as usize;
            let rest = window.get_mut(at..).unwrap_or_default();
            let Some(header) = FrameHeader::read(rest) else {
                return;
            };
            let aligned = header.aligned_length();
            if header.frame_length < HEADER_LENGTH as i32 {
                return;
            }
            if header.frame_type == TYPE_DATA {
                let Some(body) = rest.get(HEADER_LENGTH..aligned) else {
                    return;
                };
                self.frames += 1;
                let sum = checksum.compute(body);
                if sum != header.session_id {
                    self.changed += 1;
                    if header.session_id == session_id {
                        self.without += 1;
                    } else if header.session_id == checksum.other().compute(body) {
                        self.changed_kind += 1;
                    }
                    if let Some(place) = rest.get_mut(SESSION_ID_OFFSET..SESSION_ID_OFFSET + 4) {
                        place.copy_from_slice(&sum.to_le_bytes());
                    }
                }
            }
            self.end_offset += aligned as u64;
        }
    }
}
