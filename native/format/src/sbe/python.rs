//! Names in a plan that Python passes.

use super::decoded::Malformed;
use super::plan::{Characters, Kind, Primitive, parse_characters};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

impl FromPyObject<'_, '_> for Primitive {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let name: String = object.extract()?;
        Self::parse(&name)
            .ok_or_else(|| PyValueError::new_err(format!("unknown primitive {name:?}")))
    }
}

impl FromPyObject<'_, '_> for Characters {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let name: String = object.extract()?;
        parse_characters(&name)
            .ok_or_else(|| PyValueError::new_err(format!("unknown characters {name:?}")))
    }
}

impl FromPyObject<'_, '_> for Kind {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let name: String = object.extract()?;
        Ok(match name.as_str() {
            "number" => Self::Number,
            "decimal" => Self::Decimal,
            "timestamp" => Self::Timestamp,
            "date" => Self::Date,
            "numbers" => Self::Numbers,
            "enum" => Self::Enum,
            "set" => Self::Set,
            "struct" => Self::Struct,
            other => Self::Text(parse_characters(other).ok_or_else(|| {
                PyValueError::new_err(format!("unknown kind of column {name:?}"))
            })?),
        })
    }
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
