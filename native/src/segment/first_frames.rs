//! The first frames of segment files, which show whether a file holds what its name says.
//!
//! Each of possibly thousands of files is checked with one short read before it is deleted. Python
//! interprets the bytes (`catalog/segment/placement.py`).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;

use crate::frame::{FRAME_ALIGNMENT, HEADER_LENGTH};

/// In so many bytes the first frame of a segment is looked for.
const LOOKED_AT: usize = 64 * 1024;

/// Error number or 0, whether it is a regular file, its length, and where in it which bytes are
/// the first that may be a frame's header: fewer than one has where there is none.
type Head = (i32, bool, u64, usize, Vec<u8>);

#[pyfunction]
pub fn read_segment_heads(py: Python<'_>, paths: Vec<PathBuf>) -> Vec<Head> {
    py.detach(|| paths.iter().map(|path| head(path)).collect())
}

fn head(path: &Path) -> Head {
    let failed = |error: io::Error| error.raw_os_error().unwrap_or(nix::libc::EIO);
    // Something else is not opened: a pipe would have us wait for its writer.
    let status = match fs::metadata(path) {
        Ok(status) if !status.is_file() => return (0, false, 0, 0, Vec::new()),
        Ok(status) => status,
        Err(error) => return (failed(error), false, 0, 0, Vec::new()),
    };
    match first_frame(path) {
        Ok((offset, bytes)) => (0, true, status.len(), offset, bytes),
        Err(error) => (failed(error), true, status.len(), 0, Vec::new()),
    }
}

fn first_frame(path: &Path) -> io::Result<(usize, Vec<u8>)> {
    let file = File::open(path)?;
    let mut data = vec![0; HEADER_LENGTH];
    fill(&file, &mut data)?;
    // A recording may begin within a term: its first file has a hole at the beginning.
    if data.iter().all(|&byte| byte == 0) {
        data.resize(LOOKED_AT, 0);
        fill(&file, &mut data)?;
    }
    let written = data.iter().position(|&byte| byte != 0);
    let offset = written.unwrap_or(data.len()) / FRAME_ALIGNMENT * FRAME_ALIGNMENT;
    data.drain(..offset);
    data.truncate(HEADER_LENGTH);
    Ok((offset, data))
}

/// Read from the file's beginning; where it ends, `data` does.
fn fill(file: &File, data: &mut Vec<u8>) -> io::Result<()> {
    let mut filled = 0;
    while let Some(rest) = data.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    data.truncate(filled);
    Ok(())
}
