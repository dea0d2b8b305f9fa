//! Segment files read outside of a recording or a replay: after a crash, by a check, or
//! by an offline reader. Only `rewrite` writes.
//!
//! There are three buffered readers: `reader` reads one file front to back, in pieces for several
//! threads; `scan/window.rs` moves through all files of a recording, also remote ones;
//! `worker/segment_reader.rs` reads straight into the buffer that a replay offers.
//!
//! Files are read with pread, not mapped: another process may cut a file short under us, which a
//! map would answer with SIGBUS. Nor would a map be faster: its page faults take longer than the
//! copy into a buffer that stays in the cache.

mod archive_tool_check;
mod check;
mod listing;
pub mod parallel;
pub mod reader;
mod rewrite;
pub mod walk;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;

use crate::checksum::Checksum;
use crate::errors::Error;
use crate::geometry::StreamGeometry;
use archive_tool_check::ReferenceCheck;
use walk::{SegmentWalk, WalkRange};

/// A segment file to read, as Python passes it.
#[derive(Debug, FromPyObject)]
pub struct SegmentTask {
    pub path: PathBuf,
    /// Offset of the first frame in the file, bytes.
    pub start_offset: u64,
    /// Offset after the last frame that there should be.
    pub end_offset: u64,
    /// Offset up to which to look for frames after `end_offset`; none if it is not greater.
    pub limit: u64,
    pub base_position: i64,
    pub term_length: u32,
    pub initial_term_id: i32,
    pub stream_id: i32,
    pub max_frame_length: i32,
}

impl SegmentTask {
    /// The part of the file with the recording's frames.
    fn range(&self, checksum: Option<Checksum>) -> WalkRange {
        WalkRange {
            start_offset: self.start_offset,
            limit: self.end_offset,
            base_position: self.base_position,
            geometry: StreamGeometry {
                initial_term_id: self.initial_term_id,
                term_length: i64::from(self.term_length),
                stream_id: self.stream_id,
                max_frame_length: self.max_frame_length,
            },
            checksum,
        }
    }

    fn check(&self) -> PyResult<()> {
        if self.term_length.is_power_of_two() {
            return Ok(());
        }
        Err(pyo3::exceptions::PyValueError::new_err(format!(
            "term length {} is not a power of two",
            self.term_length
        )))
    }
}

/// Read the frames of one file with the interpreter released.
fn read_one<T: Send>(
    py: Python<'_>,
    task: &SegmentTask,
    checksum: &str,
    read: fn(&Path, &WalkRange) -> io::Result<T>,
) -> PyResult<T> {
    task.check()?;
    let range = task.range(Checksum::parse(checksum)?);
    py.detach(|| read(&task.path, &range).map_err(|error| Error::io(&task.path, &error)))
        .map_err(PyErr::from)
}

#[pyfunction]
#[pyo3(signature = (task, *, checksum = "none"))]
fn walk_segment(py: Python<'_>, task: SegmentTask, checksum: &str) -> PyResult<SegmentWalk> {
    read_one(py, &task, checksum, walk::walk)
}

/// Look at a segment file as ArchiveTool does.
#[pyfunction]
#[pyo3(signature = (task, *, checksum = "none"))]
fn reference_check(py: Python<'_>, task: SegmentTask, checksum: &str) -> PyResult<ReferenceCheck> {
    read_one(py, &task, checksum, archive_tool_check::run)
}

/// Open a segment file for reading. Something else of that name is refused: to open a pipe would
/// be to wait for its writer.
pub fn open_regular(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    File::open(path)
}

/// Fill `target` with the bytes at `offset`; fewer only where the file ends.
pub fn read_up_to(file: &File, target: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = target.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SegmentWalk>()?;
    module.add_class::<check::SegmentCheck>()?;
    module.add_class::<check::BadFrame>()?;
    module.add_class::<ReferenceCheck>()?;
    module.add_class::<rewrite::RewrittenSegment>()?;
    module.add_function(wrap_pyfunction!(walk_segment, module)?)?;
    module.add_function(wrap_pyfunction!(check::check_segments, module)?)?;
    module.add_function(wrap_pyfunction!(listing::list_segments, module)?)?;
    module.add_function(wrap_pyfunction!(reference_check, module)?)?;
    module.add_function(wrap_pyfunction!(rewrite::rewrite_checksums, module)?)
}
