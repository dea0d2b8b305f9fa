//! Reads the messages of a stream from one image after the other.

use super::image::Image;
use super::lock;
use super::waiting::wait_within;
use crate::assembly::{Assembler, Messages, RecordedAs};
use crate::errors::Result;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Mutex;

/// Reads a stream from one image after the other: a message that began in one may end in the next.
#[pyclass(frozen, module = "aerotape._native")]
pub struct MessageReader(Mutex<State>);

struct State {
    assembler: Assembler,
    /// After the last fragment that was taken.
    position: i64,
}

#[pymethods]
impl MessageReader {
    #[new]
    fn new() -> Self {
        Self(Mutex::new(State {
            assembler: Assembler::default(),
            position: -1,
        }))
    }

    #[getter]
    fn position(&self) -> i64 {
        lock(&self.0).position
    }

    #[pyo3(signature = (image, fragment_limit=10, limit_position=None, timeout_ns=0,
                        recorded_as=None))]
    fn poll<'py>(
        &self,
        py: Python<'py>,
        image: &Image,
        fragment_limit: usize,
        limit_position: Option<i64>,
        timeout_ns: u64,
        recorded_as: Option<RecordedAs>,
    ) -> PyResult<Bound<'py, PyList>> {
        let image = image.share()?;
        let limit_position = limit_position.unwrap_or(i64::MAX);
        poll_within(py, timeout_ns, |messages| {
            let mut state = lock(&self.0);
            let State {
                assembler,
                position: taken,
            } = &mut *state;
            let read =
                image.bounded_poll(limit_position, fragment_limit, &mut |payload, fragment| {
                    let position = fragment.position;
                    *taken = position;
                    let header = fragment.header(recorded_as);
                    assembler.on_fragment(payload, header, position, &mut |payload, first, end| {
                        messages.push(payload, first, end);
                    });
                })?;
            let is_over = image.is_closed() || image.position() >= limit_position;
            Ok(if read == 0 && is_over {
                None
            } else {
                Some(read)
            })
        })
    }
}

/// Poll until there are messages, the time is up, or `poll` returns `None`: no more will arrive.
/// Otherwise `poll` returns how many fragments it read. Waits with the interpreter released.
pub(super) fn poll_within<'py>(
    py: Python<'py>,
    timeout_ns: u64,
    mut poll: impl FnMut(&mut Messages) -> Result<Option<usize>> + Send,
) -> PyResult<Bound<'py, PyList>> {
    let mut messages = Messages::default();
    let is_over = poll(&mut messages)?.is_none();
    if messages.is_empty() && !is_over && timeout_ns > 0 {
        wait_within(py, timeout_ns, |idle| {
            match poll(&mut messages)? {
                None => return Ok(Some(())),
                Some(0) => {}
                Some(_) => idle.reset(),
            }
            Ok((!messages.is_empty()).then_some(()))
        })?;
    }
    messages.into_list(py)
}
