//! Reads one recording forward out of its segment files.
//!
//! With plain reads, not a memory map: a file that is cut short while it is replayed must end that
//! replay, not the process.

use super::failure::Failure;
use crate::frame::HEADER_LENGTH;
use crate::geometry::{segment_base_position, segment_path};
use crate::segment::open_regular;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
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
        let mut filled = 0;
        while let Some(rest) = target.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Failure::storage("read segment file", &self.path, &error));
                }
            }
        }
        Ok(filled)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::scratch_dir::ScratchDir;

    const TERM: i64 = 65_536;

    fn reader(dir: &ScratchDir, start: i64, position: i64) -> SegmentReader {
        SegmentReader::new(dir.path().to_owned(), 3, start, position, TERM, 2 * TERM)
    }

    fn numbered(length: usize, seed: u8) -> Vec<u8> {
        (0..length).map(|index| (index / 32) as u8 ^ seed).collect()
    }

    #[test]
    fn reads_end_at_the_term_and_go_on_in_the_next_segment() {
        let dir = ScratchDir::new();
        let (first, second) = (numbered(131_072, 1), numbered(131_072, 2));
        dir.write("3-0.rec", &first);
        dir.write("3-131072.rec", &second);
        let mut reader = reader(&dir, 0, TERM - 64);
        let mut buffer = vec![0; 100_000];
        assert_eq!(reader.read(&mut buffer, i64::MAX).expect("read"), 64);
        assert_eq!(buffer[..64], first[65_472..65_536]);
        reader.advance(64);
        assert_eq!(reader.read(&mut buffer, i64::MAX).expect("read"), 65_536);
        assert_eq!(buffer[..65_536], first[65_536..]);
        reader.advance(65_536);
        assert_eq!(reader.read(&mut buffer, 96).expect("read"), 96);
        assert_eq!(buffer[..96], second[..96]);
    }

    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        let dir = ScratchDir::new();
        let pipe = dir.path().join("3-0.rec");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("make a pipe");
        let mut reader = reader(&dir, 0, 0);
        let failure = reader.read(&mut [0; 64], 64).expect_err("no file");
        assert!(failure.message.contains("not a regular file"), "{failure}");
    }

    #[test]
    fn a_start_within_a_term_reads_from_the_segment_of_that_terms_base() {
        let dir = ScratchDir::new();
        let bytes = numbered(131_072, 5);
        dir.write("3-65536.rec", &bytes);
        let mut reader = reader(&dir, 98_304, 131_072);
        let mut buffer = [0; 32];
        assert_eq!(reader.read(&mut buffer, 32).expect("read"), 32);
        assert_eq!(buffer, bytes[65_536..65_568]);
    }

    #[test]
    fn a_missing_segment_is_waited_for_at_first_and_an_error_later() {
        let dir = ScratchDir::new();
        let mut reader = reader(&dir, 0, 0);
        assert!(!reader.try_open().expect("not there"));
        dir.write("3-0.rec", &numbered(131_072, 1));
        assert!(reader.try_open().expect("there"));
        reader.advance(131_072);
        let failure = reader
            .read(&mut [0; 32], 32)
            .expect_err("no second segment");
        assert!(failure.message.contains("3-131072.rec"), "{failure}");
    }

    #[test]
    fn a_file_cut_short_gives_what_is_left() {
        let dir = ScratchDir::new();
        dir.write("3-0.rec", &numbered(100, 1));
        let mut reader = reader(&dir, 0, 64);
        assert_eq!(reader.read(&mut [0; 96], 96).expect("read"), 36);
        assert!(reader.read_header().is_ok());
        reader.advance(32);
        assert!(
            reader
                .read_header()
                .expect_err("short")
                .message
                .contains("position 96")
        );
    }
}
