//! `SegmentScan`: a scan as Python sees it.

use std::sync::Mutex;

use crate::arrow_capsules::{ArrowRecordBatch, ArrowSchema};
use arrow_schema::SchemaRef;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::detached;
use aerotape_format::checksum::Checksum;
use aerotape_format::scan::batches::Scan;
use aerotape_format::scan::columns::{BatchLimits, COLUMNS, Column, Mode, schema};
use aerotape_format::scan::recording::RecordingRange;
use aerotape_format::scan::walk::{Range, Walk};

const MAX_BATCH_BYTES: usize = 1 << 30;

/// What a tuple of `next_messages` is made from.
const TUPLE_COLUMNS: [Column; 7] = [
    Column::Position,
    Column::EndPosition,
    Column::TermId,
    Column::TermOffset,
    Column::Flags,
    Column::ReservedValue,
    Column::Payload,
];

#[pyclass(module = "aerotape._native", frozen)]
pub struct SegmentScan {
    columns: Vec<Column>,
    schema: SchemaRef,
    scan: Mutex<Scan>,
}

impl SegmentScan {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut Scan) -> T + Send,
    ) -> PyResult<T> {
        detached(py, &self.scan, "scan", run)
    }
}

#[pymethods]
impl SegmentScan {
    #[new]
    #[pyo3(signature = (
        range, *, columns = None, checksum = "none", batch_rows = 65_536, batch_bytes = 8 << 20,
        mode = "FAILFAST", given = false
    ))]
    fn new(
        range: RecordingRange,
        columns: Option<Vec<String>>,
        checksum: &str,
        batch_rows: usize,
        batch_bytes: usize,
        mode: &str,
        given: bool,
    ) -> PyResult<Self> {
        let (recording, range) = range.check()?;
        if batch_rows == 0 || batch_bytes == 0 || batch_bytes > MAX_BATCH_BYTES {
            return Err(PyValueError::new_err(format!(
                "batch_rows must be at least 1 and batch_bytes from 1 to {MAX_BATCH_BYTES}"
            )));
        }
        let Range {
            from, to, limit, ..
        } = range;
        if from < 0 || from > to {
            return Err(PyValueError::new_err(format!(
                "positions {from} to {to} are not a range"
            )));
        }
        let mode = Mode::parse(mode).map_err(PyValueError::new_err)?;
        let columns = match columns {
            None => COLUMNS
                .iter()
                .map(|(_, column)| *column)
                .filter(|column| *column != Column::Corrupt || mode == Mode::Permissive)
                .collect(),
            Some(names) => parse_columns(&names)?,
        };
        let begin = if given { Walk::given } else { Walk::new };
        let walk = begin(recording, range, Checksum::parse(checksum)?);
        Ok(Self {
            schema: schema(&columns, mode),
            columns,
            scan: Mutex::new(Scan {
                walk,
                limits: BatchLimits {
                    rows: batch_rows,
                    bytes: batch_bytes,
                },
                mode,
                to: to.min(limit),
                rows: 0,
                dropped_messages: 0,
                unfinished: None,
                refused: None,
                failure: None,
            }),
        })
    }

    #[getter]
    fn wanted(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.with(py, |scan| scan.walk.wanted())
    }

    fn give(&self, py: Python<'_>, data: PyBackedBytes) -> PyResult<()> {
        self.with(py, |scan| {
            if scan.walk.wanted().is_some() {
                scan.walk.give(&data);
                return Ok(());
            }
            Err(())
        })?
        .map_err(|()| PyValueError::new_err("no bytes are wanted"))
    }

    fn refuse(&self, py: Python<'_>, reason: &str) -> PyResult<()> {
        self.with(py, |scan| {
            let position = scan.walk.position();
            scan.refused = Some(scan.walk.recording().error(position, reason));
        })
    }

    #[getter]
    fn schema(&self) -> ArrowSchema {
        ArrowSchema(self.schema.clone())
    }

    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<ArrowRecordBatch>> {
        let batch = self.with(py, |scan| {
            let Some(messages) = scan.next(&self.columns)? else {
                return Ok(None);
            };
            messages
                .into_batch(scan.walk.recording(), &self.columns, self.schema.clone())
                .map(Some)
                .map_err(|error| {
                    scan.walk
                        .recording()
                        .error(scan.walk.position(), &error.to_string())
                })
        })??;
        Ok(batch.map(ArrowRecordBatch))
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "each column has a value for each row, and `offsets` one more"
    )]
    fn next_messages<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let taken = self.with(py, |scan| {
            (scan.mode != Mode::Permissive).then(|| scan.next(&TUPLE_COLUMNS))
        })?;
        let Some(messages) = taken.ok_or_else(|| {
            PyValueError::new_err(
                "mode PERMISSIVE requires batches: tuples have no column for the error",
            )
        })??
        else {
            return Ok(None);
        };
        let list = PyList::empty(py);
        for row in 0..messages.rows {
            let begin = messages.offsets[row] as usize;
            let end = messages.offsets[row + 1] as usize;
            list.append(PyTuple::new(
                py,
                [
                    messages.position[row].into_pyobject(py)?.into_any(),
                    messages.end_position[row].into_pyobject(py)?.into_any(),
                    messages.term_id[row].into_pyobject(py)?.into_any(),
                    messages.term_offset[row].into_pyobject(py)?.into_any(),
                    messages.flags[row].into_pyobject(py)?.into_any(),
                    messages.reserved_value[row].into_pyobject(py)?.into_any(),
                    PyBytes::new(py, &messages.payload[begin..end]).into_any(),
                ],
            )?)?;
        }
        Ok(Some(list))
    }

    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |scan| scan.walk.position())
    }

    #[getter]
    fn rows(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |scan| scan.rows)
    }

    #[getter]
    fn dropped_messages(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |scan| scan.dropped_messages)
    }

    #[getter]
    fn skipped_fragments(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |scan| scan.walk.skipped_fragments())
    }

    #[getter]
    fn unfinished_fragments(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |scan| scan.walk.unfinished_fragments())
    }
}

fn parse_columns(names: &[String]) -> PyResult<Vec<Column>> {
    let known = || COLUMNS.map(|(name, _)| name).join(", ");
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let Some(column) = Column::parse(name) else {
            return Err(PyValueError::new_err(format!(
                "unknown column {name:?}: there are {}",
                known()
            )));
        };
        if columns.contains(&column) {
            return Err(PyValueError::new_err(format!(
                "column {name:?} is named twice"
            )));
        }
        columns.push(column);
    }
    if columns.is_empty() {
        return Err(PyValueError::new_err(format!(
            "name at least one column of {}",
            known()
        )));
    }
    Ok(columns)
}
