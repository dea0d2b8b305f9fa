//! The mailbox: what native threads leave for the conductor, which is Python.

use crate::aeron::{
    Helped, Helper, Image, ImageHandle, Lent, Sending, SendingRun, Subscription, SubscriptionHandle,
};
use crate::idle::{Backoff, sleep_precisely};
use crate::lookups::Lookups;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Bytes of a message that are put together, whoever sends it: one more than the conductor takes,
/// for which it knows that a message is too long.
pub const MAX_MESSAGE_LENGTH: usize = 64 * 1024 + 1;

/// How long who waits sleeps at most while the driver owes an answer, and where something has just
/// come or been sent, for then more often follows soon: in all a small part of the time since.
const ALERT_PARK: Duration = Duration::from_micros(16);
const ALERT_PART: u32 = 16;

/// How often who waits gives way to others before it sleeps. More often than the backoff of other
/// threads, for to wake from a sleep takes longer than most clients take to ask for the next thing.
const MAX_YIELDS: u32 = 150;

/// Something that happened on a native thread.
pub enum Event {
    Message {
        subscription_registration_id: i64,
        image_correlation_id: i64,
        session_id: i32,
        payload: Vec<u8>,
        position: i64,
    },
    ImageAvailable(ImageHandle),
    ImageUnavailable {
        subscription_registration_id: i64,
        image_correlation_id: i64,
    },
    ClientClosed,
    ClientError {
        code: i32,
        message: String,
    },
    RecordingStopped {
        recording_id: i64,
        position: i64,
        error_code: i32,
        message: Option<String>,
    },
    TimeIndexFailed {
        recording_id: i64,
        message: String,
    },
    ReplayReady {
        replay_session_id: i64,
        /// Whether the client has been told.
        is_answered: bool,
    },
    ReplayDone {
        replay_session_id: i64,
        position: i64,
        error_code: i32,
        message: Option<String>,
    },
    /// The thread of a worker has panicked: it records and replays no more.
    WorkerFailed {
        name: String,
    },
    /// Part of a listing for the conductor to go on with.
    ListingLeft {
        control_session_id: i64,
        correlation_id: i64,
        next_id: i64,
        remaining: i64,
    },
}

impl Event {
    /// The event as the tuple that `_native.pyi` describes.
    fn into_tuple(self, py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        match self {
            Self::Message {
                subscription_registration_id,
                image_correlation_id,
                session_id,
                payload,
                position,
            } => {
                let payload = PyBytes::new(py, &payload);
                (
                    "message",
                    subscription_registration_id,
                    image_correlation_id,
                    session_id,
                    payload,
                    position,
                )
                    .into_pyobject(py)
            }
            Self::ImageAvailable(image) => {
                ("image_available", Py::new(py, Image::new(image))?).into_pyobject(py)
            }
            Self::ImageUnavailable {
                subscription_registration_id,
                image_correlation_id,
            } => (
                "image_unavailable",
                subscription_registration_id,
                image_correlation_id,
            )
                .into_pyobject(py),
            Self::ClientClosed => ("client_closed",).into_pyobject(py),
            Self::ClientError { code, message } => {
                ("client_error", code, message).into_pyobject(py)
            }
            Self::RecordingStopped {
                recording_id,
                position,
                error_code,
                message,
            } => (
                "recording_stopped",
                recording_id,
                position,
                error_code,
                message,
            )
                .into_pyobject(py),
            Self::TimeIndexFailed {
                recording_id,
                message,
            } => ("time_index_failed", recording_id, message).into_pyobject(py),
            Self::ReplayReady {
                replay_session_id,
                is_answered,
            } => {
                let kind = if is_answered {
                    "replay_answered"
                } else {
                    "replay_ready"
                };
                (kind, replay_session_id).into_pyobject(py)
            }
            Self::ReplayDone {
                replay_session_id,
                position,
                error_code,
                message,
            } => (
                "replay_done",
                replay_session_id,
                position,
                error_code,
                message,
            )
                .into_pyobject(py),
            Self::WorkerFailed { name } => ("worker_failed", name).into_pyobject(py),
            Self::ListingLeft {
                control_session_id,
                correlation_id,
                next_id,
                remaining,
            } => (
                "listing_left",
                control_session_id,
                correlation_id,
                next_id,
                remaining,
            )
                .into_pyobject(py),
        }
    }
}

/// The sending end, for native threads.
#[derive(Clone, Default)]
pub struct MailboxHandle(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// The conductors of the clients that post here.
    conductors: Mutex<Vec<Helper>>,
    /// How many wait here and look often.
    waiting: AtomicUsize,
}

/// Somebody waits at a mailbox and looks often for as long as this is there.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    woken: bool,
    /// When something last came or went; from when who waits next begins to do so if none.
    alert_since: Option<Instant>,
}

impl MailboxHandle {
    /// Whether somebody has asked to be heard; forgotten by that.
    #[cfg(test)]
    pub fn was_woken(&self) -> bool {
        std::mem::take(&mut self.lock().woken)
    }

    /// Take what was posted.
    #[cfg(test)]
    pub fn posted(&self) -> Vec<Event> {
        self.lock().events.drain(..).collect()
    }

    pub fn post(&self, event: Event) {
        self.lock().events.push_back(event);
        self.0.arrived.notify_one();
    }

    /// Have who waits here do the work of a client's conductor while the driver owes it an answer.
    pub fn help(&self, conductor: Helper) {
        let mut conductors = self.conductors();
        conductors.retain(|each| !each.is_useless());
        conductors.push(conductor);
    }

    fn conductors(&self) -> MutexGuard<'_, Vec<Helper>> {
        match self.0.conductors.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Do the work of all conductors; what comes of it where an answer is awaited.
    fn help_all(&self) -> Helped {
        let conductors = self.conductors();
        let helped = conductors.iter().map(Helper::help);
        helped.max().unwrap_or(Helped::NotUrgent)
    }

    /// Whether somebody waits here who does the work of the conductors meanwhile.
    pub fn is_waited_at(&self) -> bool {
        self.0.waiting.load(Ordering::SeqCst) > 0
    }

    pub fn wake(&self) {
        self.lock().woken = true;
        self.0.arrived.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        match self.0.queue.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Move what has come into `events`; true when somebody asked to be heard without an event.
    fn take(&self, events: &mut Vec<Event>) -> bool {
        let mut queue = self.lock();
        events.extend(queue.events.drain(..));
        std::mem::take(&mut queue.woken)
    }

    /// Since when nothing has come or gone.
    fn alert_since(&self) -> Instant {
        *self.lock().alert_since.get_or_insert_with(Instant::now)
    }

    fn park(&self, duration: Duration) {
        let queue = self.lock();
        if queue.events.is_empty() && !queue.woken {
            drop(self.0.arrived.wait_timeout(queue, duration));
        }
    }

    fn collect(
        &self,
        subscriptions: &[SubscriptionHandle],
        deadline: Instant,
        fragment_limit: usize,
        lookups: Option<(&Lookups, &[u8])>,
        sendings: &mut [SendingRun<'_>],
    ) -> Vec<Event> {
        let mut events = Vec::new();
        let mut idle = Backoff::yielding(MAX_YIELDS);
        let mut alert_since = self.alert_since();
        // Who has nothing to poll sleeps until something comes, and is no help to a conductor.
        let _waiting = (!subscriptions.is_empty()).then(|| Waiting::begin(&self.0.waiting));
        loop {
            let helped = self.help_all();
            // Events first: an image is announced before its messages.
            let mut woken = self.take(&mut events) || helped == Helped::Heard;
            for subscription in subscriptions {
                subscription.poll_into(fragment_limit, &mut events);
            }
            if events
                .iter()
                .any(|event| matches!(event, Event::Message { .. }))
            {
                // An image may have come and been polled since: its announcement goes first.
                let messages = std::mem::take(&mut events);
                woken |= self.take(&mut events);
                events = order(messages, events);
            }
            let answered = lookups.map_or(0, |(each, catalog)| each.answer(catalog, &mut events));
            // Behind the polling: what a client asks once it has the last message comes later.
            let mut sent: usize = sendings.iter_mut().map(SendingRun::work).sum();
            if let Some((lookups, catalog)) = lookups {
                let mut left = Vec::new();
                sent += lookups.go_on(catalog, &mut left);
                // Before what the same client may ask next, which must know of the listing.
                events.splice(..0, left);
            }
            let is_awaited = sendings.iter().any(SendingRun::is_awaited);
            let now = Instant::now();
            if woken || !events.is_empty() || is_awaited {
                self.lock().alert_since = None;
                return events;
            }
            if now >= deadline {
                return events;
            }
            if answered > 0 || sent > 0 {
                idle.reset();
                alert_since = now;
                self.lock().alert_since = Some(now);
                continue;
            }
            let left = deadline - now;
            if subscriptions.is_empty() && sendings.is_empty() {
                self.park(left);
            } else if let Some(park) = idle.next_park() {
                sleep_precisely();
                let longest = if helped == Helped::Awaiting {
                    ALERT_PARK
                } else {
                    ALERT_PARK.max((now - alert_since) / ALERT_PART)
                };
                self.park(park.min(longest).min(left));
            }
        }
    }
}

/// Put `late` events, taken after polling, before the messages that were polled.
fn order(polled: Vec<Event>, late: Vec<Event>) -> Vec<Event> {
    if late.is_empty() {
        return polled;
    }
    let is_message = |event: &Event| matches!(event, Event::Message { .. });
    let (messages, mut events): (Vec<_>, Vec<_>) = polled.into_iter().partition(is_message);
    // Announcements before the messages, losses after them: an image's last words count.
    let is_loss = |event: &Event| matches!(event, Event::ImageUnavailable { .. });
    let (losses, others): (Vec<_>, Vec<_>) = late.into_iter().partition(is_loss);
    events.extend(others);
    events.extend(messages);
    events.extend(losses);
    events
}

#[pyclass(frozen, module = "aerotape._native")]
pub struct Mailbox {
    handle: MailboxHandle,
}

impl Mailbox {
    pub fn handle(&self) -> MailboxHandle {
        self.handle.clone()
    }
}

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> Self {
        Self {
            handle: MailboxHandle::default(),
        }
    }

    #[pyo3(signature = (subscriptions=Vec::new(), timeout_ns=0, fragment_limit=10, lookups=None, sendings=Vec::new()))]
    fn wait(
        &self,
        py: Python<'_>,
        subscriptions: Vec<Py<Subscription>>,
        timeout_ns: u64,
        fragment_limit: usize,
        lookups: Option<(Py<Lookups>, Bound<'_, PyAny>)>,
        sendings: Vec<Py<Sending>>,
    ) -> PyResult<Vec<Py<PyTuple>>> {
        let handles: Vec<_> = subscriptions
            .iter()
            .map(|each| each.get().handle())
            .collect();
        let mut deadline = Instant::now() + Duration::from_nanos(timeout_ns);
        let held: Vec<_> = sendings.iter().map(|each| each.get().hold(py)).collect();
        let mut runs = Vec::with_capacity(sendings.len());
        for (sending, held) in sendings.iter().zip(&held) {
            let held = held.as_ref().map_err(|error| error.clone_ref(py));
            match held.and_then(|held| sending.get().resume(held)) {
                Ok(run) => runs.push(run),
                Err(error) => {
                    // One that cannot be sent must not keep the others waiting.
                    sending.get().give_up(error.to_string());
                    deadline = Instant::now();
                }
            }
        }
        let catalog = match &lookups {
            Some((_, catalog)) => Some(Lent::new(catalog)?),
            None => None,
        };
        let known = lookups.as_ref().zip(catalog.as_ref());
        let known = known.map(|((lookups, _), catalog)| (lookups.get(), catalog.as_slice()));
        let events = py.detach(|| {
            self.handle
                .collect(&handles, deadline, fragment_limit, known, &mut runs)
        });
        // Handles must not be the last owners of a subscription on a thread without the
        // interpreter; here it is held again.
        drop(handles);
        events
            .into_iter()
            .map(|event| Ok(event.into_tuple(py)?.unbind()))
            .collect()
    }

    fn wake(&self) {
        self.handle.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{sleep, spawn};

    #[test]
    fn time_without_events_adds_up_until_something_comes() {
        let mailbox = MailboxHandle::default();
        let begin = mailbox.alert_since();
        let soon = || Instant::now() + Duration::from_millis(2);
        for _ in 0..3 {
            assert!(mailbox.collect(&[], soon(), 10, None, &mut []).is_empty());
            assert_eq!(mailbox.alert_since(), begin);
        }
        mailbox.post(Event::ClientClosed);
        assert_eq!(mailbox.collect(&[], soon(), 10, None, &mut []).len(), 1);
        let dealt_with = Instant::now();
        assert!(mailbox.alert_since() >= dealt_with);
    }

    #[test]
    fn who_sleeps_until_something_comes_helps_no_conductor() {
        let mailbox = MailboxHandle::default();
        let waiter = {
            let mailbox = mailbox.clone();
            spawn(move || {
                let deadline = Instant::now() + Duration::from_secs(60);
                mailbox.collect(&[], deadline, 10, None, &mut []).len()
            })
        };
        for _ in 0..50 {
            assert!(!mailbox.is_waited_at());
            sleep(Duration::from_millis(1));
        }
        mailbox.post(Event::ClientClosed);
        assert_eq!(waiter.join().expect("no panic"), 1);
    }
}
