//! Opens segment files for writing.

use super::failure::Failure;
use crate::no_follow;
use nix::errno::Errno;
use nix::unistd::{Whence, lseek};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What may already stand at the path of a segment that is about to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Nothing: the recording has just filled the segment before.
    Refused,
    /// A file of zeros, of an empty recording or one that stopped right at a segment's start.
    Blank,
    /// The segment that an extended recording continues in.
    Required,
}

/// Open the segment file at `path` for writing, with its full length set (sparse).
///
/// A file that holds data is never shortened, overwritten or taken for a new one.
pub fn open_for_writing(
    path: &Path,
    segment_length: u64,
    existing: Existing,
) -> Result<File, Failure> {
    if existing == Existing::Required {
        return open_existing(path, segment_length);
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    match no_follow::open(&mut options, path) {
        Ok(file) => match file.set_len(segment_length) {
            Ok(()) => Ok(file),
            Err(error) => {
                // Ours, empty, and in the way of the next attempt; the first error is what counts.
                let _ = std::fs::remove_file(path);
                Err(Failure::storage(
                    "set the length of segment file",
                    path,
                    &error,
                ))
            }
        },
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if existing == Existing::Blank {
                let file = open_existing(path, segment_length)?;
                if is_blank(&file, segment_length)
                    .map_err(|error| Failure::storage("read segment file", path, &error))?
                {
                    return Ok(file);
                }
            }
            Err(Failure::generic(format!(
                "segment file already exists: {}, and is not overwritten; move it away if it does \
                 not belong to this archive",
                path.display()
            )))
        }
        Err(error) => Err(Failure::storage("create segment file", path, &error)),
    }
}

fn open_existing(path: &Path, segment_length: u64) -> Result<File, Failure> {
    let file = no_follow::open(OpenOptions::new().read(true).write(true), path)
        .map_err(|error| Failure::storage("open segment file", path, &error))?;
    let length = file
        .metadata()
        .map_err(|error| Failure::storage("read the length of segment file", path, &error))?
        .len();
    if length > segment_length {
        return Err(Failure::generic(format!(
            "segment file {} is {length} bytes long, the recording's segments are \
             {segment_length}: not written to",
            path.display()
        )));
    }
    if length < segment_length {
        file.set_len(segment_length)
            .map_err(|error| Failure::storage("set the length of segment file", path, &error))?;
    }
    Ok(file)
}

/// Whether a file holds zeros only. Holes are not read: this is a recorder's thread.
fn is_blank(file: &File, length: u64) -> io::Result<bool> {
    let mut buffer = vec![0u8; 1 << 16];
    let mut offset = 0;
    while let Some(data) = next_data(file, offset)?.filter(|&data| data < length) {
        offset = data;
        let count = file.read_at(&mut buffer, offset)?;
        if count == 0 {
            break;
        }
        if buffer.iter().take(count).any(|&byte| byte != 0) {
            return Ok(false);
        }
        offset += count as u64;
    }
    Ok(true)
}

/// Offset of the first byte at or after `offset` that is not in a hole of the file.
fn next_data(file: &File, offset: u64) -> io::Result<Option<u64>> {
    let begin = i64::try_from(offset).map_err(io::Error::other)?;
    match lseek(file, begin, Whence::SeekData) {
        Ok(data) => Ok(u64::try_from(data).ok()),
        Err(Errno::ENXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::scratch_dir::ScratchDir;

    /// Bytes that this thread has read.
    fn bytes_read() -> u64 {
        let counts = std::fs::read_to_string("/proc/thread-self/io").expect("counts of the thread");
        let line = counts.lines().find_map(|line| line.strip_prefix("rchar: "));
        line.and_then(|count| count.parse().ok()).expect("a number")
    }

    #[test]
    fn a_blank_file_is_recognised_without_reading_its_holes() {
        const LENGTH: u64 = 1 << 30;
        let dir = ScratchDir::new();
        let path = dir.path().join("0-0.rec");
        File::create(&path)
            .and_then(|file| file.set_len(LENGTH))
            .expect("a sparse file");
        let before = bytes_read();
        let file = open_for_writing(&path, LENGTH, Existing::Blank).expect("the blank file");
        assert!(bytes_read() - before < 1 << 20);
        file.write_all_at(&[0; 4096], LENGTH / 2).expect("zeros");
        open_for_writing(&path, LENGTH, Existing::Blank).expect("still blank");
        file.write_all_at(&[1], LENGTH - 1).expect("a byte");
        assert!(open_for_writing(&path, LENGTH, Existing::Blank).is_err());
    }
}
