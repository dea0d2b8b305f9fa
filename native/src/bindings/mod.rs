//! The formats of `aerotape-format` for Python: arguments checked, the interpreter released, results
//! returned. `parallel` runs work on many files.

mod parallel;
pub mod raft_journal;
pub mod sbe;
pub mod scan;
pub mod segment;
pub mod statistics;

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
