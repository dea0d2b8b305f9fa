//! Reading recordings offline: from segment files to messages, as Arrow columns or tuples.
//!
//! `recording` says where a position lies, `window` reads bytes from segment files, `walk` goes
//! from frame to frame and puts fragments back together, `columns` lays messages out as Arrow
//! arrays, and `python` is what the interpreter sees. Only `window` knows of files.
//!
//! `statistics` counts on the same walk instead (`histogram`), and goes past what is no frame
//! (`gap`); `python_statistics` shows it to the interpreter.

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
    .map_err(|()| PyRuntimeError::new_err(format!("the {what} is unusable after a panic")))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::register(module)?;
    python_statistics::register(module)
}
