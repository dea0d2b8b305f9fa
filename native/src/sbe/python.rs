//! `SbeDecoder`: a plan at work, as Python sees it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3_arrow::{PyArray, PyRecordBatch, PySchema};

use super::columns::{body_fields, message_columns, presence};
use super::decoded::{Decoded, DecodedMessages, Kept, Malformed, binary};
use super::plan::Plan;
use super::values::strings;
use super::walk::{Outcome, Walk};

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
        let malformed = match self.error_column {
            Some(_) => Malformed::Null,
            None => Malformed::Fail,
        };
        let decoded = self.decode_payloads(py, &payloads, malformed, true)?;
        match decoded.problems.first() {
            Some((payload, problem)) if malformed == Malformed::Fail => {
                Err(codec_error(py, *payload, problem)?)
            }
            _ => Ok(PyRecordBatch::new(decoded.batch)),
        }
    }

    #[pyo3(signature = (payloads, *, malformed, keep_others))]
    fn decode_messages(
        &self,
        py: Python<'_>,
        payloads: PyArray,
        malformed: Malformed,
        keep_others: bool,
    ) -> PyResult<DecodedMessages> {
        if self.error_column.is_some() {
            return Err(PyValueError::new_err(
                "problems are returned separately: create the decoder without an error column",
            ));
        }
        let decoded = self.decode_payloads(py, &payloads, malformed, keep_others)?;
        Ok(decoded.into())
    }
}

impl SbeDecoder {
    fn decode_payloads(
        &self,
        py: Python<'_>,
        payloads: &PyArray,
        malformed: Malformed,
        keep_others: bool,
    ) -> PyResult<Decoded> {
        let array = binary(payloads)?;
        py.detach(|| self.decode_array(array, malformed, keep_others))
            .map_err(|error| PyOverflowError::new_err(error.to_string()))
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "Arrow has one offset more than rows"
    )]
    fn decode_array(
        &self,
        payloads: &BinaryArray,
        malformed: Malformed,
        keep_others: bool,
    ) -> Result<Decoded, ArrowError> {
        let data = payloads.value_data();
        let offsets = payloads.value_offsets();
        let mut walk = Walk::new(&self.plan, data);
        let mut templates = self
            .template_column
            .as_ref()
            .map(|_| Vec::with_capacity(payloads.len()));
        let mut kept = Kept::default();
        let mut problems: Vec<(usize, String)> = Vec::new();
        for payload in 0..payloads.len() {
            let mut template = None;
            if payloads.is_valid(payload) {
                // Offsets of Arrow are never negative, and a batch has fewer than 2^31 rows.
                let (start, end) = (offsets[payload] as usize, offsets[payload + 1] as usize);
                match walk.payload(kept.rows as u32, start, end) {
                    Ok(Outcome::Message(index)) => template = Some(index),
                    Ok(Outcome::Other) if keep_others => {}
                    Ok(Outcome::Other) => {
                        kept.drop();
                        continue;
                    }
                    Err(problem) => {
                        problems.push((payload, problem));
                        match malformed {
                            Malformed::Fail => break,
                            Malformed::Drop => {
                                kept.drop();
                                continue;
                            }
                            Malformed::Null => {}
                        }
                    }
                }
            }
            kept.keep(payload);
            if let Some(templates) = &mut templates {
                templates.push(template);
            }
        }
        let rows = kept.rows;
        let mut columns: Vec<ArrayRef> = Vec::new();
        if let Some(templates) = templates {
            let messages = &self.plan.messages;
            columns.push(strings(templates.iter().map(|index| {
                messages.get((*index)?).map(|message| message.name.as_str())
            }))?);
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
            // Only `decode` has that column, where each payload is a row.
            let mut next = problems.iter().peekable();
            let texts: Vec<Option<&str>> = (0..rows)
                .map(|row| {
                    next.next_if(|(bad, _)| *bad == row)
                        .map(|(_, problem)| problem.as_str())
                })
                .collect();
            columns.push(strings(texts.into_iter())?);
        }
        let batch = RecordBatch::try_new_with_options(
            self.schema.clone(),
            columns,
            &RecordBatchOptions::new().with_row_count(Some(rows)),
        )?;
        Ok(Decoded {
            batch,
            kept,
            problems,
        })
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
