//! Reads one recording forward out of its segment files.
//!
//! With plain reads, not a memory map: a file that is cut short while it is replayed must end that
//! replay, not the process.

use super::failure::Failure;
use crate::frame::HEADER_LENGTH;
use crate::geometry::{segment_base_position, segment_path};
use crate::segment::{open_regular, read_up_to};
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// A place in a recording and the segment file that holds it.
pub struct SegmentReader {
    archive_dir: PathBuf,
    recording_id: i64,
    term_length: i64,
    segment_length: i64,
    base_position: i64,
    position: i64,
    path: PathBuf,
    file: Option<File>,
}

impl SegmentReader {
    /// A reader at `position` of a recording that begins at `start_position`; opens no file yet.
    pub fn new(
        archive_dir: PathBuf,
        recording_id: i64,
        start_position: i64,
        position: i64,
        term_length: i64,
        segment_length: i64,
    ) -> Self {
        let base_position =
            segment_base_position(start_position, position, term_length, segment_length);
        let path = segment_path(&archive_dir, recording_id, base_position);
        Self {
            archive_dir,
            recording_id,
            term_length,
            segment_length,
            base_position,
            position,
            path,
            file: None,
        }
    }

    /// Position of the next byte to read.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Open the current segment file; false while it does not exist.
    pub fn try_open(&mut self) -> Result<bool, Failure> {
        if self.file.is_some() {
            return Ok(true);
        }
        match open_regular(&self.path) {
            Ok(file) => {
                self.file = Some(file);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Failure::storage("open segment file", &self.path, &error)),
        }
    }

    /// Read at the current position up to `available` bytes, the end of the term, or a full
    /// `buffer`, opening the next segment file where the last one ended. Does not move on.
    ///
    /// Fewer bytes than that come back only where the file is shorter than it should be.
    pub fn read(&mut self, buffer: &mut [u8], available: i64) -> Result<usize, Failure> {
        if self.position - self.base_position >= self.segment_length {
            self.base_position += self.segment_length;
            self.path = segment_path(&self.archive_dir, self.recording_id, self.base_position);
            self.file = None;
        }
        if !self.try_open()? {
            return Err(Failure::generic(format!(
                "segment file not found: {}",
                self.place()
            )));
        }
        let length = self.readable_length(buffer.len(), available);
        let offset = (self.position - self.base_position) as u64;
        let (Some(file), Some(target)) = (&self.file, buffer.get_mut(..length)) else {
            return Ok(0);
        };
        read_up_to(file, target, offset)
            .map_err(|error| Failure::storage("read segment file", &self.path, &error))
    }

    /// How many bytes `read` will try for.
    pub fn readable_length(&self, buffer_length: usize, available: i64) -> usize {
        let in_term = self.term_length - (self.position & (self.term_length - 1));
        available.clamp(0, in_term).min(buffer_length as i64) as usize
    }

    /// Read the frame header at the current position.
    pub fn read_header(&mut self) -> Result<[u8; HEADER_LENGTH], Failure> {
        let mut header = [0; HEADER_LENGTH];
        let read = self.read(&mut header, HEADER_LENGTH as i64)?;
        if read < HEADER_LENGTH {
            return Err(Failure::generic(format!(
                "segment file ends before a frame header: {}",
                self.place()
            )));
        }
        Ok(header)
    }

    /// Move on by `length` bytes, at most to the end of the term.
    pub fn advance(&mut self, length: usize) {
        self.position += length as i64;
    }

    /// The position as the reference shows it.
    pub fn frame_position(&self) -> String {
        let offset = self.position - self.base_position;
        let term_offset = self.position & (self.term_length - 1);
        format!(
            "{} (segmentFilePosition={}, segmentOffset={}, termOffset={term_offset}, \
             frameOffset=0)",
            self.position,
            self.base_position,
            offset - term_offset
        )
    }

    /// Where the reader stands, for messages.
    pub fn place(&self) -> String {
        format!(
            "recording {}, position {}, file {}, offset {}",
            self.recording_id,
            self.position,
            self.path.display(),
            self.position - self.base_position
        )
    }
}
