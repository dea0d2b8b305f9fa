//! Subscriptions: polling messages, and telling a mailbox about images.

use super::cell::ClientCell;
use super::client::ClientHandle;
use super::image::{Image, ImageHandle, on_fragment};
use super::last_error;
use crate::assembly::{Assembler, Header, Messages};
use crate::errors::{Error, Result};
use crate::idle::Backoff;
use crate::mailbox::{Event, MailboxHandle};
use pyo3::prelude::*;
use rusteron_client::bindings as c;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// What a subscription's image callbacks work on, when its images are announced in a mailbox.
///
/// The C subscription holds one count of it, given back when C says the subscription is closed
/// (or never, when the whole client is closed first: a few bytes each).
#[derive(Clone)]
pub struct ImageListener(Arc<Listening>);

struct Listening {
    client: ClientHandle,
    mailbox: MailboxHandle,
    images: Mutex<Vec<Tracked>>,
}

/// An image that is polled by itself, so that messages can be told apart by image.
struct Tracked {
    image: ImageHandle,
    assembler: Assembler,
}

type OnImage =
    unsafe extern "C" fn(*mut c_void, *mut c::aeron_subscription_t, *mut c::aeron_image_t);

impl ImageListener {
    pub(super) fn new(client: &ClientHandle, mailbox: MailboxHandle) -> Self {
        let images = Mutex::new(Vec::new());
        Self(Arc::new(Listening {
            client: client.clone(),
            mailbox,
            images,
        }))
    }

    /// The callbacks and their state; the caller hands them to exactly one C subscription.
    pub(super) fn callbacks(&self) -> (Option<OnImage>, Option<OnImage>, *mut c_void) {
        let clientd = Arc::into_raw(self.0.clone()).cast_mut().cast::<c_void>();
        (Some(on_available), Some(on_unavailable), clientd)
    }
}

unsafe extern "C" fn on_available(
    clientd: *mut c_void,
    subscription: *mut c::aeron_subscription_t,
    image: *mut c::aeron_image_t,
) {
    // SAFETY: clientd is the count that the subscription holds; C calls this on its conductor
    // thread with the image in the subscription's list.
    unsafe {
        let listening = &*clientd.cast_const().cast::<Listening>();
        let retained = ImageHandle::retain(listening.client.clone(), subscription, image);
        let tracked = ImageHandle::retain(listening.client.clone(), subscription, image);
        if let (Some(retained), Some(tracked)) = (retained, tracked) {
            let tracked = Tracked {
                image: tracked,
                assembler: Assembler::default(),
            };
            lock(&listening.images).push(tracked);
            listening.mailbox.post(Event::ImageAvailable(retained));
        }
    }
}

unsafe extern "C" fn on_unavailable(
    clientd: *mut c_void,
    subscription: *mut c::aeron_subscription_t,
    image: *mut c::aeron_image_t,
) {
    let mut constants = MaybeUninit::<c::aeron_image_constants_t>::uninit();
    let mut of_subscription = MaybeUninit::<c::aeron_subscription_constants_t>::uninit();
    // SAFETY: as for `on_available`; C keeps both objects valid for this call.
    unsafe {
        if c::aeron_image_constants(image, constants.as_mut_ptr()) < 0
            || c::aeron_subscription_constants(subscription, of_subscription.as_mut_ptr()) < 0
        {
            return;
        }
        let listening = &*clientd.cast_const().cast::<Listening>();
        let correlation_id = constants.assume_init().correlation_id;
        lock(&listening.images).retain(|tracked| tracked.image.correlation_id() != correlation_id);
        listening.mailbox.post(Event::ImageUnavailable {
            subscription_registration_id: of_subscription.assume_init().registration_id,
            image_correlation_id: correlation_id,
        });
    }
}

unsafe extern "C" fn on_closed(clientd: *mut c_void) {
    // SAFETY: the count made by `callbacks`, given back once.
    drop(unsafe { Arc::from_raw(clientd.cast_const().cast::<Listening>()) });
}

/// A subscription shared with whoever polls it.
#[derive(Clone)]
pub struct SubscriptionHandle(Arc<Shared>);

struct Shared {
    cell: ClientCell<c::aeron_subscription_t>,
    listener: Option<ImageListener>,
    channel: String,
    stream_id: i32,
    registration_id: i64,
    /// Fragments of unfinished messages by session; locked by whoever polls.
    assemblers: Mutex<HashMap<i32, Assembler>>,
    endpoint: OnceLock<String>,
}

impl SubscriptionHandle {
    fn new(
        client: ClientHandle,
        subscription: *mut c::aeron_subscription_t,
        listener: Option<ImageListener>,
    ) -> Self {
        let mut raw = MaybeUninit::<c::aeron_subscription_constants_t>::uninit();
        // SAFETY: C has just given us the subscription, fills in the struct, and the channel
        // lives as long as the subscription.
        let (channel, stream_id, registration_id) = unsafe {
            c::aeron_subscription_constants(subscription, raw.as_mut_ptr());
            let raw = raw.assume_init();
            let channel = CStr::from_ptr(raw.channel).to_string_lossy().into_owned();
            (channel, raw.stream_id, raw.registration_id)
        };
        Self(Arc::new(Shared {
            cell: ClientCell::new(client, subscription, "subscription"),
            listener,
            channel,
            stream_id,
            registration_id,
            assemblers: Mutex::new(HashMap::new()),
            endpoint: OnceLock::new(),
        }))
    }

    pub fn registration_id(&self) -> i64 {
        self.0.registration_id
    }

    /// Poll image by image and post each whole message as an event; returns the fragments read.
    pub fn poll_into(&self, limit: usize, events: &mut Vec<Event>) -> usize {
        let Some(ImageListener(listening)) = &self.0.listener else {
            return 0;
        };
        let mut images = lock(&listening.images);
        let mut fragments = 0;
        for Tracked { image, assembler } in images.iter_mut() {
            let constants = image.constants().clone();
            let mut on_message = |payload: &[u8], _: &Header, position: i64| {
                events.push(Event::Message {
                    subscription_registration_id: constants.subscription_registration_id,
                    image_correlation_id: constants.correlation_id,
                    session_id: constants.session_id,
                    payload: payload.to_vec(),
                    position,
                });
            };
            let polled = image.poll(limit, &mut |payload, header, position| {
                assembler.on_fragment(payload, header, position, &mut on_message);
            });
            fragments += polled.unwrap_or(0);
        }
        fragments
    }

    /// Poll fragments of all images and keep the messages they complete.
    fn poll(&self, limit: usize, messages: &mut Messages) -> Result<usize> {
        let mut assemblers = lock(&self.0.assemblers);
        let mut handle = |payload: &[u8], header: &c::aeron_header_values_t, position: i64| {
            let assembler = assemblers.entry(header.frame.session_id).or_default();
            assembler.on_fragment(
                payload,
                header,
                position,
                &mut |payload, header, position| {
                    messages.push(payload, header, position);
                },
            );
        };
        let mut handler: &mut dyn FnMut(&[u8], &c::aeron_header_values_t, i64) = &mut handle;
        let clientd = (&raw mut handler).cast::<c_void>();
        // SAFETY: the pointer is valid within the call and the handler outlives it.
        let read = self.0.cell.call(|subscription| unsafe {
            c::aeron_subscription_poll(subscription, Some(on_fragment), clientd, limit)
        })?;
        usize::try_from(read).map_err(|_| last_error("cannot poll the subscription"))
    }

    fn close(&self) {
        self.0.close();
    }
}

impl Shared {
    fn close(&self) {
        self.cell.take(|subscription| {
            // SAFETY: taken out for good, so nobody uses the subscription after this; the
            // listener's count is given back when C is done with the callbacks.
            unsafe {
                match &self.listener {
                    Some(listener) => {
                        lock(&listener.0.images).clear();
                        let clientd = Arc::as_ptr(&listener.0).cast_mut().cast::<c_void>();
                        c::aeron_subscription_close(subscription, Some(on_closed), clientd);
                    }
                    None => {
                        c::aeron_subscription_close(subscription, None, null_mut());
                    }
                }
            }
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.close();
    }
}

#[pyclass(frozen, module = "aerotape._native")]
pub struct Subscription {
    handle: SubscriptionHandle,
}

impl Subscription {
    pub(super) fn new(
        client: ClientHandle,
        subscription: *mut c::aeron_subscription_t,
        listener: Option<ImageListener>,
    ) -> Self {
        Self {
            handle: SubscriptionHandle::new(client, subscription, listener),
        }
    }

    pub fn handle(&self) -> SubscriptionHandle {
        self.handle.clone()
    }

    fn read<R>(&self, closed: R, read: impl FnOnce(*mut c::aeron_subscription_t) -> R) -> R {
        self.handle.0.cell.with(read).unwrap_or(closed)
    }
}

/// What `for_each_image` gathers: the client to keep, the subscription, and the images.
struct Gather {
    client: ClientHandle,
    subscription: *mut c::aeron_subscription_t,
    images: Vec<ImageHandle>,
}

unsafe extern "C" fn gather(image: *mut c::aeron_image_t, clientd: *mut c_void) {
    // SAFETY: clientd is the `Gather` of the call under way; C walks the subscription's current
    // image list, so the image is in it.
    unsafe {
        let gather = &mut *clientd.cast::<Gather>();
        let retained = ImageHandle::retain(gather.client.clone(), gather.subscription, image);
        gather.images.extend(retained);
    }
}

#[pymethods]
impl Subscription {
    #[getter]
    fn channel(&self) -> &str {
        &self.handle.0.channel
    }

    #[getter]
    fn stream_id(&self) -> i32 {
        self.handle.0.stream_id
    }

    #[getter]
    fn registration_id(&self) -> i64 {
        self.handle.0.registration_id
    }

    #[getter]
    fn is_connected(&self) -> bool {
        // SAFETY: the pointer is valid within the call.
        self.read(false, |subscription| unsafe {
            c::aeron_subscription_is_connected(subscription)
        })
    }

    #[getter]
    fn is_closed(&self) -> bool {
        // SAFETY: the pointer is valid within the call.
        self.read(true, |subscription| unsafe {
            c::aeron_subscription_is_closed(subscription)
        })
    }

    #[getter]
    fn image_count(&self) -> i32 {
        // SAFETY: the pointer is valid within the call.
        self.read(0, |subscription| unsafe {
            c::aeron_subscription_image_count(subscription)
        })
    }

    fn images(&self) -> Vec<Image> {
        let client = self.handle.0.cell.client().clone();
        let gathered = self.read(Vec::new(), |subscription| {
            let mut state = Gather {
                client,
                subscription,
                images: Vec::new(),
            };
            let clientd = (&raw mut state).cast::<c_void>();
            // SAFETY: the pointer is valid within the call and the state outlives it.
            unsafe { c::aeron_subscription_for_each_image(subscription, Some(gather), clientd) };
            state.images
        });
        gathered.into_iter().map(Image::new).collect()
    }

    fn image_by_session_id(&self, session_id: i32) -> Option<Image> {
        let has_session = |image: &Image| image.constants().session_id == session_id;
        self.images().into_iter().find(has_session)
    }

    #[pyo3(signature = (fragment_limit=10, timeout_ns=0))]
    fn poll<'py>(
        &self,
        py: Python<'py>,
        fragment_limit: usize,
        timeout_ns: u64,
    ) -> PyResult<Bound<'py, pyo3::types::PyList>> {
        let mut messages = Messages::new(self.handle.0.stream_id);
        self.handle.poll(fragment_limit, &mut messages)?;
        if messages.is_empty() && timeout_ns > 0 {
            let deadline = Instant::now() + Duration::from_nanos(timeout_ns);
            while messages.is_empty() {
                let slice = deadline.min(Instant::now() + Duration::from_millis(100));
                py.detach(|| -> Result<()> {
                    let mut idle = Backoff::default();
                    while messages.is_empty() && Instant::now() < slice {
                        if self.handle.poll(fragment_limit, &mut messages)? > 0 {
                            idle.reset();
                        } else {
                            idle.idle();
                        }
                    }
                    Ok(())
                })?;
                py.check_signals()?;
                if Instant::now() >= deadline {
                    break;
                }
            }
        }
        messages.into_list(py)
    }

    fn resolved_endpoint(&self) -> PyResult<Option<String>> {
        if let Some(endpoint) = self.handle.0.endpoint.get() {
            return Ok(Some(endpoint.clone()));
        }
        let mut address = [0u8; 256];
        // SAFETY: the pointer is valid within the call and the buffer as long as said.
        let found = self.handle.0.cell.call(|subscription| unsafe {
            c::aeron_subscription_resolved_endpoint(
                subscription,
                address.as_mut_ptr().cast::<c_char>(),
                address.len(),
            )
        })?;
        match found {
            0 => Ok(None),
            count if count > 0 => {
                let endpoint = CStr::from_bytes_until_nul(&address)
                    .map(|text| text.to_string_lossy().into_owned())
                    .map_err(|_| Error::Closed("the endpoint is not a string".into()))?;
                Ok(Some(
                    self.handle.0.endpoint.get_or_init(|| endpoint).clone(),
                ))
            }
            _ => Err(last_error("cannot resolve the endpoint").into()),
        }
    }

    fn close(&self) {
        self.handle.close();
    }
}
