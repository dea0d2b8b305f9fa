//! Subscriptions: polling messages, and reporting images to a mailbox.

use super::client::{ADD_TIMEOUT_NS, AeronClient};
use super::destination::PendingDestination;
use super::guarded::Guarded;
use super::image::{Fragment, Image, ImageHandle, on_fragment};
use super::image_listener::{Assemblers, ImageListener, Images, on_closed};
use super::interpreter::released;
use super::message_reader::poll_within;
use super::{constants, last_error};
use crate::assembly::{Assembler, Header, Messages, RecordedAs};
use crate::errors::{Error, Result};
use crate::mailbox::{ControlMessage, Event, MAX_REQUEST_LENGTH};
use pyo3::prelude::*;
use rusteron_client::bindings as c;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};

/// A subscription shared with the threads that poll it.
#[pyclass(frozen, from_py_object, module = "aerotape._native")]
#[derive(Clone)]
pub struct Subscription(Arc<Shared>);

struct Shared {
    cell: Guarded<c::aeron_subscription_t>,
    listening: Arc<ImageListener>,
    channel: String,
    stream_id: i32,
    registration_id: i64,
    endpoint: OnceLock<String>,
}

impl Subscription {
    /// Call inside the client.
    pub(super) fn new(
        client: AeronClient,
        subscription: *mut c::aeron_subscription_t,
        listening: Arc<ImageListener>,
    ) -> Result<Self> {
        // SAFETY: the caller has entered the client, whose subscription this is; the channel lives
        // as long as the subscription.
        let (raw, channel) = unsafe {
            let raw: c::aeron_subscription_constants_t =
                constants(|raw| c::aeron_subscription_constants(subscription, raw))?;
            let channel = CStr::from_ptr(raw.channel).to_string_lossy().into_owned();
            (raw, channel)
        };
        Ok(Self(Arc::new(Shared {
            cell: Guarded::new(client, subscription, "subscription"),
            listening,
            channel,
            stream_id: raw.stream_id,
            registration_id: raw.registration_id,
            endpoint: OnceLock::new(),
        })))
    }

    /// Do the work of the client's conductor, see `AeronClient::help`.
    pub fn help_client(&self) -> bool {
        self.0.cell.client().help()
    }

    /// Poll the images and append each whole message as an event, of a long one only its beginning.
    pub fn poll_into(&self, limit: usize, events: &mut Vec<Event>) -> Result<usize> {
        let for_requests = || Assembler::keeping(MAX_REQUEST_LENGTH);
        self.poll_messages(limit, None, for_requests, |fragment, payload, first| {
            if let Some(image_correlation_id) = fragment.image_correlation_id() {
                events.push(Event::Message(ControlMessage {
                    subscription_registration_id: self.0.registration_id,
                    image_correlation_id,
                    session_id: first.session_id,
                    payload: payload.to_vec(),
                }));
            }
        })
    }

    /// Poll the images and collect the whole messages.
    fn collect(
        &self,
        limit: usize,
        recorded_as: Option<RecordedAs>,
        messages: &mut Messages,
    ) -> Result<usize> {
        self.poll_messages(
            limit,
            recorded_as,
            Assembler::default,
            |fragment, payload, first| messages.push(payload, first, fragment.position),
        )
    }

    /// Poll up to `limit` fragments of all images; return how many there were. Each message is
    /// handed on with its last fragment and the header of its first one.
    fn poll_messages(
        &self,
        limit: usize,
        recorded_as: Option<RecordedAs>,
        new_assembler: impl Fn() -> Assembler,
        mut on_message: impl FnMut(&Fragment, &[u8], &Header),
    ) -> Result<usize> {
        let mut images = self.0.listening.images();
        let assemblers = &mut images.assemblers;
        let mut handle = |payload: &[u8], fragment: &Fragment| {
            assembler_of(assemblers, fragment.session_id(), &new_assembler).on_fragment(
                payload,
                fragment.header(recorded_as),
                fragment.position,
                &mut |payload, first, _| on_message(fragment, payload, first),
            );
        };
        let mut handler: &mut dyn FnMut(&[u8], &Fragment) = &mut handle;
        let clientd = (&raw mut handler).cast::<c_void>();
        // SAFETY: the pointer is valid within the call and the handler outlives it; the lock on
        // the images keeps other readers of C's image lists away.
        let read = self.0.cell.call(|subscription| unsafe {
            c::aeron_subscription_poll(subscription, Some(on_fragment), clientd, limit)
        })?;
        usize::try_from(read).map_err(|_| last_error("cannot poll the subscription"))
    }

    /// Read C's list of images, which has one reader at a time.
    fn read_images<R>(
        &self,
        closed: R,
        read: impl FnOnce(*mut c::aeron_subscription_t, &mut Images) -> R,
    ) -> R {
        let mut images = self.0.listening.images();
        let read = |subscription| read(subscription, &mut images);
        self.0.cell.with(read).unwrap_or(closed)
    }

    /// Retain each image that the subscription has now.
    fn retain_images(&self) -> Vec<ImageHandle> {
        let client = self.0.cell.client();
        self.read_images(Vec::new(), |subscription, images| {
            let mut found = Vec::<ImageHandle>::new();
            // The list may change between two reads: an image that moved is seen twice.
            for index in 0.. {
                // SAFETY: the pointer is valid within the call, and the lock on the images keeps
                // C from freeing what is in the list; C counts the image for us.
                let image = unsafe {
                    let image = c::aeron_subscription_image_at_index(subscription, index);
                    if image.is_null() {
                        break;
                    }
                    ImageHandle::adopt(client.clone(), subscription, image)
                };
                let Some(image) = image else { continue };
                let id = image.correlation_id;
                if found.iter().all(|other| other.correlation_id != id) {
                    found.push(image);
                }
            }
            if !images.is_open {
                return Vec::new();
            }
            images.hand_out(&found);
            found
        })
    }
}

/// The assembler of a session. A new one replaces those that are not within a message: sessions
/// come and go while the subscription is open.
fn assembler_of(
    assemblers: &mut Assemblers,
    session_id: i32,
    new: impl FnOnce() -> Assembler,
) -> &mut Assembler {
    if !assemblers.contains_key(&session_id) {
        assemblers.retain(|_, assembler| assembler.is_in_message());
    }
    assemblers.entry(session_id).or_insert_with(new)
}

impl Shared {
    fn close(&self) {
        self.listening.close_images();
        self.cell.take(|subscription| {
            // SAFETY: taken out, so the subscription is not used after this; what the
            // callbacks work on is retained until C has closed it.
            unsafe {
                if self.listening.has_callbacks() {
                    let clientd = self.listening.clientd();
                    c::aeron_subscription_close(subscription, Some(on_closed), clientd);
                } else {
                    c::aeron_subscription_close(subscription, None, null_mut());
                }
            }
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        released(|| self.close());
    }
}

#[pymethods]
impl Subscription {
    #[getter]
    fn channel(&self) -> &str {
        &self.0.channel
    }

    #[getter]
    fn stream_id(&self) -> i32 {
        self.0.stream_id
    }

    #[getter]
    fn registration_id(&self) -> i64 {
        self.0.registration_id
    }

    #[getter]
    fn is_connected(&self) -> bool {
        // SAFETY: the pointer is valid within the call.
        self.read_images(false, |subscription, _| unsafe {
            c::aeron_subscription_is_connected(subscription)
        })
    }

    #[getter]
    fn is_closed(&self) -> bool {
        // SAFETY: the pointer is valid within the call.
        let is_closed = |subscription| unsafe { c::aeron_subscription_is_closed(subscription) };
        self.0.cell.with(is_closed).unwrap_or(true)
    }

    #[getter]
    fn image_count(&self) -> i32 {
        // SAFETY: the pointer is valid within the call.
        self.read_images(0, |subscription, _| unsafe {
            c::aeron_subscription_image_count(subscription)
        })
    }

    fn images(&self) -> Vec<Image> {
        self.retain_images().into_iter().map(Image::new).collect()
    }

    fn image_by_session_id(&self, session_id: i32) -> Option<Image> {
        let has_session = |image: &ImageHandle| image.session_id == session_id;
        let found = self.retain_images().into_iter().find(has_session);
        found.map(Image::new)
    }

    #[pyo3(signature = (fragment_limit=10, timeout_ns=0, recorded_as=None))]
    fn poll<'py>(
        &self,
        py: Python<'py>,
        fragment_limit: usize,
        timeout_ns: u64,
        recorded_as: Option<RecordedAs>,
    ) -> PyResult<Bound<'py, pyo3::types::PyList>> {
        poll_within(py, timeout_ns, |messages| {
            self.collect(fragment_limit, recorded_as, messages)
                .map(Some)
        })
    }

    fn async_add_destination(&self, channel: &str) -> Result<PendingDestination> {
        PendingDestination::add(&self.0.cell, channel)
    }

    fn async_remove_destination(&self, channel: &str) -> Result<PendingDestination> {
        PendingDestination::remove(&self.0.cell, channel)
    }

    #[pyo3(signature = (channel, timeout_ns=ADD_TIMEOUT_NS))]
    fn add_destination(&self, py: Python<'_>, channel: &str, timeout_ns: u64) -> PyResult<()> {
        self.async_add_destination(channel)?
            .wait(py, timeout_ns, channel)
    }

    #[pyo3(signature = (channel, timeout_ns=ADD_TIMEOUT_NS))]
    fn remove_destination(&self, py: Python<'_>, channel: &str, timeout_ns: u64) -> PyResult<()> {
        self.async_remove_destination(channel)?
            .wait(py, timeout_ns, channel)
    }

    fn resolved_endpoint(&self) -> PyResult<Option<String>> {
        if let Some(endpoint) = self.0.endpoint.get() {
            return Ok(Some(endpoint.clone()));
        }
        let mut address = [0u8; 256];
        // SAFETY: the pointer is valid within the call and the buffer has the given length.
        let found = self.0.cell.call(|subscription| unsafe {
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
                    .map_err(|_| Error::Aeron {
                        code: libc::EINVAL,
                        message: "cannot resolve the endpoint: its address has no end".into(),
                    })?;
                Ok(Some(self.0.endpoint.get_or_init(|| endpoint).clone()))
            }
            _ => Err(last_error("cannot resolve the endpoint").into()),
        }
    }

    fn close(&self, py: Python<'_>) {
        // A worker may be writing what it polled, and its image is taken away after that.
        py.detach(|| self.0.close());
    }
}
