//! The C media driver inside this process.

mod network;
mod properties;
mod property;
pub mod recordings;

use super::interpreter::released;
use super::lock;
use crate::errors::{Error, Result};
use crate::fork;
use crate::idle::starting_precise_sleepers;
use pyo3::prelude::*;
use rusteron_media_driver::bindings as d;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Mutex;

struct Running {
    driver: *mut d::aeron_driver_t,
    context: *mut d::aeron_driver_context_t,
    /// The values of its properties, which C points at.
    _values: Vec<CString>,
}

// SAFETY: a started driver runs on its own threads; the pointers are only used to close it, by
// one caller at a time (the mutex in `MediaDriver`).
unsafe impl Send for Running {}

#[pyclass(frozen, module = "aerotape._native")]
pub struct MediaDriver {
    running: Mutex<Option<Running>>,
    aeron_dir: String,
    process: fork::Process,
}

fn last_error(what: &str) -> Error {
    // SAFETY: reads thread-local state of the C library; the message is NUL-terminated.
    unsafe {
        let text = CStr::from_ptr(d::aeron_errmsg())
            .to_string_lossy()
            .into_owned();
        Error::Aeron {
            code: d::aeron_errcode(),
            message: format!("{what}: {}", super::tidy(&text)),
        }
    }
}

fn launch(properties: &BTreeMap<String, String>) -> Result<(Running, String)> {
    let mut context = null_mut();
    let mut driver = null_mut();
    // SAFETY: plain C construction in the documented order; on each failure what was made is
    // closed before the error is returned.
    unsafe {
        // The error text is the thread's: what an earlier call left must not be taken for ours.
        d::aeron_err_clear();
        if d::aeron_driver_context_init(&mut context) < 0 {
            return Err(last_error("cannot configure the media driver"));
        }
        let values = match properties::apply(context, properties) {
            Ok(values) => values,
            Err(error) => {
                d::aeron_driver_context_close(context);
                return Err(error);
            }
        };
        let aeron_dir = CStr::from_ptr(d::aeron_driver_context_get_dir(context))
            .to_string_lossy()
            .into_owned();
        let what = format!("cannot start a media driver in {aeron_dir}");
        if d::aeron_driver_init(&mut driver, context) < 0 {
            let error = last_error(&what);
            d::aeron_driver_context_close(context);
            return Err(error);
        }
        if starting_precise_sleepers(|| d::aeron_driver_start(driver, false)) < 0 {
            let error = last_error(&what);
            d::aeron_driver_close(driver);
            d::aeron_driver_context_close(context);
            return Err(error);
        }
        let running = Running {
            driver,
            context,
            _values: values,
        };
        Ok((running, aeron_dir))
    }
}

impl MediaDriver {
    fn stop(&self) {
        if !self.process.is_this() {
            // The driver's threads run in the process that this one was forked from.
            return;
        }
        // Taken in a separate statement: others may ask meanwhile whether it is closed.
        let running = lock(&self.running).take();
        if let Some(running) = running {
            let has_recordings = recordings::find(Path::new(&self.aeron_dir)).is_some();
            // SAFETY: taken out once; closing joins the driver's threads.
            unsafe {
                d::aeron_driver_close(running.driver);
                if has_recordings {
                    d::aeron_driver_context_set_dir_delete_on_shutdown(running.context, false);
                }
                d::aeron_driver_context_close(running.context);
            }
        }
    }
}

impl Drop for MediaDriver {
    fn drop(&mut self) {
        released(|| self.stop());
    }
}

#[pymethods]
impl MediaDriver {
    #[staticmethod]
    fn launch(py: Python<'_>, properties: BTreeMap<String, String>) -> PyResult<Self> {
        let (running, aeron_dir) = py.detach(|| launch(&properties))?;
        Ok(Self {
            running: Mutex::new(Some(running)),
            aeron_dir,
            process: fork::Process::this(),
        })
    }

    #[getter]
    fn aeron_dir(&self) -> &str {
        &self.aeron_dir
    }

    #[getter]
    fn is_closed(&self) -> bool {
        lock(&self.running).is_none()
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.stop());
    }
}
