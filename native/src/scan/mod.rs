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

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::register(module)?;
    python_statistics::register(module)
}
