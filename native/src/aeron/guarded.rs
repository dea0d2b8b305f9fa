//! A C object that can be closed while other threads call it.

use super::client::AeronClient;
use super::{read, write};
use crate::errors::{Error, Result};
use std::sync::RwLock;

/// A pointer into the C client, valid until it is taken or its client closes.
pub(super) struct Guarded<T> {
    client: AeronClient,
    pointer: RwLock<Option<Pointer<T>>>,
    what: &'static str,
}

struct Pointer<T>(*mut T);

// SAFETY: the C client's objects may be used from any thread; the locks of `Guarded` keep a
// call and a close apart, and the users of a cell keep to Aeron's rule of one polling or
// publishing thread at a time where there is one (a mutex above, or a single owner).
unsafe impl<T> Send for Pointer<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Pointer<T> {}

impl<T> Guarded<T> {
    pub fn new(client: AeronClient, pointer: *mut T, what: &'static str) -> Self {
        Self {
            client,
            pointer: RwLock::new(Some(Pointer(pointer))),
            what,
        }
    }

    pub fn client(&self) -> &AeronClient {
        &self.client
    }

    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Call `body` with the pointer, which is valid for the duration of the call.
    #[inline]
    pub fn with<R>(&self, body: impl FnOnce(*mut T) -> R) -> Option<R> {
        let _entered = self.client.enter()?;
        let pointer = read(&self.pointer);
        pointer.as_ref().map(|pointer| body(pointer.0))
    }

    #[inline]
    pub fn call<R>(&self, body: impl FnOnce(*mut T) -> R) -> Result<R> {
        self.with(body).ok_or_else(|| self.closed())
    }

    fn closed(&self) -> Error {
        Error::Closed(format!("the {} is closed", self.what))
    }

    /// Take the pointer away for good and hand it to `close`, unless that was done before or
    /// the client has freed it already.
    pub fn take(&self, close: impl FnOnce(*mut T)) {
        let Some(_entered) = self.client.enter() else {
            return;
        };
        let taken = write(&self.pointer).take();
        if let Some(pointer) = taken {
            close(pointer.0);
        }
    }

    pub fn is_open(&self) -> bool {
        self.with(|_| ()).is_some()
    }
}
