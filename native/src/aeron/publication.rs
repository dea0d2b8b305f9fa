//! Publications, shared and exclusive, as Python sees them.

mod handle;

use super::bulk_offer::{offer_patiently, slice_all};
use super::client::{ADD_TIMEOUT_NS, AeronClient};
use super::destination::PendingDestination;
use super::guarded::Guarded;
use super::lock;
use super::waiting::wait_within;
use crate::errors::Result;
use handle::PublicationConstants;
pub(super) use handle::{BACK_PRESSURED, ERROR};
pub use handle::{
    CLOSED, ExclusivePublicationHandle, NOT_CONNECTED, PublicationHandle, is_held_up,
};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rusteron_client::bindings as c;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Bytes that Python lent us for one call. Writable ones are copied, because another thread may
/// change them once the interpreter is released.
pub enum Lent<'py> {
    Bytes(Bound<'py, PyBytes>),
    ReadOnly(PyBuffer<u8>),
    Copied(Vec<u8>),
}

impl<'py> Lent<'py> {
    pub fn new(data: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::of(data.clone())
    }

    pub fn of(data: Bound<'py, PyAny>) -> PyResult<Self> {
        let data = match data.cast_into::<PyBytes>() {
            Ok(bytes) => return Ok(Self::Bytes(bytes)),
            Err(error) => error.into_inner(),
        };
        let buffer = PyBuffer::<u8>::get(&data)?;
        if !buffer.is_c_contiguous() {
            return Err(pyo3::exceptions::PyValueError::new_err(
                "the message is not contiguous: expected bytes or a C-contiguous buffer",
            ));
        }
        if buffer.readonly() {
            Ok(Self::ReadOnly(buffer))
        } else {
            Ok(Self::Copied(buffer.to_vec(data.py())?))
        }
    }

    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes.as_bytes(),
            Self::Copied(bytes) => bytes,
            Self::ReadOnly(buffer) if buffer.len_bytes() == 0 => &[],
            // SAFETY: the exporter keeps the memory in place while the buffer is held, and it
            // is contiguous; that it is read-only is the exporter's promise that it stays as it is.
            Self::ReadOnly(buffer) => unsafe {
                std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes())
            },
        }
    }
}

/// The numbers of an array of int64.
pub fn int64s(array: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    // The memory of an empty one may lie anywhere, and is refused as not aligned.
    if array.len()? == 0 {
        return Ok(Vec::new());
    }
    PyBuffer::<i64>::get(array)?.to_vec(array.py())
}

/// Whether an offer that ended so may succeed later: when there is room, or a subscriber.
fn is_retried(result: i64) -> bool {
    result == NOT_CONNECTED || is_held_up(result)
}

/// Repeat an offer that ended with `first` until it goes through, fails for good or the time is
/// up; the interpreter is released.
pub fn retry_within(
    py: Python<'_>,
    first: i64,
    timeout_ns: u64,
    offer: impl Fn() -> Result<i64> + Send + Sync,
) -> PyResult<i64> {
    let mut result = first;
    if is_retried(first) {
        wait_within(py, timeout_ns, |_| {
            result = offer()?;
            Ok((!is_retried(result)).then_some(()))
        })?;
    }
    Ok(result)
}

impl ExclusivePublication {
    /// For another thread that will send on this publication.
    pub(super) fn share(&self) -> Slot<ExclusivePublicationHandle> {
        self.slot.share()
    }

    /// Call `offer_all` with a function that offers a message in two pieces; how many went out
    /// and the last result, which is an error if that was the first one.
    pub fn offering(
        &self,
        offer_all: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> i64) -> (usize, i64),
    ) -> Result<(usize, i64)> {
        self.slot
            .with(Ok((0, CLOSED)), |handle| handle.offering(offer_all))
    }

    pub fn longest_message(&self) -> usize {
        self.constants.max_message_length
    }

    /// The position after the last message, -1 once closed.
    pub fn current_position(&self) -> i64 {
        self.slot.with(-1, ExclusivePublicationHandle::position)
    }

    /// Offer messages that begin alike, in order; how many went out, and the result of the last
    /// offer, which is 0 where the next one is longer than a message may be.
    pub(super) fn offer_each<'a>(
        &self,
        prefix: &[u8],
        bodies: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(usize, i64)> {
        let longest = self.constants.max_message_length;
        self.slot.with(Ok((0, CLOSED)), |handle| {
            handle.offer_each(prefix, bodies, longest)
        })
    }
}

/// The handle of a Python publication; gone once it was closed or a worker took it over.
pub(super) struct Slot<H>(Arc<Mutex<Option<H>>>);

impl<H> Slot<H> {
    fn new(handle: H) -> Self {
        Self(Arc::new(Mutex::new(Some(handle))))
    }

    fn with<R>(&self, gone: R, call: impl FnOnce(&H) -> R) -> R {
        lock(&self.0).as_ref().map_or(gone, call)
    }

    fn take(&self) -> Option<H> {
        lock(&self.0).take()
    }

    /// As `with`, but gone also while another thread uses the handle.
    pub fn with_if_free<R>(&self, gone: R, call: impl FnOnce(&H) -> R) -> R {
        match self.0.try_lock() {
            Ok(handle) => handle.as_ref().map_or(gone, call),
            Err(_) => gone,
        }
    }

    /// The same handle for another thread; closing this one closes both.
    fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

macro_rules! publication_class {
    ($class:ident, $handle:ident, $ctype:ident, { $($extra:tt)* }) => {
        #[pyclass(frozen, extends = PublicationConstants, module = "aerotape._native")]
        pub struct $class {
            constants: PublicationConstants,
            slot: Slot<$handle>,
        }

        impl $class {
            /// Call inside the client.
            pub(super) fn new(client: AeronClient, publication: *mut c::$ctype) -> Result<Self> {
                let handle = $handle::new(client, publication)?;
                Ok(Self { constants: handle.constants.clone(), slot: Slot::new(handle) })
            }

            fn change(
                &self,
                command: fn(&Guarded<c::$ctype>, &str) -> Result<PendingDestination>,
                channel: &str,
            ) -> Result<PendingDestination> {
                let closed = self.constants.closed();
                self.slot.with(Err(closed), |handle| command(&handle.cell, channel))
            }
        }

        impl<'py> IntoPyObject<'py> for $class {
            type Target = Self;
            type Output = Bound<'py, Self>;
            type Error = PyErr;

            fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
                let constants = PyClassInitializer::from(self.constants.clone());
                Bound::new(py, constants.add_subclass(self))
            }
        }

        #[pymethods]
        impl $class {
            #[getter]
            fn position(&self) -> i64 {
                self.slot.with(-1, $handle::position)
            }

            #[getter]
            fn position_limit(&self) -> i64 {
                self.slot.with(-1, $handle::position_limit)
            }

            #[getter]
            fn is_connected(&self) -> bool {
                self.slot.with(false, $handle::is_connected)
            }

            #[getter]
            fn is_closed(&self) -> bool {
                self.slot.with(true, $handle::is_closed)
            }

            #[pyo3(signature = (data, reserved_value=0))]
            fn offer(&self, data: &Bound<'_, PyAny>, reserved_value: i64) -> PyResult<i64> {
                let lent = Lent::new(data)?;
                let offer = |handle: &$handle| handle.offer(lent.as_slice(), reserved_value);
                Ok(self.slot.with(Ok(CLOSED), offer)?)
            }

            #[pyo3(signature = (data, timeout_ns, reserved_value=0))]
            fn offer_within(
                &self,
                py: Python<'_>,
                data: &Bound<'_, PyAny>,
                timeout_ns: u64,
                reserved_value: i64,
            ) -> PyResult<i64> {
                let lent = Lent::new(data)?;
                let data = lent.as_slice();
                let offer = || {
                    self.slot.with(Ok(CLOSED), |handle| handle.offer(data, reserved_value))
                };
                retry_within(py, offer()?, timeout_ns, offer)
            }

            #[pyo3(signature = (channel, timeout_ns=ADD_TIMEOUT_NS))]
            fn add_destination(
                &self,
                py: Python<'_>,
                channel: &str,
                timeout_ns: u64,
            ) -> PyResult<()> {
                self.change(PendingDestination::add, channel)?.wait(py, timeout_ns, channel)
            }

            #[pyo3(signature = (channel, timeout_ns=ADD_TIMEOUT_NS))]
            fn remove_destination(
                &self,
                py: Python<'_>,
                channel: &str,
                timeout_ns: u64,
            ) -> PyResult<()> {
                self.change(PendingDestination::remove, channel)?.wait(py, timeout_ns, channel)
            }

            fn close(&self) {
                self.slot.take();
            }

            $($extra)*
        }
    };
}

publication_class!(Publication, PublicationHandle, aeron_publication_t, {});
publication_class!(
    ExclusivePublication,
    ExclusivePublicationHandle,
    aeron_exclusive_publication_t,
    {
        fn revoke(&self) {
            if let Some(handle) = self.slot.take() {
                handle.revoke();
            }
        }

        #[pyo3(signature = (prefix, source, slices, *, skip=0, patience_ns=0))]
        fn offer_slices(
            &self,
            py: Python<'_>,
            prefix: &[u8],
            source: &Bound<'_, PyAny>,
            slices: &Bound<'_, PyAny>,
            skip: usize,
            patience_ns: u64,
        ) -> PyResult<(usize, i64)> {
            let source = Lent::new(source)?;
            let slices = int64s(slices)?;
            let bodies = slice_all(source.as_slice(), &slices, skip)?;
            let patience = Duration::from_nanos(patience_ns);
            py.detach(|| offer_patiently(self, prefix, &bodies, patience))
                .map_err(PyErr::from)
        }
    }
);

impl ExclusivePublication {
    /// Take the publication over, leaving this object closed.
    pub fn take(&self) -> Result<ExclusivePublicationHandle> {
        let taken = self.slot.take();
        taken.ok_or_else(|| self.constants.closed())
    }
}
