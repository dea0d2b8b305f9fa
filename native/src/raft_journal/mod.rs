//! Raft journals as Zeebe writes them: records scanned without their payloads, segments verified,
//! records of recordings decoded into columns.
//!
//! `record` has the layout of a record and of the raft entry in it; segment descriptors are read
//! by Python (`codecs/raft/descriptor.py`), which also encodes and decodes single records. Files
//! are only read.

mod entry;
mod record;
mod rows;
mod scan;
mod verify;

use pyo3::prelude::*;

/// A place where a journal is not as it must be: offset, index, problem, why.
pub type Finding = (u64, u64, &'static str, String);

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<scan::RaftRecords>()?;
    module.add_class::<verify::RaftSegmentCheck>()?;
    module.add_function(wrap_pyfunction!(scan::scan_raft_records, module)?)?;
    module.add_function(wrap_pyfunction!(verify::verify_raft_segments, module)?)?;
    module.add_function(wrap_pyfunction!(rows::raft_record_schema, module)?)?;
    module.add_function(wrap_pyfunction!(rows::decode_raft_records, module)?)
}
