//! Publications, shared and exclusive.

use super::answer::Answer;
use super::cell::ClientCell;
use super::client::{ADD_TIMEOUT_NS, ClientHandle};
use super::destination::PendingDestination;
use super::last_error;
use super::sending::Slices;
use crate::errors::{Error, Result};
use crate::idle::Backoff;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rusteron_client::bindings as c;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const NOT_CONNECTED: i64 = c::AERON_PUBLICATION_NOT_CONNECTED as i64;
pub const BACK_PRESSURED: i64 = c::AERON_PUBLICATION_BACK_PRESSURED as i64;
const ADMIN_ACTION: i64 = c::AERON_PUBLICATION_ADMIN_ACTION as i64;
pub const CLOSED: i64 = c::AERON_PUBLICATION_CLOSED as i64;
pub(super) const ERROR: i64 = c::AERON_PUBLICATION_ERROR as i64;

/// Whether an offer that ended so may succeed later, when there is room.
pub fn is_held_up(result: i64) -> bool {
    matches!(result, BACK_PRESSURED | ADMIN_ACTION)
}

/// What does not change about a publication.
#[derive(Clone, Debug)]
struct Constants {
    channel: String,
    stream_id: i32,
    session_id: i32,
    registration_id: i64,
    initial_term_id: i32,
    term_buffer_length: usize,
    position_bits_to_shift: usize,
    max_message_length: usize,
    max_payload_length: usize,
}

impl Constants {
    fn closed(&self) -> Error {
        Error::Closed(format!("the publication to {} is closed", self.channel))
    }

    /// # Safety
    /// `raw` was filled in by the C client for a publication that is open.
    unsafe fn from_c(raw: &c::aeron_publication_constants_t) -> Self {
        // SAFETY: the channel is NUL-terminated and lives as long as the publication.
        let channel = unsafe { CStr::from_ptr(raw.channel) }
            .to_string_lossy()
            .into_owned();
        Self {
            channel,
            stream_id: raw.stream_id,
            session_id: raw.session_id,
            registration_id: raw.registration_id,
            initial_term_id: raw.initial_term_id,
            term_buffer_length: raw.term_buffer_length,
            position_bits_to_shift: raw.position_bits_to_shift,
            max_message_length: raw.max_message_length,
            max_payload_length: raw.max_payload_length,
        }
    }
}

unsafe extern "C" fn reserved_value(clientd: *mut c_void, _buffer: *mut u8, _length: usize) -> i64 {
    // SAFETY: clientd is the value of the offer under way.
    unsafe { *clientd.cast::<i64>() }
}

/// Bytes that Python lent us for one call.
pub enum Lent<'py> {
    Bytes(Bound<'py, PyBytes>),
    Buffer(PyBuffer<u8>),
}

impl<'py> Lent<'py> {
    pub fn new(data: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = data.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.clone()));
        }
        let buffer = PyBuffer::<u8>::get(data)?;
        if !buffer.is_c_contiguous() {
            return Err(pyo3::exceptions::PyValueError::new_err(
                "the buffer is not contiguous",
            ));
        }
        Ok(Self::Buffer(buffer))
    }

    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes.as_bytes(),
            Self::Buffer(buffer) if buffer.len_bytes() == 0 => &[],
            // SAFETY: the exporter keeps the memory in place while the buffer is held, and it
            // is contiguous; a program that writes to it meanwhile gets a torn message, as
            // with any buffer handed to a system call.
            Self::Buffer(buffer) => unsafe {
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

fn checked(result: i64) -> Result<i64> {
    if result == ERROR {
        Err(last_error("cannot offer the message"))
    } else {
        Ok(result)
    }
}

/// Offer until it goes through, fails for good or the time is up; the interpreter is released.
fn offer_within(
    py: Python<'_>,
    data: &[u8],
    timeout_ns: u64,
    offer: impl Fn(&[u8]) -> Result<i64> + Send + Sync,
) -> PyResult<i64> {
    let first = offer(data)?;
    let retry = |result| result == NOT_CONNECTED || is_held_up(result);
    if !retry(first) {
        return Ok(first);
    }
    let deadline = Instant::now() + Duration::from_nanos(timeout_ns);
    loop {
        let slice = deadline.min(Instant::now() + Duration::from_millis(100));
        let result = py.detach(|| {
            let mut idle = Backoff::default();
            loop {
                let result = offer(data)?;
                if !retry(result) || Instant::now() >= slice {
                    return Ok::<i64, Error>(result);
                }
                idle.idle();
            }
        })?;
        if !retry(result) || Instant::now() >= deadline {
            return Ok(result);
        }
        py.check_signals()?;
    }
}

macro_rules! publication_handle {
    ($handle:ident, $ctype:ident, $what:literal, $constants:ident, $offer:ident, $position:ident,
     $limit:ident, $connected:ident, $closed:ident, $close:ident) => {
        /// An open publication of a client; closed when dropped.
        pub struct $handle {
            cell: ClientCell<c::$ctype>,
            constants: Constants,
        }

        impl $handle {
            fn new(client: ClientHandle, publication: *mut c::$ctype) -> Self {
                let mut raw = MaybeUninit::<c::aeron_publication_constants_t>::uninit();
                // SAFETY: C has just given us the publication and fills in the struct.
                let constants = unsafe {
                    c::$constants(publication, raw.as_mut_ptr());
                    Constants::from_c(&raw.assume_init())
                };
                Self {
                    cell: ClientCell::new(client, publication, $what),
                    constants,
                }
            }

            pub fn offer(&self, data: &[u8], mut reserved: i64) -> Result<i64> {
                let clientd = (&raw mut reserved).cast::<c_void>();
                let supplier: c::aeron_reserved_value_supplier_t = if reserved == 0 {
                    None
                } else {
                    Some(reserved_value)
                };
                let offered = self.cell.with(|publication| {
                    // SAFETY: the pointer is valid within the call; C copies the data.
                    unsafe { c::$offer(publication, data.as_ptr(), data.len(), supplier, clientd) }
                });
                checked(offered.unwrap_or(CLOSED))
            }

            pub fn position(&self) -> i64 {
                // SAFETY: the pointer is valid within the call.
                self.cell
                    .with(|publication| unsafe { c::$position(publication) })
                    .unwrap_or(-1)
            }

            pub fn position_limit(&self) -> i64 {
                // SAFETY: the pointer is valid within the call.
                self.cell
                    .with(|publication| unsafe { c::$limit(publication) })
                    .unwrap_or(-1)
            }

            pub fn is_connected(&self) -> bool {
                // SAFETY: the pointer is valid within the call.
                let read = |publication| unsafe { c::$connected(publication) };
                self.cell.with(read).unwrap_or(false)
            }

            pub fn is_closed(&self) -> bool {
                // SAFETY: the pointer is valid within the call.
                self.cell
                    .with(|publication| unsafe { c::$closed(publication) })
                    .unwrap_or(true)
            }

            pub fn close(&self) {
                // SAFETY: taken out for good, so nobody uses the publication after this.
                self.cell.take(|publication| unsafe {
                    c::$close(publication, None, std::ptr::null_mut());
                });
            }
        }

        impl Drop for $handle {
            fn drop(&mut self) {
                self.close();
            }
        }
    };
}

publication_handle!(
    PublicationHandle,
    aeron_publication_t,
    "publication",
    aeron_publication_constants,
    aeron_publication_offer,
    aeron_publication_position,
    aeron_publication_position_limit,
    aeron_publication_is_connected,
    aeron_publication_is_closed,
    aeron_publication_close
);
publication_handle!(
    ExclusivePublicationHandle,
    aeron_exclusive_publication_t,
    "exclusive publication",
    aeron_exclusive_publication_constants,
    aeron_exclusive_publication_offer,
    aeron_exclusive_publication_position,
    aeron_exclusive_publication_position_limit,
    aeron_exclusive_publication_is_connected,
    aeron_exclusive_publication_is_closed,
    aeron_exclusive_publication_close
);

impl ExclusivePublicationHandle {
    pub fn channel(&self) -> &str {
        &self.constants.channel
    }

    pub fn stream_id(&self) -> i32 {
        self.constants.stream_id
    }

    pub fn session_id(&self) -> i32 {
        self.constants.session_id
    }

    pub fn initial_term_id(&self) -> i32 {
        self.constants.initial_term_id
    }

    pub fn term_buffer_length(&self) -> usize {
        self.constants.term_buffer_length
    }

    pub fn position_bits_to_shift(&self) -> u32 {
        self.constants.position_bits_to_shift as u32
    }

    pub fn client(&self) -> &ClientHandle {
        self.cell.client()
    }

    /// Bytes that can be offered before flow control says stop.
    #[inline]
    pub fn available_window(&self) -> i64 {
        // SAFETY: the pointer is valid within the call.
        let window = |publication| unsafe {
            c::aeron_exclusive_publication_position_limit(publication)
                - c::aeron_exclusive_publication_position(publication)
        };
        self.cell.with(window).unwrap_or(CLOSED)
    }

    /// Append whole frames as they stand in `block`: new position, or a negative result.
    #[inline]
    pub fn offer_block(&self, block: &mut [u8]) -> i64 {
        // SAFETY: the pointer is valid within the call; C copies the block and writes the first
        // frame's header fields, hence `&mut`.
        let offer = |publication| unsafe {
            c::aeron_exclusive_publication_offer_block(publication, block.as_mut_ptr(), block.len())
        };
        self.cell.with(offer).unwrap_or(CLOSED)
    }

    fn offer_each<'a>(
        &self,
        prefix: &[u8],
        bodies: impl Iterator<Item = &'a [u8]>,
        longest: usize,
    ) -> Result<(usize, i64)> {
        let piece = |bytes: &[u8]| c::aeron_iovec_t {
            iov_base: bytes.as_ptr().cast_mut(),
            iov_len: bytes.len(),
        };
        let offered = self.cell.with(|publication| {
            let (mut sent, mut last) = (0, 0);
            for body in bodies {
                if prefix.len() + body.len() > longest {
                    return (sent, 0);
                }
                let mut pieces = [piece(prefix), piece(body)];
                // SAFETY: the pointer is valid within the call; C copies the pieces, which it
                // only reads.
                last = unsafe {
                    c::aeron_exclusive_publication_offerv(
                        publication,
                        pieces.as_mut_ptr(),
                        pieces.len(),
                        None,
                        std::ptr::null_mut(),
                    )
                };
                if last <= 0 {
                    break;
                }
                sent += 1;
            }
            (sent, last)
        });
        let (sent, last) = offered.unwrap_or((0, CLOSED));
        // What went out counts; the error comes again with the next one.
        let last = if sent > 0 { last } else { checked(last)? };
        Ok((sent, last))
    }

    /// Append a padding frame with `length` bytes after its header.
    pub fn append_padding(&self, length: usize) -> i64 {
        // SAFETY: the pointer is valid within the call.
        let append = |publication| unsafe {
            c::aeron_exclusive_publication_append_padding(publication, length)
        };
        self.cell.with(append).unwrap_or(CLOSED)
    }

    /// Close at once, dropping what subscribers have not consumed.
    pub fn revoke(&self) {
        // SAFETY: taken out for good, so nobody uses the publication after this.
        self.cell.take(|publication| unsafe {
            c::aeron_exclusive_publication_revoke(publication, None, std::ptr::null_mut());
        });
    }

    /// The C client's words for the last negative result on this thread.
    pub fn last_error(&self, what: &str) -> Error {
        last_error(what)
    }
}

impl ExclusivePublication {
    /// An answer that another thread is to send on this publication.
    pub fn answer(&self, message: Vec<u8>) -> Answer {
        Answer::new(self.slot.share(), message)
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

    /// Offer once; whether it went out.
    pub fn offer_now(&self, data: &[u8]) -> bool {
        self.slot
            .with(false, |handle| handle.offer(data, 0).is_ok_and(|it| it > 0))
    }
}

/// The handle of a Python publication; gone once it was closed or a worker took it over.
pub(super) struct Slot<H>(Arc<Mutex<Option<H>>>);

impl<H> Slot<H> {
    fn new(handle: H) -> Self {
        Self(Arc::new(Mutex::new(Some(handle))))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<H>> {
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    fn with<R>(&self, gone: R, call: impl FnOnce(&H) -> R) -> R {
        self.lock().as_ref().map_or(gone, call)
    }

    /// As `with`, but gone also while another thread uses the handle.
    pub fn with_if_free<R>(&self, gone: R, call: impl FnOnce(&H) -> R) -> R {
        match self.0.try_lock() {
            Ok(handle) => handle.as_ref().map_or(gone, call),
            Err(_) => gone,
        }
    }

    /// The same handle, for another thread; it is still closed by who closes this one.
    fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

macro_rules! publication_class {
    ($class:ident, $handle:ident, $ctype:ident, { $($extra:tt)* }) => {
        #[pyclass(frozen, module = "aerotape._native")]
        pub struct $class {
            constants: Constants,
            slot: Slot<$handle>,
        }

        impl $class {
            pub(super) fn new(client: ClientHandle, publication: *mut c::$ctype) -> Self {
                let handle = $handle::new(client, publication);
                Self { constants: handle.constants.clone(), slot: Slot::new(handle) }
            }

            fn change(
                &self,
                command: fn(&ClientCell<c::$ctype>, &str) -> Result<PendingDestination>,
                channel: &str,
            ) -> Result<PendingDestination> {
                let closed = self.constants.closed();
                self.slot.with(Err(closed), |handle| command(&handle.cell, channel))
            }
        }

        #[pymethods]
        impl $class {
            #[getter]
            fn channel(&self) -> &str {
                &self.constants.channel
            }

            #[getter]
            fn stream_id(&self) -> i32 {
                self.constants.stream_id
            }

            #[getter]
            fn session_id(&self) -> i32 {
                self.constants.session_id
            }

            #[getter]
            fn registration_id(&self) -> i64 {
                self.constants.registration_id
            }

            #[getter]
            fn initial_term_id(&self) -> i32 {
                self.constants.initial_term_id
            }

            #[getter]
            fn term_buffer_length(&self) -> usize {
                self.constants.term_buffer_length
            }

            #[getter]
            fn max_message_length(&self) -> usize {
                self.constants.max_message_length
            }

            #[getter]
            fn max_payload_length(&self) -> usize {
                self.constants.max_payload_length
            }

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
                offer_within(py, lent.as_slice(), timeout_ns, |data| {
                    self.slot.with(Ok(CLOSED), |handle| handle.offer(data, reserved_value))
                })
            }

            fn async_add_destination(&self, channel: &str) -> PyResult<PendingDestination> {
                Ok(self.change(PendingDestination::add, channel)?)
            }

            fn async_remove_destination(&self, channel: &str) -> PyResult<PendingDestination> {
                Ok(self.change(PendingDestination::remove, channel)?)
            }

            #[pyo3(signature = (channel, timeout_ns=ADD_TIMEOUT_NS))]
            fn add_destination(
                &self,
                py: Python<'_>,
                channel: &str,
                timeout_ns: u64,
            ) -> PyResult<()> {
                self.async_add_destination(channel)?.wait(py, timeout_ns, channel)
            }

            #[pyo3(signature = (channel, timeout_ns=ADD_TIMEOUT_NS))]
            fn remove_destination(
                &self,
                py: Python<'_>,
                channel: &str,
                timeout_ns: u64,
            ) -> PyResult<()> {
                self.async_remove_destination(channel)?.wait(py, timeout_ns, channel)
            }

            fn close(&self) {
                self.slot.lock().take();
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
            if let Some(handle) = self.slot.lock().take() {
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
            let messages = Slices::new(prefix, source.as_slice(), &slices, skip).checked()?;
            let patience = Duration::from_nanos(patience_ns);
            py.detach(|| messages.offer_to(patience, self))
                .map_err(PyErr::from)
        }
    }
);

impl ExclusivePublication {
    /// Take the publication over, leaving this object closed.
    pub fn take(&self) -> Result<ExclusivePublicationHandle> {
        let taken = self.slot.lock().take();
        taken.ok_or_else(|| self.constants.closed())
    }
}
