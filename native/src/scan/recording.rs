//! What of a recording's descriptor tells where a position lies on disk and in which term.

use std::path::PathBuf;

use crate::errors::Error;
use crate::frame::segment_base_position;

/// Smallest and largest term and segment length in bytes (64 KiB and 1 GiB).
const LENGTHS: std::ops::RangeInclusive<i64> = 64 * 1024..=1024 * 1024 * 1024;

/// The fields of a recording descriptor that a scan needs.
#[derive(Clone, Debug)]
pub struct Recording {
    pub archive_dir: PathBuf,
    pub recording_id: i64,
    pub start_position: i64,
    pub term_length: i64,
    pub segment_length: i64,
    pub initial_term_id: i32,
    pub session_id: i32,
    pub stream_id: i32,
}

impl Recording {
    /// Refuse lengths and positions that no Aeron recording can have.
    pub fn check(&self) -> Result<(), String> {
        let id = self.recording_id;
        for (name, length) in [
            ("term length", self.term_length),
            ("segment length", self.segment_length),
        ] {
            if !LENGTHS.contains(&length) || length.count_ones() != 1 {
                return Err(format!(
                    "recording {id}: {name} {length} is not a power of two from 64 KiB to 1 GiB"
                ));
            }
        }
        if self.segment_length < self.term_length {
            return Err(format!(
                "recording {id}: segment length {} is less than term length {}",
                self.segment_length, self.term_length
            ));
        }
        if self.start_position < 0 || self.start_position % 32 != 0 {
            return Err(format!(
                "recording {id}: start position {} is not a frame boundary",
                self.start_position
            ));
        }
        Ok(())
    }

    /// Position of the first byte of the segment file that holds `position`.
    #[inline]
    pub fn segment_base(&self, position: i64) -> i64 {
        segment_base_position(
            self.start_position,
            position,
            self.term_length,
            self.segment_length,
        )
    }

    /// Path of the segment file that begins at `base`: `<recordingId>-<segmentBasePosition>.rec`.
    pub fn segment_path(&self, base: i64) -> PathBuf {
        self.archive_dir
            .join(format!("{}-{base}.rec", self.recording_id))
    }

    /// Position of the first byte of the term that holds `position`.
    #[inline]
    pub fn term_base(&self, position: i64) -> i64 {
        position & !(self.term_length - 1)
    }

    #[inline]
    pub fn term_offset(&self, position: i64) -> i32 {
        (position & (self.term_length - 1)) as i32
    }

    /// Term ids count on from the initial one and wrap as 32-bit integers.
    #[inline]
    pub fn term_id(&self, position: i64) -> i32 {
        self.initial_term_id
            .wrapping_add((position >> self.term_length.trailing_zeros()) as i32)
    }

    /// An error that names the recording, the segment file, the offset in it and the position.
    pub fn error(&self, position: i64, what: &str) -> Error {
        let base = self.segment_base(position);
        Error::Segment {
            path: self.segment_path(base).display().to_string(),
            offset: position - base,
            position,
            message: format!("recording {}: {what}", self.recording_id),
        }
    }
}
