//! A window of bytes that moves forward through the segment files of one recording.
//!
//! Segments are read with positioned reads into a buffer, not mapped: the archive may
//! be running, and truncating or purging a recording shortens or removes files under its readers.
//! On a map that is a SIGBUS that takes the whole process down; here it is an error that names
//! the file. The extra copy stays in the processor's cache, as the window is small.
//!
//! Segments in remote storage are not local files. Then the owner of the window passes their bytes
//! in pieces, and the window reports when it needs the next one.

use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::recording::Recording;
use crate::errors::Result;
use crate::segment::open_regular;

/// Bytes read at once. A data frame is at most 64 KiB (the largest MTU), so it fits many times.
const WINDOW_BYTES: usize = 512 * 1024;

/// Attempts to lock a file that another process has locked, and the pause between them: 1 s in all.
const LOCK_ATTEMPTS: u32 = 1000;
const LOCK_RETRY: Duration = Duration::from_millis(1);

/// Prevent retention from deleting an open segment file, where the file system supports locks.
///
/// Retention probes for readers with an exclusive lock that it holds for milliseconds: wait for
/// that. Any longer lock is not retention's, so read without one.
fn lock_shared(file: &File) {
    for _ in 0..LOCK_ATTEMPTS {
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY),
            Ok(()) | Err(TryLockError::Error(_)) => return,
        }
    }
}

struct Segment {
    base: i64,
    file: File,
}

pub struct Window {
    recording: Recording,
    /// Nothing from this position on is ever read: it may not have been written yet.
    limit: i64,
    /// Whether bytes are given rather than read; then the buffer holds no more than these.
    given: bool,
    segment: Option<Segment>,
    buffer: Vec<u8>,
    start: i64,
    filled: usize,
}

impl Window {
    /// A window that reads segment files.
    pub fn new(recording: Recording, limit: i64) -> Self {
        Self {
            recording,
            limit,
            given: false,
            segment: None,
            buffer: Vec::new(),
            start: 0,
            filled: 0,
        }
    }

    /// A window that is given the bytes from `start` on.
    pub fn given(recording: Recording, start: i64, limit: i64) -> Self {
        Self {
            given: true,
            start,
            ..Self::new(recording, limit)
        }
    }

    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Whether there are `length` bytes at `position`, or can be read. If not, more have to be
    /// given first.
    #[inline]
    pub fn has(&self, position: i64, length: usize) -> bool {
        !self.given || position + length as i64 <= self.end()
    }

    /// Bytes from `position` on: at least `length`, or an error that names what is missing.
    ///
    /// The range must lie below the limit and must not cross the end of a segment.
    #[inline]
    pub fn bytes(&mut self, position: i64, length: usize) -> Result<&[u8]> {
        let mut at = position.wrapping_sub(self.start) as usize;
        if at > self.filled || self.filled - at < length {
            self.fill(position, length)?;
            at = 0;
        }
        Ok(self.buffer.get(at..self.filled).unwrap_or_default())
    }

    /// Position of the first byte that has not been given.
    pub fn end(&self) -> i64 {
        self.start + self.filled as i64
    }

    /// Take the bytes from `end` on; those before `position` are not needed any more.
    pub fn give(&mut self, position: i64, bytes: &[u8]) {
        let done = usize::try_from(position - self.start).unwrap_or(0);
        if done < self.filled {
            self.buffer.drain(..done);
            self.buffer.extend_from_slice(bytes);
            self.start = position;
        } else {
            // The position may be higher: padding is skipped without being read.
            let passed = (done - self.filled).min(bytes.len());
            self.start = self.end() + passed as i64;
            self.buffer.clear();
            self.buffer
                .extend_from_slice(bytes.get(passed..).unwrap_or_default());
        }
        self.filled = self.buffer.len();
    }

    #[cold]
    fn fill(&mut self, position: i64, length: usize) -> Result<()> {
        let base = self.recording.segment_base(position);
        if self
            .segment
            .as_ref()
            .is_none_or(|segment| segment.base != base)
        {
            let file = open_regular(&self.recording.segment_path(base)).map_err(|error| {
                self.recording
                    .error(position, &format!("cannot open segment file: {error}"))
            })?;
            // Close the preceding segment only now: one of the two is always locked.
            lock_shared(&file);
            self.segment = Some(Segment { base, file });
        }
        let Some(segment) = &self.segment else {
            return Ok(());
        };
        let end = self.limit.min(base + self.recording.segment_length);
        let available = usize::try_from(end - position).unwrap_or(0);
        let wanted = available.min(WINDOW_BYTES.max(length));
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        self.start = position;
        self.filled = 0;
        while self.filled < wanted {
            let offset = (position - base) as u64 + self.filled as u64;
            let rest = self.buffer.get_mut(self.filled..wanted).unwrap_or_default();
            match segment.file.read_at(rest, offset) {
                Ok(0) => break,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let what = format!("cannot read segment file: {error}");
                    return Err(self.recording.error(position, &what));
                }
            }
        }
        if self.filled < length {
            let what = format!(
                "segment file ends at offset {}, {length} bytes are needed and the recording \
                 reaches position {}; was it truncated or is the file incomplete?",
                position - base + self.filled as i64,
                self.limit
            );
            return Err(self.recording.error(position, &what));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_reader_that_begins_while_it_is_looked_for_is_seen() {
        let path = std::env::temp_dir().join(format!("aerotape-window-{}.rec", std::process::id()));
        let prober = File::create(&path).expect("make a file");
        let reader = File::open(&path).expect("open the file");
        std::fs::remove_file(&path).expect("remove the file");
        prober.try_lock().expect("no reader");
        let beginning = thread::spawn(move || {
            lock_shared(&reader);
            reader
        });
        thread::sleep(Duration::from_millis(20));
        prober.unlock().expect("unlock");
        let _reader = beginning.join().expect("no panic");
        assert!(prober.try_lock().is_err());
    }
}
