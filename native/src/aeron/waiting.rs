//! Waits of a Python caller, with the interpreter released.

use crate::errors::Result;
use crate::idle::Backoff;
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// How often a signal's handler may run during a wait.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// Call `step` until it returns a value; `None` when the time is up. A step that has done some of
/// its work resets the idle strategy. A signal's handler may raise between two steps.
pub(super) fn wait_within<T: Send>(
    py: Python<'_>,
    timeout_ns: u64,
    mut step: impl FnMut(&mut Backoff) -> Result<Option<T>> + Send,
) -> PyResult<Option<T>> {
    let deadline = Instant::now() + Duration::from_nanos(timeout_ns);
    loop {
        let slice = deadline.min(Instant::now() + SIGNAL_INTERVAL);
        let found = py.detach(|| {
            let mut idle = Backoff::default();
            loop {
                let found = step(&mut idle)?;
                if found.is_some() || Instant::now() >= slice {
                    return Result::Ok(found);
                }
                idle.idle();
            }
        })?;
        if found.is_some() {
            return Ok(found);
        }
        py.check_signals()?;
        if Instant::now() >= deadline {
            return Ok(None);
        }
    }
}
