//! Records in an Arrow array decoded into columns.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BinaryBuilder, BooleanBuilder, Int64Builder, RecordBatch,
    StringBuilder,
};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3_arrow::{PyArray, PyRecordBatch};

use super::entry::{self, APPLICATION, CONFIGURATION, Entry, INITIAL, NO_NUMBER, NO_TYPE};
use super::record::{self, Record};

#[derive(Default)]
struct Builders {
    term: Int64Builder,
    index: Int64Builder,
    asqn: Int64Builder,
    entry_type: StringBuilder,
    lowest_asqn: Int64Builder,
    highest_asqn: Int64Builder,
    checksum: Int64Builder,
    checksum_ok: BooleanBuilder,
    data: BinaryBuilder,
    problem: StringBuilder,
}

fn number(value: u64) -> Option<i64> {
    (value != NO_NUMBER).then_some(value as i64)
}

impl Builders {
    fn add(&mut self, record: Option<&Record<'_>>, found: &Entry<'_>, problem: Option<&str>) {
        self.term.append_option(number(found.term));
        self.index
            .append_option(record.map(|record| record.index as i64));
        self.asqn.append_option(record.map(|record| record.asqn));
        self.entry_type.append_option(match found.kind {
            APPLICATION => Some("APPLICATION"),
            CONFIGURATION => Some("CONFIGURATION"),
            INITIAL => Some("INITIAL"),
            _ => None,
        });
        self.lowest_asqn.append_option(number(found.lowest_asqn));
        self.highest_asqn.append_option(number(found.highest_asqn));
        self.checksum
            .append_option(record.map(|record| record.checksum));
        self.checksum_ok
            .append_option(record.map(|record| record.checksum_matches));
        self.data.append_option(found.data);
        self.problem.append_option(problem);
    }

    fn add_payload(&mut self, payload: &[u8]) {
        let record = match record::parse(payload) {
            Ok(record) => record,
            Err(damage) => return self.add(None, &Entry::NONE, Some(&damage.why)),
        };
        match entry::parse(record.blob) {
            Ok(found) if found.kind != NO_TYPE => self.add(Some(&record), &found, None),
            Ok(_) => self.add(Some(&record), &Entry::NONE, None),
            Err(why) => self.add(Some(&record), &Entry::NONE, Some(&why)),
        }
    }

    fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<(&str, DataType, ArrayRef)> = vec![
            ("term", DataType::Int64, Arc::new(self.term.finish())),
            ("index", DataType::Int64, Arc::new(self.index.finish())),
            ("asqn", DataType::Int64, Arc::new(self.asqn.finish())),
            ("type", DataType::Utf8, Arc::new(self.entry_type.finish())),
            (
                "lowest_asqn",
                DataType::Int64,
                Arc::new(self.lowest_asqn.finish()),
            ),
            (
                "highest_asqn",
                DataType::Int64,
                Arc::new(self.highest_asqn.finish()),
            ),
            (
                "checksum",
                DataType::Int64,
                Arc::new(self.checksum.finish()),
            ),
            (
                "checksum_ok",
                DataType::Boolean,
                Arc::new(self.checksum_ok.finish()),
            ),
            ("data", DataType::Binary, Arc::new(self.data.finish())),
            ("problem", DataType::Utf8, Arc::new(self.problem.finish())),
        ];
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, kind, _)| Field::new(*name, kind.clone(), true))
            .collect();
        let arrays = columns.into_iter().map(|(_, _, array)| array).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
    }
}

/// See `_native.pyi`.
#[pyfunction]
pub fn decode_raft_records(py: Python<'_>, payloads: PyArray) -> PyResult<PyRecordBatch> {
    let Some(array) = payloads.array().as_any().downcast_ref::<BinaryArray>() else {
        return Err(PyTypeError::new_err(format!(
            "payloads are {}, not binary",
            payloads.array().data_type()
        )));
    };
    py.detach(|| {
        let mut builders = Builders::default();
        for payload in array {
            match payload {
                Some(payload) => builders.add_payload(payload),
                None => builders.add(None, &Entry::NONE, None),
            }
        }
        builders.finish()
    })
    .map(PyRecordBatch::new)
    .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
