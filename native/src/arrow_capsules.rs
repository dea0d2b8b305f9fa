//! Arrow data from and to Python without copies: the Arrow PyCapsule interface, which pyarrow and
//! other libraries of Arrow data have.

use std::ffi::CStr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray, make_array};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

type Capsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

/// A schema for Python: `pyarrow.schema(schema)` takes it.
#[pyclass(module = "aerotape._native", frozen)]
pub struct ArrowSchema(pub SchemaRef);

#[pymethods]
impl ArrowSchema {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.as_ref()).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }
}

/// An array for Python, `pyarrow.array(array)` takes it; or from there.
#[pyclass(module = "aerotape._native", frozen)]
pub struct ArrowArray(pub ArrayRef);

#[pymethods]
impl ArrowArray {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Capsules<'py>> {
        let _ = requested_schema; // a wish, which need not be met
        export(py, &self.0.to_data())
    }
}

impl<'py> FromPyObject<'_, 'py> for ArrowArray {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(make_array(import(object)?)))
    }
}

/// A record batch for Python, `pyarrow.record_batch(batch)` takes it; or from there.
#[pyclass(module = "aerotape._native", frozen)]
pub struct ArrowRecordBatch(pub RecordBatch);

#[pymethods]
impl ArrowRecordBatch {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Capsules<'py>> {
        let _ = requested_schema;
        export(py, &StructArray::from(self.0.clone()).into_data())
    }
}

impl<'py> FromPyObject<'_, 'py> for ArrowRecordBatch {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let array = make_array(import(object)?);
        let rows = array.as_any().downcast_ref::<StructArray>();
        let rows = rows.filter(|rows| rows.null_count() == 0).ok_or_else(|| {
            let found = array.data_type();
            PyTypeError::new_err(format!("expected a record batch, not an array of {found}"))
        })?;
        Ok(Self(RecordBatch::from(rows)))
    }
}

fn export<'py>(py: Python<'py>, data: &ArrayData) -> PyResult<Capsules<'py>> {
    let (array, schema) = to_ffi(data).map_err(failed)?;
    // What the consumer does not take, the capsules release.
    Ok((
        PyCapsule::new_with_value(py, schema, SCHEMA)?,
        PyCapsule::new_with_value(py, array, ARRAY)?,
    ))
}

fn import(object: Borrowed<'_, '_, PyAny>) -> PyResult<ArrayData> {
    let (schema, array): Capsules<'_> = object
        .call_method0("__arrow_c_array__")
        .map_err(|_| PyTypeError::new_err("expected Arrow data: an object with __arrow_c_array__"))?
        .extract()?;
    let schema = schema
        .pointer_checked(Some(SCHEMA))?
        .cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: the names say what the capsules hold, which live until the end of this function; the
    // array is moved out of its capsule, which does not release it then.
    let data = unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
    data.map_err(failed)
}

fn failed(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
