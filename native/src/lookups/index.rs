//! Where the descriptors of recordings are in the catalog, which Python looks for once.

use crate::aeron::int64s;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard};

/// Recordings by id, ascending, with an offset and a length for each: what has been looked for up
/// to now, from the first recording on.
#[derive(Default)]
pub struct Places {
    ids: Vec<i64>,
    slices: Vec<i64>,
    end_id: Option<i64>,
}

impl Places {
    /// Where recordings from this id on begin.
    pub fn first_from(&self, recording_id: i64) -> usize {
        self.ids.partition_point(|each| *each < recording_id)
    }

    /// Offset and length of up to `limit` descriptors, from the `first` one on.
    pub fn slices(&self, first: usize, limit: usize) -> &[i64] {
        let end = first.saturating_add(limit).min(self.ids.len());
        self.slices.get(2 * first..2 * end).unwrap_or_default()
    }

    pub fn id(&self, index: usize) -> Option<i64> {
        self.ids.get(index).copied()
    }

    pub fn count(&self) -> usize {
        self.ids.len()
    }

    /// The first id of which it is known that there are no recordings from it on, if that is known.
    pub fn end_id(&self) -> Option<i64> {
        self.end_id
    }
}

#[pyclass(frozen, module = "aerotape._native")]
#[derive(Default)]
pub struct DescriptorIndex(Mutex<Places>);

impl DescriptorIndex {
    pub fn places(&self) -> MutexGuard<'_, Places> {
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

#[pymethods]
impl DescriptorIndex {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn extend(&self, ids: &Bound<'_, PyAny>, slices: &Bound<'_, PyAny>) -> PyResult<()> {
        let (ids, slices) = (int64s(ids)?, int64s(slices)?);
        let mut places = self.places();
        let last = places.ids.last();
        let all = last.into_iter().chain(&ids);
        if slices.len() != 2 * ids.len() || !all.is_sorted_by(|one, next| one < next) {
            return Err(PyValueError::new_err(format!(
                "{} ids with {} numbers do not go on ascending from {last:?} with two each",
                ids.len(),
                slices.len()
            )));
        }
        places.ids.extend(ids);
        places.slices.extend(slices);
        places.end_id = None;
        Ok(())
    }

    fn clear(&self) {
        *self.places() = Places::default();
    }

    fn remove(&self, recording_id: i64) {
        let mut places = self.places();
        if let Ok(index) = places.ids.binary_search(&recording_id) {
            places.ids.remove(index);
            places.slices.drain(2 * index..2 * index + 2);
        }
    }

    #[getter(end_id)]
    fn known_end(&self) -> Option<i64> {
        self.places().end_id
    }

    fn set_end(&self, end_id: Option<i64>) {
        self.places().end_id = end_id;
    }

    fn between<'py>(
        &self,
        py: Python<'py>,
        from_id: i64,
        to_id: i64,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let places = self.places();
        let first = places.first_from(from_id);
        let end = places.first_from(to_id).max(first);
        let ids = places.ids.get(first..end).unwrap_or_default();
        Ok((
            in_memory(py, ids)?,
            in_memory(py, places.slices(first, end - first))?,
        ))
    }
}

/// Numbers as an array of int64 has them.
fn in_memory<'py>(py: Python<'py>, numbers: &[i64]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, size_of_val(numbers), |bytes| {
        for (place, number) in bytes.chunks_exact_mut(size_of::<i64>()).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        Ok(())
    })
}
