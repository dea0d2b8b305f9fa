//! An answer that is ready before it may be given.
//!
//! The conductor writes it, a worker sends it as soon as what it says is true: the client need not
//! wait until the conductor has come round to hear of that.

use super::publication::{ExclusivePublicationHandle, Slot};

pub struct DeferredResponse {
    slot: Slot<ExclusivePublicationHandle>,
    message: Vec<u8>,
}

impl DeferredResponse {
    pub(super) fn new(slot: Slot<ExclusivePublicationHandle>, message: Vec<u8>) -> Self {
        Self { slot, message }
    }

    /// Offer it once, and only if nobody else is about to send; whether it went out.
    pub fn send(&self) -> bool {
        self.slot.with_if_free(false, |handle| {
            handle.offer(&self.message, 0).is_ok_and(|it| it > 0)
        })
    }
}
