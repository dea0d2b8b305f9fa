//! The wait of the conductor's duty cycle: it polls control subscriptions and continues bulk offers
//! until there is something for Python.

use crate::aeron::{Sending, Subscription, SubscriptionHandle};
use crate::idle::{Backoff, sleep_precisely};
use crate::mailbox::{Event, MailboxHandle};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::time::{Duration, Instant};

/// Python's end of a mailbox.
#[pyclass(frozen, module = "aerotape._native")]
pub struct Mailbox(MailboxHandle);

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> Self {
        Self(MailboxHandle::default())
    }

    #[pyo3(signature = (
        subscriptions=Vec::new(), timeout_ns=0, fragment_limit=10, sendings=Vec::new()
    ))]
    fn wait(
        &self,
        py: Python<'_>,
        subscriptions: Vec<Py<Subscription>>,
        timeout_ns: u64,
        fragment_limit: usize,
        sendings: Vec<Py<Sending>>,
    ) -> PyResult<Vec<Py<PyTuple>>> {
        let handles: Vec<_> = subscriptions
            .iter()
            .map(|each| each.get().handle())
            .collect();
        let sendings: Vec<&Sending> = sendings.iter().map(Py::get).collect();
        let deadline = Instant::now() + Duration::from_nanos(timeout_ns);
        let events = py.detach(|| wait(&self.0, &handles, deadline, fragment_limit, &sendings));
        // Handles must not be the last owners of a subscription on a thread without the
        // interpreter; here it is held again.
        drop(handles);
        events
            .into_iter()
            .map(|event| Ok(event.into_tuple(py)?.unbind()))
            .collect()
    }

    fn wake(&self) {
        self.0.wake();
    }
}

impl<'py> FromPyObject<'_, 'py> for MailboxHandle {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(object.cast::<Mailbox>()?.get().0.clone())
    }
}

fn wait(
    mailbox: &MailboxHandle,
    subscriptions: &[SubscriptionHandle],
    deadline: Instant,
    fragment_limit: usize,
    sendings: &[&Sending],
) -> Vec<Event> {
    sleep_precisely();
    let mut events = Vec::new();
    let mut idle = Backoff::default();
    loop {
        // Events first: an image is announced before its messages.
        let mut is_over = mailbox.take(&mut events);
        for subscription in subscriptions {
            subscription.poll_into(fragment_limit, &mut events);
        }
        if events.iter().any(is_message) {
            // An image may have become available and been polled since: announce it first.
            let polled = std::mem::take(&mut events);
            is_over |= mailbox.take(&mut events);
            events = order(polled, events);
        }
        let sent: usize = sendings.iter().map(|each| each.work()).sum();
        is_over |= sendings.iter().any(|each| each.is_awaited());
        let now = Instant::now();
        if is_over || !events.is_empty() || now >= deadline {
            return events;
        }
        let left = deadline - now;
        if sent > 0 {
            idle.reset();
        } else if subscriptions.is_empty() && sendings.is_empty() {
            mailbox.park(left);
        } else if let Some(park) = idle.next_park() {
            mailbox.park(park.min(left));
        }
    }
}

fn is_message(event: &Event) -> bool {
    matches!(event, Event::Message { .. })
}

/// Merge `late` events, taken after polling, with the messages that were polled.
fn order(polled: Vec<Event>, late: Vec<Event>) -> Vec<Event> {
    if late.is_empty() {
        return polled;
    }
    let (messages, mut events): (Vec<_>, Vec<_>) = polled.into_iter().partition(is_message);
    // Announcements precede the messages; losses follow them, since an image's last messages count.
    let is_loss = |event: &Event| matches!(event, Event::ImageUnavailable { .. });
    let (losses, others): (Vec<_>, Vec<_>) = late.into_iter().partition(is_loss);
    events.extend(others);
    events.extend(messages);
    events.extend(losses);
    events
}
