//! A response that is encoded before it may be sent.
//!
//! The conductor encodes it, a worker sends it as soon as its statement is true. So the client does
//! not wait for the conductor's next duty cycle.

use super::publication::{ExclusivePublication, ExclusivePublicationHandle, Slot};
use pyo3::prelude::*;

pub struct DeferredResponse {
    slot: Slot<ExclusivePublicationHandle>,
    message: Vec<u8>,
}

impl FromPyObject<'_, '_> for DeferredResponse {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let (publication, message): (Bound<'_, ExclusivePublication>, _) = object.extract()?;
        let slot = publication.get().share();
        Ok(Self { slot, message })
    }
}

impl DeferredResponse {
    /// Offer it once, and only if no other thread uses the publication; whether it was sent.
    pub fn send(&self) -> bool {
        self.slot.with_if_free(false, |handle| {
            handle.offer(&self.message, 0).is_ok_and(|it| it > 0)
        })
    }
}
