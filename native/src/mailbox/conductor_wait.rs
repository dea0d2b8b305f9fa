//! The wait of the conductor's duty cycle: it does the Aeron client's work, polls control
//! subscriptions and continues bulk offers until there is something for Python.

use crate::aeron::{BulkOffer, Subscription};
use crate::idle::{Backoff, sleep_precisely};
use crate::mailbox::{Event, Mailbox};
use pyo3::prelude::*;
use std::time::{Duration, Instant};

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[pyo3(signature = (
        subscriptions=Vec::new(), timeout_ns=0, fragment_limit=10, bulk_offers=Vec::new()
    ))]
    fn wait(
        &self,
        py: Python<'_>,
        subscriptions: Vec<Subscription>,
        timeout_ns: u64,
        fragment_limit: usize,
        bulk_offers: Vec<Py<BulkOffer>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let bulk_offers: Vec<&BulkOffer> = bulk_offers.iter().map(Py::get).collect();
        let deadline = Instant::now() + Duration::from_nanos(timeout_ns);
        let events =
            py.detach(|| wait(self, &subscriptions, deadline, fragment_limit, &bulk_offers));
        events
            .into_iter()
            .map(|event| event.into_object(py))
            .collect()
    }

    /// End the current wait, or the next one.
    pub fn wake(&self) {
        self.lock().woken = true;
        self.0.arrived.notify_one();
    }
}

fn wait(
    mailbox: &Mailbox,
    subscriptions: &[Subscription],
    deadline: Instant,
    fragment_limit: usize,
    bulk_offers: &[&BulkOffer],
) -> Vec<Event> {
    sleep_precisely();
    let mut idle = Backoff::default();
    loop {
        let is_answered = subscriptions.first().is_some_and(Subscription::help_client);
        let mut messages = Vec::new();
        for subscription in subscriptions {
            // Fails when it is closed: then there are no messages.
            let _ = subscription.poll_into(fragment_limit, &mut messages);
        }
        let mut events = Vec::new();
        let mut is_over = mailbox.take(&mut events) || is_answered;
        if !messages.is_empty() {
            // The loss of an image follows its messages.
            let is_loss = |event: &Event| matches!(event, Event::ImageUnavailable(_));
            let (losses, others): (Vec<_>, Vec<_>) = events.into_iter().partition(is_loss);
            events = [others, messages, losses].into_iter().flatten().collect();
        }
        let sent: usize = bulk_offers.iter().map(|each| each.work()).sum();
        is_over |= bulk_offers.iter().any(|each| each.is_awaited());
        let now = Instant::now();
        if is_over || !events.is_empty() || now >= deadline {
            return events;
        }
        let left = deadline - now;
        if sent > 0 {
            idle.reset();
        } else if subscriptions.is_empty() && bulk_offers.is_empty() {
            mailbox.park(left);
        } else if let Some(park) = idle.next_park() {
            mailbox.park(park.min(left));
        }
    }
}
