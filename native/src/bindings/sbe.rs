//! `SbeDecoder`: a plan at work, as Python sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use aerotape_format::sbe::decoded::{Decoded, Malformed};
use aerotape_format::sbe::decoder::Decoder;
use aerotape_format::sbe::plan::Plan;
use arrow_array::{Array, BinaryArray, UInt32Array};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arrow_capsules::{ArrowArray, ArrowRecordBatch, ArrowSchema};

/// Decoded payloads for Python: rows, indices of their payloads unless all are rows, problems, and
/// numbers of texts with escaped bytes.
pub type DecodedMessages = (
    ArrowRecordBatch,
    Option<ArrowArray>,
    Vec<(usize, String)>,
    BTreeMap<String, u64>,
);

pub fn for_python(decoded: Decoded) -> DecodedMessages {
    let kept = decoded
        .kept
        .chosen
        .map(|chosen| ArrowArray(Arc::new(UInt32Array::from(chosen))));
    let batch = ArrowRecordBatch(decoded.batch);
    (batch, kept, decoded.problems, decoded.escaped)
}

/// The payloads, which must be Arrow's Binary.
pub fn binary(payloads: &ArrowArray) -> PyResult<&BinaryArray> {
    let array = &payloads.0;
    array.as_any().downcast_ref().ok_or_else(|| {
        PyTypeError::new_err(format!("payloads are {}, not binary", array.data_type()))
    })
}

#[pyclass(module = "aerotape._native", frozen)]
pub struct SbeDecoder(Decoder);

#[pymethods]
impl SbeDecoder {
    #[new]
    #[pyo3(signature = (plan, *, template_column = None, error_column = None))]
    fn new(
        plan: Plan,
        template_column: Option<String>,
        error_column: Option<String>,
    ) -> PyResult<Self> {
        Ok(Self(Decoder::new(plan, template_column, error_column)?))
    }

    #[getter]
    fn schema(&self) -> ArrowSchema {
        ArrowSchema(self.0.schema.clone())
    }

    fn decode(&self, py: Python<'_>, payloads: ArrowArray) -> PyResult<ArrowRecordBatch> {
        let malformed = match self.0.error_column {
            Some(_) => Malformed::Null,
            None => Malformed::Fail,
        };
        let decoded = self.decode_payloads(py, &payloads, malformed, true)?;
        match decoded.problems.first() {
            Some((payload, problem)) if malformed == Malformed::Fail => {
                Err(codec_error(py, *payload, problem)?)
            }
            _ => Ok(ArrowRecordBatch(decoded.batch)),
        }
    }

    #[pyo3(signature = (payloads, *, malformed, keep_others))]
    fn decode_messages(
        &self,
        py: Python<'_>,
        payloads: ArrowArray,
        malformed: Malformed,
        keep_others: bool,
    ) -> PyResult<DecodedMessages> {
        if self.0.error_column.is_some() {
            return Err(PyValueError::new_err(
                "problems are returned separately: create the decoder without an error column",
            ));
        }
        let decoded = self.decode_payloads(py, &payloads, malformed, keep_others)?;
        Ok(for_python(decoded))
    }
}

impl SbeDecoder {
    fn decode_payloads(
        &self,
        py: Python<'_>,
        payloads: &ArrowArray,
        malformed: Malformed,
        keep_others: bool,
    ) -> PyResult<Decoded> {
        let array = binary(payloads)?;
        py.detach(|| self.0.decode(array, malformed, keep_others))
            .map_err(|error| PyOverflowError::new_err(error.to_string()))
    }
}

fn codec_error(py: Python<'_>, row: usize, problem: &str) -> PyResult<PyErr> {
    let class = py.import("aerotape.errors")?.getattr("CodecError")?;
    let error = class.call1((format!("payload of row {row}: {problem}"),))?;
    Ok(PyErr::from_value(error))
}
