//! The queue of events from native threads to the conductor.
//!
//! `conductor_wait` takes them out; `aeron` and `worker` only post here.

mod conductor_wait;
mod event;

pub use conductor_wait::Mailbox;
pub use event::Event;

use crate::aeron::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Longest part of a message that is assembled: one byte more than the conductor accepts, so that
/// it can recognise a message that is too long.
pub const MAX_MESSAGE_LENGTH: usize = 64 * 1024 + 1;

/// The posting end, for native threads.
#[derive(Clone, Default)]
pub struct MailboxHandle(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    woken: bool,
}

impl MailboxHandle {
    pub fn post(&self, event: Event) {
        self.lock().events.push_back(event);
        self.0.arrived.notify_one();
    }

    /// End the current wait, or the next one.
    pub fn wake(&self) {
        self.lock().woken = true;
        self.0.arrived.notify_one();
    }

    /// Move the events that have arrived into `events`; whether `wake` was called since the last
    /// time.
    pub fn take(&self, events: &mut Vec<Event>) -> bool {
        let mut queue = self.lock();
        events.extend(queue.events.drain(..));
        std::mem::take(&mut queue.woken)
    }

    /// Sleep until something arrives, at most for `duration`.
    pub fn park(&self, duration: Duration) {
        let queue = self.lock();
        if queue.events.is_empty() && !queue.woken {
            drop(self.0.arrived.wait_timeout(queue, duration));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.0.queue)
    }

    /// Take the events that were posted.
    #[cfg(test)]
    pub fn posted(&self) -> Vec<Event> {
        self.lock().events.drain(..).collect()
    }
}
