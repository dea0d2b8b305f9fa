//! Reading a segment file front to back.

use std::fs::File;
use std::io;

use super::progress::Progress;
use super::read_up_to;
use crate::checksum::Checksum;
use crate::frame::HEADER_LENGTH;

/// Small enough to stay in the cache of one processor.
const READ_LENGTH: usize = 512 << 10;

/// Reads a file front to back in large pieces, handing out any run of bytes as one slice.
pub struct Reader<'a> {
    file: &'a File,
    limit: u64,
    buffer: Vec<u8>,
    begin: u64,
    filled: usize,
    progress: Option<&'a Progress>,
}

impl<'a> Reader<'a> {
    pub fn new(file: &'a File, limit: u64) -> Self {
        Self {
            file,
            limit,
            buffer: Vec::new(),
            begin: 0,
            filled: 0,
            progress: None,
        }
    }

    /// Count the bytes that are read, and fail when the work is cancelled.
    pub fn with_progress(mut self, progress: &'a Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Return `length` bytes at `offset`, fewer only where the limit or the file ends.
    #[inline(always)]
    pub fn at(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        let end = offset + length as u64;
        if offset < self.begin || end > self.begin + self.filled as u64 {
            self.fill(offset, length)?;
        }
        let from = ((offset - self.begin) as usize).min(self.filled);
        let to = (from + length).min(self.filled);
        Ok(self.buffer.get(from..to).unwrap_or_default())
    }

    /// Return the bytes that the checksum of a frame of `aligned` bytes is of; `None` when the file
    /// ends within it, or it is longer than any data frame: a damaged length must not cost memory.
    pub fn body(&mut self, offset: u64, aligned: usize) -> io::Result<Option<&[u8]>> {
        if aligned > READ_LENGTH {
            return Ok(None);
        }
        let frame = self.at(offset, aligned)?;
        let is_whole = frame.len() == aligned;
        Ok(frame.get(HEADER_LENGTH..).filter(|_| is_whole))
    }

    /// Compute the checksum of a frame; `None` as for `body`.
    pub fn checksum(
        &mut self,
        checksum: Checksum,
        offset: u64,
        aligned: usize,
    ) -> io::Result<Option<i32>> {
        let body = self.body(offset, aligned)?;
        Ok(body.map(|bytes| checksum.compute(bytes)))
    }

    fn fill(&mut self, offset: u64, length: usize) -> io::Result<()> {
        let left = usize::try_from(self.limit.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = length.max(READ_LENGTH).min(left);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        self.begin = offset;
        self.filled = 0;
        if self.progress.is_some_and(Progress::is_cancelled) {
            // Not `Interrupted`, which is for trying again.
            return Err(io::Error::other("cancelled"));
        }
        let place = self.buffer.get_mut(..wanted).unwrap_or_default();
        self.filled = read_up_to(self.file, place, offset)?;
        if let Some(progress) = self.progress {
            progress.add(self.filled);
        }
        Ok(())
    }
}
