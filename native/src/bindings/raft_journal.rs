//! Raft journals scanned, verified and decoded for Python, with the interpreter released.

use aerotape_format::raft_journal::rows;
use aerotape_format::raft_journal::scan::{self, RaftRecords, RaftScan};
use aerotape_format::raft_journal::verify::{self, RaftSegmentCheck, RaftSegmentTask};
use aerotape_format::sbe::decoded::Malformed;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use super::parallel;
use super::sbe::{DecodedMessages, binary, for_python};
use crate::arrow_capsules::{ArrowArray, ArrowSchema};

/// See `aerotape/_native/`.
#[pyfunction]
pub fn scan_raft_records(py: Python<'_>, run: RaftScan) -> PyResult<RaftRecords> {
    Ok(py.detach(|| scan::scan(&run))?)
}

/// Check segments; results in the order of the tasks.
#[pyfunction]
#[pyo3(signature = (tasks, *, progress = None))]
pub fn verify_raft_segments(
    py: Python<'_>,
    tasks: Vec<RaftSegmentTask>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<RaftSegmentCheck>> {
    let found = parallel::run(py, tasks.len(), progress.as_ref(), |index, progress| {
        tasks.get(index).map(|task| verify::check(task, progress))
    })?;
    Ok(found.into_iter().flatten().collect())
}

/// See `aerotape/_native/`.
#[pyfunction]
#[pyo3(signature = (payloads, *, malformed))]
pub fn decode_raft_records(
    py: Python<'_>,
    payloads: ArrowArray,
    malformed: Malformed,
) -> PyResult<DecodedMessages> {
    let array = binary(&payloads)?;
    let decoded = py
        .detach(|| rows::decode(array, malformed))
        .map_err(|error| PyOverflowError::new_err(error.to_string()))?;
    Ok(for_python(decoded))
}

/// See `aerotape/_native/`.
#[pyfunction]
pub fn raft_record_schema() -> ArrowSchema {
    ArrowSchema(rows::schema())
}
