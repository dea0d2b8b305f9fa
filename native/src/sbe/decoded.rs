//! Payloads decoded into rows: the handling of malformed ones, and the result for Python.

use std::sync::Arc;

use arrow::array::{Array, BinaryArray, RecordBatch, UInt32Array};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3_arrow::{PyArray, PyRecordBatch};

/// How payloads that do not match their schema are handled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Decoding ends before the first one.
    Fail,
    Drop,
    /// They are rows of nulls.
    Null,
}

impl FromPyObject<'_, '_> for Malformed {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let name: String = object.extract()?;
        match name.as_str() {
            "fail" => Ok(Self::Fail),
            "drop" => Ok(Self::Drop),
            "null" => Ok(Self::Null),
            other => Err(PyValueError::new_err(format!(
                "malformed is {other:?}: use \"fail\", \"drop\" or \"null\""
            ))),
        }
    }
}

/// Which payloads have become rows of the batch.
#[derive(Default)]
pub struct Kept {
    pub rows: usize,
    /// Their indices; `None` as long as all have.
    chosen: Option<Vec<u32>>,
}

impl Kept {
    #[inline]
    pub fn keep(&mut self, payload: usize) {
        if let Some(chosen) = &mut self.chosen {
            chosen.push(payload as u32);
        }
        self.rows += 1;
    }

    pub fn drop(&mut self) {
        let rows = self.rows as u32;
        self.chosen.get_or_insert_with(|| (0..rows).collect());
    }
}

pub struct Decoded {
    pub batch: RecordBatch,
    pub kept: Kept,
    /// Indices of malformed payloads, and what is wrong with each.
    pub problems: Vec<(usize, String)>,
}

/// The same for Python: rows, indices of their payloads unless all are rows, problems.
pub type DecodedMessages = (PyRecordBatch, Option<PyArray>, Vec<(usize, String)>);

impl From<Decoded> for DecodedMessages {
    fn from(decoded: Decoded) -> Self {
        let kept = decoded
            .kept
            .chosen
            .map(|chosen| PyArray::from_array_ref(Arc::new(UInt32Array::from(chosen))));
        (PyRecordBatch::new(decoded.batch), kept, decoded.problems)
    }
}

/// The payloads, which must be Arrow's Binary.
pub fn binary(payloads: &PyArray) -> PyResult<&BinaryArray> {
    let array = payloads.array();
    array.as_any().downcast_ref().ok_or_else(|| {
        PyTypeError::new_err(format!("payloads are {}, not binary", array.data_type()))
    })
}
