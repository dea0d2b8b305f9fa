//! Segment files looked at from outside a recording or a replay: after a crash, by a check, or
//! by an offline reader. Nothing here writes.
//!
//! Files are read with pread, not mapped: another process may cut a file short under us, which a
//! map would answer with SIGBUS.

pub mod walk;

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::checksum::Checksum;
use crate::errors::Error;
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
    if !term_length.is_power_of_two() {
        return Err(pyo3::exceptions::PyValueError::new_err(format!(
            "term length {term_length} is not a power of two"
        )));
    }
    let range = WalkRange {
        start_offset,
        limit,
        base_position,
        term_length,
        initial_term_id,
        stream_id,
        checksum: Checksum::parse(checksum)?,
    };
    py.detach(|| walk::walk(&path, &range).map_err(|error| Error::io(&path, &error)))
        .map_err(PyErr::from)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SegmentWalk>()?;
    module.add_function(wrap_pyfunction!(walk_segment, module)?)
}
