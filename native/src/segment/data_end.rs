//! Where the written part of a file really ends: its last byte that is not zero.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

const CHUNK_LENGTH: usize = 1 << 20;

/// Return the offset after the last byte at or after `start` that is not zero; `start` if none.
///
/// Holes are skipped where the file system tells of them: segment files are mostly sparse.
pub fn find_data_end(path: &Path, start: u64) -> io::Result<u64> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut end = start;
    let mut offset = start;
    let mut chunk = vec![0u8; CHUNK_LENGTH];
    while offset < length {
        let (data, hole) = next_data(&file, offset, length);
        offset = data;
        while offset < hole {
            let wanted = usize::try_from(hole - offset).map_or(CHUNK_LENGTH, |n| n.min(CHUNK_LENGTH));
            let count = file.read_at(&mut chunk[..wanted], offset)?;
            if count == 0 {
                return Ok(end);
            }
            if let Some(last) = chunk[..count].iter().rposition(|&byte| byte != 0) {
                end = offset + last as u64 + 1;
            }
            offset += count as u64;
        }
    }
    Ok(end)
}

/// The next extent of data at or after `offset`, as [begin, end).
fn next_data(file: &File, offset: u64, length: u64) -> (u64, u64) {
    let seek = |whence| {
        let from = libc::off_t::try_from(offset).ok()?;
        // SAFETY: the descriptor is open for as long as `file` lives, and lseek touches no memory.
        let found = unsafe { libc::lseek(file.as_raw_fd(), from, whence) };
        u64::try_from(found).ok()
    };
    match seek(libc::SEEK_DATA) {
        Some(data) if data > offset => (data.min(length), data.min(length)),
        Some(data) => (data, seek(libc::SEEK_HOLE).unwrap_or(length).min(length)),
        None if io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO) => (length, length),
        // A file system that cannot tell: all of it counts as data.
        None => (offset, length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_byte_that_is_not_zero_is_found_across_holes() {
        let path = std::env::temp_dir().join(format!("data-end-{}", std::process::id()));
        let file = File::create(&path).expect("a file");
        file.set_len(8 << 20).expect("a length");
        assert_eq!(find_data_end(&path, 64).expect("readable"), 64);
        file.write_all_at(&[7], 100).expect("writable");
        file.write_all_at(&[7], (5 << 20) + 3).expect("writable");
        assert_eq!(find_data_end(&path, 0).expect("readable"), (5 << 20) + 4);
        assert_eq!(find_data_end(&path, (5 << 20) + 4).expect("readable"), (5 << 20) + 4);
        assert_eq!(find_data_end(&path, 9 << 20).expect("readable"), 9 << 20);
        std::fs::remove_file(&path).expect("removable");
    }
}
