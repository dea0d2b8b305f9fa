//! The fields of a recording's descriptor that a scan needs.

use std::path::PathBuf;

use super::walk::Range;
use crate::errors::{Error, InvalidArgument};
use crate::geometry::{StreamGeometry, segment_base_position, segment_path};

/// Smallest and largest term and segment length in bytes (64 KiB and 1 GiB).
const LENGTHS: std::ops::RangeInclusive<i64> = 64 * 1024..=1024 * 1024 * 1024;

/// A range of a recording that has not been checked. Python passes
/// `aerotape.replay.offline.reader.RecordingRange`.
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct RecordingRange {
    pub archive_dir: PathBuf,
    pub recording_id: i64,
    pub start_position: i64,
    pub term_length: i64,
    pub segment_length: i64,
    pub initial_term_id: i32,
    pub session_id: i32,
    pub stream_id: i32,
    pub max_frame_length: i32,
    pub from_position: i64,
    pub to_position: i64,
    pub limit_position: i64,
    pub from_boundary: bool,
}

impl RecordingRange {
    /// The recording and the range, unless no Aeron recording can have such lengths and positions.
    pub fn check(self) -> Result<(Recording, Range), InvalidArgument> {
        let recording = Recording {
            archive_dir: self.archive_dir,
            recording_id: self.recording_id,
            start_position: self.start_position,
            segment_length: self.segment_length,
            session_id: self.session_id,
            geometry: StreamGeometry {
                initial_term_id: self.initial_term_id,
                term_length: self.term_length,
                stream_id: self.stream_id,
                max_frame_length: self.max_frame_length,
            },
        };
        recording.check().map_err(InvalidArgument)?;
        let range = Range {
            from: self.from_position,
            to: self.to_position,
            limit: self.limit_position,
            from_boundary: self.from_boundary,
        };
        Ok((recording, range))
    }
}

/// A recording and the directory of its segment files.
#[derive(Clone, Debug)]
pub struct Recording {
    pub archive_dir: PathBuf,
    pub recording_id: i64,
    pub start_position: i64,
    pub segment_length: i64,
    pub session_id: i32,
    pub geometry: StreamGeometry,
}

impl Recording {
    /// Refuse lengths and positions that no Aeron recording can have.
    fn check(&self) -> Result<(), String> {
        let id = self.recording_id;
        for (name, length) in [
            ("term length", self.geometry.term_length),
            ("segment length", self.segment_length),
        ] {
            if !LENGTHS.contains(&length) || length.count_ones() != 1 {
                return Err(format!(
                    "recording {id}: {name} {length} is not a power of two from 64 KiB to 1 GiB"
                ));
            }
        }
        if self.segment_length < self.geometry.term_length {
            return Err(format!(
                "recording {id}: segment length {} is less than term length {}",
                self.segment_length, self.geometry.term_length
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
            self.geometry.term_length,
            self.segment_length,
        )
    }

    /// Path of the segment file that begins at `base`.
    pub fn segment_path(&self, base: i64) -> PathBuf {
        segment_path(&self.archive_dir, self.recording_id, base)
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
