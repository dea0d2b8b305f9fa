//! Image callbacks of a subscription, and access to its images.
//!
//! Two rules of the C client are observed here. Its lists of images have one reader at a time: a
//! list is freed once a reader has seen a newer one. And a subscription that is closed while one of
//! its images is retained decrements that image's count twice, which frees it while it is in use:
//! so each image is taken away from its holders before the C subscription is closed.

use super::client::{AeronClient, WeakClient, in_callback};
use super::image::{ImageHandle, WeakImage};
use super::lock;
use crate::assembly::Assembler;
use crate::mailbox::{Event, ImageUnavailable, Mailbox};
use rusteron_client::bindings as c;
use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::{MaybeUninit, take};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard};

/// One for each subscription. With an audience the client owns it too, since the C subscription
/// points at it, until C reports that it no longer does.
pub(super) struct ImageListener {
    client: WeakClient,
    audience: Option<Audience>,
    images: Mutex<Images>,
}

/// Where available and, optionally, unavailable images are reported.
pub struct Audience {
    pub mailbox: Mailbox,
    pub with_losses: bool,
}

/// The images of a subscription; the lock protects C's list of them.
pub(super) struct Images {
    /// False once the subscription is being closed: no image is retained after that.
    pub is_open: bool,
    /// Images that other objects hold: announced ones, and requested ones.
    handed_out: Vec<WeakImage>,
    pub assemblers: Assemblers,
}

/// Unfinished messages by session.
pub(super) type Assemblers = HashMap<i32, Assembler>;

impl Images {
    /// Add images that others hold, and forget those that they released.
    pub fn hand_out<'a>(&mut self, images: impl IntoIterator<Item = &'a ImageHandle>) {
        self.handed_out.retain(WeakImage::is_held);
        self.handed_out
            .extend(images.into_iter().map(ImageHandle::downgrade));
    }
}

/// The two image callbacks and their state, as C wants them.
pub(super) type Callbacks = (Option<OnImage>, Option<OnImage>, *mut c_void);

type OnImage =
    unsafe extern "C" fn(*mut c_void, *mut c::aeron_subscription_t, *mut c::aeron_image_t);

impl ImageListener {
    /// For a subscription about to be added; with an audience, C's callbacks point here.
    pub fn new(client: &AeronClient, audience: Option<Audience>) -> Arc<Self> {
        let has_callbacks = audience.is_some();
        let listening = Arc::new(Self {
            client: client.downgrade(),
            audience,
            images: Mutex::new(Images {
                is_open: true,
                handed_out: Vec::new(),
                assemblers: HashMap::new(),
            }),
        });
        if has_callbacks {
            client.keep(listening.clone());
        }
        listening
    }

    pub fn has_callbacks(&self) -> bool {
        self.audience.is_some()
    }

    pub fn callbacks(self: &Arc<Self>) -> Callbacks {
        if self.has_callbacks() {
            (Some(on_available), Some(on_unavailable), self.clientd())
        } else {
            (None, None, null_mut())
        }
    }

    pub fn clientd(self: &Arc<Self>) -> *mut c_void {
        Arc::as_ptr(self).cast_mut().cast()
    }

    pub fn images(&self) -> MutexGuard<'_, Images> {
        lock(&self.images)
    }

    /// Take all images away from their holders, for whom they are closed then. Waits for a poll
    /// under way to return.
    pub fn close_images(&self) {
        let mut images = self.images();
        images.is_open = false;
        let handed_out = take(&mut images.handed_out);
        images.assemblers.clear();
        drop(images);
        for image in handed_out.iter().filter_map(WeakImage::upgrade) {
            image.close();
        }
    }
}

unsafe extern "C" fn on_available(
    clientd: *mut c_void,
    subscription: *mut c::aeron_subscription_t,
    image: *mut c::aeron_image_t,
) {
    in_callback(|| {
        // SAFETY: the client keeps what clientd points at until C calls no more.
        let listening = unsafe { &*clientd.cast_const().cast::<ImageListener>() };
        let (Some(client), Some(audience)) = (listening.client.upgrade(), &listening.audience)
        else {
            return;
        };
        let mut images = listening.images();
        if !images.is_open {
            return;
        }
        // SAFETY: C calls this on its conductor thread with the image in the subscription's list.
        let Some(image) = (unsafe { ImageHandle::retain(client, subscription, image) }) else {
            return;
        };
        images.hand_out([&image]);
        audience.mailbox.post(Event::ImageAvailable(image));
    });
}

unsafe extern "C" fn on_unavailable(
    clientd: *mut c_void,
    subscription: *mut c::aeron_subscription_t,
    image: *mut c::aeron_image_t,
) {
    in_callback(|| {
        let mut constants = MaybeUninit::<c::aeron_image_constants_t>::uninit();
        let mut of_subscription = MaybeUninit::<c::aeron_subscription_constants_t>::uninit();
        // SAFETY: as for `on_available`; C keeps both objects valid for this call.
        let (listening, constants, of_subscription) = unsafe {
            if c::aeron_image_constants(image, constants.as_mut_ptr()) < 0
                || c::aeron_subscription_constants(subscription, of_subscription.as_mut_ptr()) < 0
            {
                return;
            }
            (
                &*clientd.cast_const().cast::<ImageListener>(),
                constants.assume_init(),
                of_subscription.assume_init(),
            )
        };
        let correlation_id = constants.correlation_id;
        let mut images = listening.images();
        images.assemblers.remove(&constants.session_id);
        if images.is_open {
            // No thread reads an older list while the lock is held. C retains an image and its
            // log buffers until a list without it was read, and only control subscriptions are
            // polled.
            // SAFETY: as above.
            unsafe { c::aeron_subscription_image_count(subscription) };
        }
        drop(images);
        if let Some(audience) = listening.audience.as_ref().filter(|each| each.with_losses) {
            audience
                .mailbox
                .post(Event::ImageUnavailable(ImageUnavailable {
                    subscription_registration_id: of_subscription.registration_id,
                    image_correlation_id: correlation_id,
                }));
        }
    });
}

/// C has closed a subscription, or never made it, and calls its callbacks no more.
pub(super) unsafe extern "C" fn on_closed(clientd: *mut c_void) {
    in_callback(|| {
        let pointer = clientd.cast_const().cast::<ImageListener>();
        // SAFETY: the client keeps it until `forget`, which comes next, or its own end.
        if let Some(client) = unsafe { &*pointer }.client.upgrade() {
            client.forget(pointer);
        }
    });
}
