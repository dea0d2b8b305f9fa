//! Images: the stream of one publication as a subscription sees it.

use super::client::AeronClient;
use super::{last_error, lock, write};
use crate::assembly::{Header, RecordedAs};
use crate::errors::{Error, Result};
use pyo3::prelude::*;
use rusteron_client::bindings as c;
use std::ffi::{CStr, CString, c_void};
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

/// What does not change about an image.
#[pyclass(frozen, get_all, subclass, module = "aerotape._native")]
#[derive(Clone, Debug)]
pub struct ImageConstants {
    pub correlation_id: i64,
    pub subscription_registration_id: i64,
    pub join_position: i64,
    pub session_id: i32,
    pub stream_id: i32,
    pub initial_term_id: i32,
    pub term_buffer_length: usize,
    pub mtu_length: usize,
    pub source_identity: String,
}

/// A retained image: its log buffers stay mapped until the last handle goes or the subscription
/// closes, after which the image is closed for all its holders.
#[derive(Clone)]
pub struct ImageHandle(Arc<Retained>);

/// To take an image away from its holders without being one.
pub(super) struct WeakImage(Weak<Retained>);

struct Retained {
    constants: ImageConstants,
    /// Read by who uses the image, written by who closes it: the table in `aeron/mod.rs`.
    count: RwLock<Option<Count>>,
}

/// One count of a C image.
struct Count {
    client: AeronClient,
    image: *mut c::aeron_image_t,
}

// SAFETY: an image may be used by any thread as long as a count of it is held, and a count is
// released once, when no thread is inside `Retained::count`. Two threads that poll one image may
// both see a frame, but neither sees freed memory.
unsafe impl Send for Count {}
// SAFETY: as above.
unsafe impl Sync for Count {}

impl Count {
    fn release(self) {
        // A client that is closing frees its images itself.
        if let Some(_entered) = self.client.enter() {
            // SAFETY: a count is released once, by value, while the client is open.
            unsafe { c::aeron_image_release(self.image) };
        }
    }
}

impl Drop for Retained {
    fn drop(&mut self) {
        let count = self.count.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = count.take() {
            count.release();
        }
    }
}

impl WeakImage {
    pub fn upgrade(&self) -> Option<ImageHandle> {
        self.0.upgrade().map(ImageHandle)
    }

    pub fn is_held(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl Deref for ImageHandle {
    type Target = ImageConstants;

    fn deref(&self) -> &ImageConstants {
        &self.0.constants
    }
}

type BlockHandler<'a> = &'a mut dyn FnMut(&[u8], i32, i32);
type FragmentHandler<'a> = &'a mut dyn FnMut(&[u8], &Fragment);

impl ImageHandle {
    /// Retain `image`, which is in the image list of `subscription` now.
    ///
    /// # Safety
    /// Call on the client's conductor thread from an available-image callback. (On another
    /// thread the image may leave the list meanwhile, and C then returns 0 without having counted.)
    pub(super) unsafe fn retain(
        client: AeronClient,
        subscription: *mut c::aeron_subscription_t,
        image: *mut c::aeron_image_t,
    ) -> Option<Self> {
        // SAFETY: both pointers are valid by the contract of this function, which also says that
        // the image is counted.
        unsafe {
            if c::aeron_subscription_image_retain(subscription, image) < 0 {
                return None;
            }
            Self::adopt(client, subscription, image)
        }
    }

    /// Take over a count of `image`; without the constants it is released.
    ///
    /// # Safety
    /// `subscription` is open, and one count of `image` is the caller's to give away.
    pub(super) unsafe fn adopt(
        client: AeronClient,
        subscription: *mut c::aeron_subscription_t,
        image: *mut c::aeron_image_t,
    ) -> Option<Self> {
        let mut raw = MaybeUninit::<c::aeron_image_constants_t>::uninit();
        let mut of_subscription = MaybeUninit::<c::aeron_subscription_constants_t>::uninit();
        let count = Count { client, image };
        // SAFETY: both pointers are valid by the contract of this function; the structs are
        // filled in when C answers 0, and the source identity lives as long as the image.
        let constants = unsafe {
            if c::aeron_image_constants(image, raw.as_mut_ptr()) < 0
                || c::aeron_subscription_constants(subscription, of_subscription.as_mut_ptr()) < 0
            {
                count.release();
                return None;
            }
            let raw = raw.assume_init();
            let of_subscription = of_subscription.assume_init();
            ImageConstants {
                correlation_id: raw.correlation_id,
                subscription_registration_id: of_subscription.registration_id,
                stream_id: of_subscription.stream_id,
                join_position: raw.join_position,
                session_id: raw.session_id,
                initial_term_id: raw.initial_term_id,
                term_buffer_length: raw.term_buffer_length,
                mtu_length: raw.mtu_length,
                source_identity: CStr::from_ptr(raw.source_identity)
                    .to_string_lossy()
                    .into_owned(),
            }
        };
        Some(Self(Arc::new(Retained {
            constants,
            count: RwLock::new(Some(count)),
        })))
    }

    pub(super) fn downgrade(&self) -> WeakImage {
        WeakImage(Arc::downgrade(&self.0))
    }

    /// Release the count, for all holders; waits for a poll under way to return.
    pub(super) fn close(&self) {
        let count = write(&self.0.count).take();
        if let Some(count) = count {
            count.release();
        }
    }

    /// Call `body` with the image; `None` when it was taken away or is being, an error when the
    /// client was closed.
    #[inline]
    fn with<R>(&self, body: impl FnOnce(*mut c::aeron_image_t) -> R) -> Option<Result<R>> {
        let guard = self.0.count.try_read().ok()?;
        let count = guard.as_ref()?;
        let entered = count.client.enter_or_closed();
        Some(entered.map(|_entered| body(count.image)))
    }

    fn read<R>(&self, closed: R, read: impl FnOnce(*mut c::aeron_image_t) -> R) -> R {
        match self.with(read) {
            Some(Ok(value)) => value,
            _ => closed,
        }
    }

    pub fn position(&self) -> i64 {
        // SAFETY: the image is retained and the client open within the call.
        self.read(-1, |image| unsafe { c::aeron_image_position(image) })
    }

    pub fn is_closed(&self) -> bool {
        // SAFETY: as above.
        self.read(true, |image| unsafe { c::aeron_image_is_closed(image) })
    }

    pub fn is_end_of_stream(&self) -> bool {
        // SAFETY: as above.
        self.read(true, |image| unsafe {
            c::aeron_image_is_end_of_stream(image)
        })
    }

    /// Over how many transports (sources and destinations) the stream comes now.
    pub fn active_transport_count(&self) -> i32 {
        // SAFETY: as above.
        self.read(0, |image| unsafe {
            c::aeron_image_active_transport_count(image)
        })
    }

    /// Whether the publisher withdrew the stream, what had not been read of it included.
    pub fn is_publication_revoked(&self) -> bool {
        // SAFETY: as above.
        self.read(false, |image| unsafe {
            c::aeron_image_is_publication_revoked(image)
        })
    }

    /// Reject the image: the driver disconnects the publisher and sends it the reason.
    fn reject(&self, reason: &CStr) -> Result<()> {
        let rejected = self.with(|image| {
            // SAFETY: the image is retained, the client open, and the reason copied by the call.
            match unsafe { c::aeron_image_reject(image, reason.as_ptr()) } {
                ..0 => Err(last_error("cannot reject the image")),
                _ => Ok(()),
            }
        });
        rejected.unwrap_or(Ok(Ok(())))?
    }

    /// Hand the next whole frames of a term, as one block of at most `limit` bytes, to
    /// `handler(block, session id, term id)`. Returns the bytes consumed, `None` when nothing more
    /// will come: at the end of the stream, and when the subscription is closed. A block that
    /// begins with a padding frame is just that frame.
    #[inline]
    pub fn block_poll(&self, limit: usize, mut handler: BlockHandler<'_>) -> Result<Option<usize>> {
        unsafe extern "C-unwind" fn on_block(
            clientd: *mut c_void,
            buffer: *const u8,
            length: usize,
            session_id: i32,
            term_id: i32,
        ) {
            // SAFETY: clientd is the handler of the call below; the block is `length` bytes of
            // a mapped term that is not written any more.
            unsafe {
                let handler = &mut *clientd.cast::<BlockHandler<'_>>();
                handler(
                    std::slice::from_raw_parts(buffer, length),
                    session_id,
                    term_id,
                );
            }
        }
        let clientd = (&raw mut handler).cast::<c_void>();
        let polled = self.with(|image| {
            // SAFETY: the image is retained, the client open; `handler` outlives the call.
            unsafe {
                match c::aeron_image_block_poll(image, Some(on_block), clientd, limit) {
                    ..0 => Err(last_error("cannot poll the image")),
                    0 if c::aeron_image_is_end_of_stream(image)
                        || c::aeron_image_is_closed(image) =>
                    {
                        Ok(None)
                    }
                    read => Ok(Some(read as usize)),
                }
            }
        });
        polled.unwrap_or(Ok(Ok(None)))?
    }

    /// Hand up to `limit` fragments that begin before `limit_position` to `handler`.
    pub(super) fn bounded_poll(
        &self,
        limit_position: i64,
        limit: usize,
        mut handler: FragmentHandler<'_>,
    ) -> Result<usize> {
        let clientd = (&raw mut handler).cast::<c_void>();
        let polled = self.with(|image| {
            // SAFETY: the image is retained, the client open; `handler` outlives the call.
            let read = unsafe {
                let handler = Some(on_fragment as _);
                c::aeron_image_bounded_poll(image, handler, clientd, limit_position, limit)
            };
            usize::try_from(read).map_err(|_| last_error("cannot poll the image"))
        });
        polled.unwrap_or(Ok(Ok(0)))?
    }
}

/// A fragment that is being polled.
pub(super) struct Fragment {
    values: c::aeron_header_values_t,
    /// After it, bytes.
    pub position: i64,
    image: *mut c::aeron_image_t,
}

impl Fragment {
    /// The session of its publication, also when it is replayed.
    pub fn session_id(&self) -> i32 {
        self.values.frame.session_id
    }

    pub fn header(&self, recorded_as: Option<RecordedAs>) -> Header {
        Header::new(&self.values, self.position, recorded_as)
    }

    /// The correlation id of its image.
    pub fn image_correlation_id(&self) -> Option<i64> {
        let mut constants = MaybeUninit::<c::aeron_image_constants_t>::uninit();
        // SAFETY: the image is being polled, and the struct is filled in when C answers 0.
        unsafe {
            (c::aeron_image_constants(self.image, constants.as_mut_ptr()) == 0)
                .then(|| constants.assume_init().correlation_id)
        }
    }
}

/// The C fragment handler that calls a Rust closure; `clientd` is a `*mut FragmentHandler`.
pub(super) unsafe extern "C-unwind" fn on_fragment(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    header: *mut c::aeron_header_t,
) {
    let mut values = MaybeUninit::<c::aeron_header_values_t>::uninit();
    // SAFETY: clientd is the handler of the poll under way; payload and header are valid for
    // the duration of this call.
    unsafe {
        if c::aeron_header_values(header, values.as_mut_ptr()) < 0 {
            return;
        }
        let fragment = Fragment {
            values: values.assume_init(),
            position: c::aeron_header_position(header),
            image: c::aeron_header_context(header).cast(),
        };
        let handler = &mut *clientd.cast::<FragmentHandler<'_>>();
        handler(std::slice::from_raw_parts(buffer, length), &fragment);
    }
}

#[pyclass(frozen, extends = ImageConstants, module = "aerotape._native")]
pub struct Image {
    constants: ImageConstants,
    handle: Mutex<Option<ImageHandle>>,
}

impl Image {
    pub fn new(handle: ImageHandle) -> Self {
        Self {
            constants: handle.0.constants.clone(),
            handle: Mutex::new(Some(handle)),
        }
    }

    /// Take the image over, leaving this object closed.
    pub fn take(&self) -> Result<ImageHandle> {
        let taken = self.lock().take();
        taken.ok_or_else(|| self.gone())
    }

    /// Another handle to the image, for the time of a call.
    pub(super) fn share(&self) -> Result<ImageHandle> {
        self.lock().clone().ok_or_else(|| self.gone())
    }

    fn gone(&self) -> Error {
        Error::Closed(format!(
            "the image of session {} is gone",
            self.constants.session_id
        ))
    }

    fn lock(&self) -> MutexGuard<'_, Option<ImageHandle>> {
        lock(&self.handle)
    }
}

impl<'py> IntoPyObject<'py> for Image {
    type Target = Self;
    type Output = Bound<'py, Self>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let constants = PyClassInitializer::from(self.constants.clone());
        Bound::new(py, constants.add_subclass(self))
    }
}

#[pymethods]
impl Image {
    #[getter]
    fn position(&self) -> i64 {
        self.lock().as_ref().map_or(-1, ImageHandle::position)
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.lock().as_ref().is_none_or(ImageHandle::is_closed)
    }

    #[getter]
    fn is_end_of_stream(&self) -> bool {
        self.lock()
            .as_ref()
            .is_none_or(ImageHandle::is_end_of_stream)
    }

    #[getter]
    fn active_transport_count(&self) -> i32 {
        self.lock()
            .as_ref()
            .map_or(0, ImageHandle::active_transport_count)
    }

    #[getter]
    fn is_publication_revoked(&self) -> bool {
        self.lock()
            .as_ref()
            .is_some_and(ImageHandle::is_publication_revoked)
    }

    fn skip_to(&self, position: i64, fragment_limit: usize) -> PyResult<usize> {
        let image = self.share()?;
        Ok(image.bounded_poll(position, fragment_limit, &mut |_, _| {})?)
    }

    fn reject(&self, reason: &str) -> PyResult<()> {
        let reason = CString::new(reason.replace('\0', " ")).unwrap_or_default();
        if let Some(handle) = self.lock().as_ref() {
            handle.reject(&reason)?;
        }
        Ok(())
    }

    fn release(&self) {
        let handle = self.lock().take();
        drop(handle);
    }
}
