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
mod first_frames;
mod listing;
pub mod parallel;
pub mod reader;
mod rewrite;
pub mod walk;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;

use crate::checksum::Checksum;
use crate::errors::Error;
use crate::geometry::StreamGeometry;
use walk::{SegmentWalk, WalkRange};

#[pyfunction]
#[pyo3(signature = (
    path, *, start_offset, limit, base_position, term_length, initial_term_id, stream_id,
    checksum = "none",
))]
#[allow(clippy::too_many_arguments)] // keyword arguments of the Python contract
fn walk_segment(
    py: Python<'_>,
    path: PathBuf,
    start_offset: u64,
    limit: u64,
    base_position: i64,
    term_length: u32,
    initial_term_id: i32,
    stream_id: i32,
    checksum: &str,
) -> PyResult<SegmentWalk> {
    validate_term_length(term_length)?;
    let range = WalkRange {
        start_offset,
        limit,
        base_position,
        geometry: StreamGeometry {
            initial_term_id,
            term_length: i64::from(term_length),
            stream_id,
        },
        checksum: Checksum::parse(checksum)?,
    };
    py.detach(|| walk::walk(&path, &range).map_err(|error| Error::io(&path, &error)))
        .map_err(PyErr::from)
}

fn validate_term_length(term_length: u32) -> PyResult<()> {
    if term_length.is_power_of_two() {
        return Ok(());
    }
    Err(pyo3::exceptions::PyValueError::new_err(format!(
        "term length {term_length} is not a power of two"
    )))
}

/// Open a segment file for reading. Something else of that name is refused: to open a pipe would
/// be to wait for its writer.
pub fn open_regular(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    File::open(path)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SegmentWalk>()?;
    module.add_class::<check::SegmentCheck>()?;
    module.add_class::<check::BadFrame>()?;
    module.add_class::<archive_tool_check::ReferenceCheck>()?;
    module.add_class::<rewrite::RewrittenSegment>()?;
    module.add_function(wrap_pyfunction!(walk_segment, module)?)?;
    module.add_function(wrap_pyfunction!(check::check_segments, module)?)?;
    module.add_function(wrap_pyfunction!(listing::list_segments, module)?)?;
    module.add_function(wrap_pyfunction!(first_frames::read_segment_heads, module)?)?;
    module.add_function(wrap_pyfunction!(
        archive_tool_check::reference_check,
        module
    )?)?;
    module.add_function(wrap_pyfunction!(rewrite::rewrite_checksums, module)?)
}
