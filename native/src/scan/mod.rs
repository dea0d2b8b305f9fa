//! Reading recordings offline: from segment files to messages, as Arrow columns or tuples.
//!
//! `recording` maps positions to segment files, `window` reads bytes from them, `walk` iterates
//! over the frames and reassembles fragmented messages, `columns` lays messages out as Arrow
//! arrays, and `python` is the interface for Python. Only `window` reads files.
//!
//! `statistics` counts on the same walk instead (`histogram`), and continues after gaps
//! (`gap`); `python_statistics` is its interface for Python.

mod columns;
mod gap;
mod histogram;
mod python;
mod python_statistics;
mod recording;
mod statistics;
mod walk;
mod window;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::Mutex;

/// Run with what an object of Python's guards, and with the interpreter released.
fn detached<S: Send, T: Send>(
    py: Python<'_>,
    guarded: &Mutex<S>,
    what: &str,
    run: impl FnOnce(&mut S) -> T + Send,
) -> PyResult<T> {
    py.detach(|| {
        guarded
            .lock()
            .map(|mut state| run(&mut state))
            .map_err(|_| ())
    })
    .map_err(|()| {
        PyRuntimeError::new_err(format!(
            "the {what} has failed with an internal error before: create another one"
        ))
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::register(module)?;
    python_statistics::register(module)
}
