//! Destinations: where a manual multi-destination subscription takes its stream from, and where a
//! manual multi-destination publication sends to.

use super::guarded::Guarded;
use super::pending::{Outstanding, Record, Withdraw, wait_for};
use super::{c_string, last_error};
use crate::errors::Result;
use pyo3::prelude::*;
use rusteron_client::bindings as c;
use std::ffi::c_char;
use std::ptr::null_mut;

type Ask<T> = unsafe extern "C" fn(*mut *mut Record, *mut c::aeron_t, *mut T, *const c_char) -> i32;

/// A C object that can have destinations.
pub(super) trait Destinations: Sized {
    const ADD: Ask<Self>;
    const REMOVE: Ask<Self>;
}

impl Destinations for c::aeron_subscription_t {
    const ADD: Ask<Self> = c::aeron_subscription_async_add_destination;
    const REMOVE: Ask<Self> = c::aeron_subscription_async_remove_destination;
}

impl Destinations for c::aeron_publication_t {
    const ADD: Ask<Self> = c::aeron_publication_async_add_destination;
    const REMOVE: Ask<Self> = c::aeron_publication_async_remove_destination;
}

impl Destinations for c::aeron_exclusive_publication_t {
    const ADD: Ask<Self> = c::aeron_exclusive_publication_async_add_destination;
    const REMOVE: Ask<Self> = c::aeron_exclusive_publication_async_remove_destination;
}

/// A destination being added or removed.
#[pyclass(frozen, module = "aerotape._native")]
pub struct PendingDestination {
    outstanding: Outstanding,
}

impl PendingDestination {
    pub(super) fn add<T: Destinations>(cell: &Guarded<T>, channel: &str) -> Result<Self> {
        let what = format!(
            "cannot add the destination {channel} to the {}",
            cell.what()
        );
        Self::start(cell, channel, what, T::ADD)
    }

    pub(super) fn remove<T: Destinations>(cell: &Guarded<T>, channel: &str) -> Result<Self> {
        let what = format!(
            "cannot remove the destination {channel} from the {}",
            cell.what()
        );
        Self::start(cell, channel, what, T::REMOVE)
    }

    fn start<T>(cell: &Guarded<T>, channel: &str, what: String, ask: Ask<T>) -> Result<Self> {
        let uri = c_string(channel, "the destination")?;
        let mut record = null_mut();
        let entered = cell.client().enter_or_closed()?;
        // SAFETY: client and object are open within the call; C copies the channel.
        let asked =
            cell.call(|object| unsafe { ask(&mut record, entered.aeron(), object, uri.as_ptr()) })?;
        if asked < 0 {
            return Err(last_error(&what));
        }
        // Without the pointer's lock: this may do the work of C's conductor, which calls back.
        let outstanding = Outstanding::new(
            cell.client(),
            &entered,
            what,
            record,
            c::aeron_async_destination_get_registration_id,
            Withdraw::Never,
        );
        Ok(Self { outstanding })
    }

    fn poll_once(&self) -> Result<Option<()>> {
        let poll = |record| match poll(record) {
            None => Ok(None),
            Some(true) => Ok(Some(())),
            Some(false) => Err(()),
        };
        self.outstanding.poll(poll, Ok)
    }

    pub(super) fn wait(&self, py: Python<'_>, timeout_ns: u64, channel: &str) -> PyResult<()> {
        wait_for(py, timeout_ns, channel, || self.poll_once())
    }
}

/// Return whether the driver carried out the command; `None` before its response. Call inside the
/// client.
fn poll(record: *mut Record) -> Option<bool> {
    // SAFETY: the client is open and the record valid until it was answered. One C function serves
    // subscriptions and publications.
    match unsafe { c::aeron_subscription_async_destination_poll(record) } {
        0 => None,
        answer => Some(answer > 0),
    }
}

#[pymethods]
impl PendingDestination {
    #[getter]
    fn registration_id(&self) -> i64 {
        self.outstanding.registration_id()
    }

    fn poll(&self) -> PyResult<bool> {
        Ok(self.poll_once()?.is_some())
    }
}
