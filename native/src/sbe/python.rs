//! `SbeDecoder`: a plan at work, as Python sees it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3_arrow::{PyArray, PyRecordBatch, PySchema};

use super::columns::{body_fields, message_columns, presence};
use super::plan::Plan;
use super::values::strings;
use super::walk::{Outcome, Walk};

/// Why a batch could not be decoded.
enum Failure {
    /// A payload is wrong, and the caller wants none of them wrong.
    Payload {
        row: usize,
        problem: String,
    },
    Arrow(ArrowError),
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

#[pyclass(module = "aerotape._native", frozen)]
struct SbeDecoder {
    plan: Plan,
    template_column: Option<String>,
    error_column: Option<String>,
    schema: SchemaRef,
}

#[pymethods]
impl SbeDecoder {
    #[new]
    #[pyo3(signature = (plan, *, template_column = None, error_column = None))]
    fn new(
        plan: Plan,
        template_column: Option<String>,
        error_column: Option<String>,
    ) -> PyResult<Self> {
        if plan.flat && plan.messages.len() != 1 {
            return Err(PyValueError::new_err("a flat plan has one message"));
        }
        let schema = schema(&plan, template_column.as_deref(), error_column.as_deref());
        Ok(Self {
            plan,
            template_column,
            error_column,
            schema,
        })
    }

    #[getter]
    fn schema(&self) -> PySchema {
        PySchema::new(self.schema.clone())
    }

    fn decode(&self, py: Python<'_>, payloads: PyArray) -> PyResult<PyRecordBatch> {
        let Some(array) = payloads.array().as_any().downcast_ref::<BinaryArray>() else {
            return Err(PyTypeError::new_err(format!(
                "payloads are {}, not binary",
                payloads.array().data_type()
            )));
        };
        match py.detach(|| self.decode_array(array)) {
            Ok(batch) => Ok(PyRecordBatch::new(batch)),
            Err(Failure::Payload { row, problem }) => Err(codec_error(py, row, &problem)?),
            Err(Failure::Arrow(error)) => Err(PyOverflowError::new_err(error.to_string())),
        }
    }
}

impl SbeDecoder {
    fn decode_array(&self, payloads: &BinaryArray) -> Result<RecordBatch, Failure> {
        let rows = payloads.len();
        let data = payloads.value_data();
        let offsets = payloads.value_offsets();
        let mut walk = Walk::new(&self.plan, data);
        let mut templates = self.template_column.as_ref().map(|_| vec![None; rows]);
        let mut problems: Vec<(usize, String)> = Vec::new();
        for row in 0..rows {
            if payloads.is_null(row) {
                continue;
            }
            // Offsets of Arrow are never negative, and a batch has fewer than 2^31 rows.
            let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
            match walk.payload(row as u32, start, end) {
                Ok(Outcome::Message(index)) => {
                    if let Some(templates) = &mut templates {
                        templates[row] = Some(index);
                    }
                }
                Ok(Outcome::Other) => {}
                Err(problem) if self.error_column.is_none() => {
                    return Err(Failure::Payload { row, problem });
                }
                Err(problem) => problems.push((row, problem)),
            }
        }
        let mut columns: Vec<ArrayRef> = Vec::new();
        if let Some(templates) = templates {
            let messages = &self.plan.messages;
            columns.push(strings(
                templates
                    .iter()
                    .map(|index| index.map(|index| messages[index].name.as_str())),
            )?);
        }
        for (message, found) in self.plan.messages.iter().zip(&walk.found) {
            let built = message_columns(message, found, data, rows)?;
            if self.plan.flat {
                columns.extend(built);
            } else if !built.is_empty() {
                let fields = body_fields(&message.body);
                let present = presence(found, rows);
                columns.push(Arc::new(StructArray::try_new(fields, built, present)?));
            }
        }
        if self.error_column.is_some() {
            let mut next = problems.iter().peekable();
            let texts: Vec<Option<&str>> = (0..rows)
                .map(|row| {
                    next.next_if(|(bad, _)| *bad == row)
                        .map(|(_, problem)| problem.as_str())
                })
                .collect();
            columns.push(strings(texts.into_iter())?);
        }
        Ok(RecordBatch::try_new_with_options(
            self.schema.clone(),
            columns,
            &RecordBatchOptions::new().with_row_count(Some(rows)),
        )?)
    }
}

fn schema(plan: &Plan, template_column: Option<&str>, error_column: Option<&str>) -> SchemaRef {
    let text = |name: &str| Arc::new(Field::new(name, DataType::Utf8, true));
    let mut fields = Vec::new();
    fields.extend(template_column.map(text));
    for message in &plan.messages {
        let body = body_fields(&message.body);
        if plan.flat {
            fields.extend(body.iter().cloned());
        } else if !body.is_empty() {
            let data_type = DataType::Struct(body);
            fields.push(Arc::new(Field::new(&message.name, data_type, true)));
        }
    }
    fields.extend(error_column.map(text));
    Arc::new(Schema::new(fields))
}

fn codec_error(py: Python<'_>, row: usize, problem: &str) -> PyResult<PyErr> {
    let class = py.import("aerotape.errors")?.getattr("CodecError")?;
    let error = class.call1((format!("payload of row {row}: {problem}"),))?;
    Ok(PyErr::from_value(error))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SbeDecoder>()
}
