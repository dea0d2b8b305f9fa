//! The queue of events from native threads to the conductor.
//!
//! `conductor_wait` takes them out; `aeron` and `worker` only post here.

use crate::event::Event;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest part of a message that is assembled: one byte more than the conductor accepts, so that
/// it can recognise a message that is too long.
pub const MAX_MESSAGE_LENGTH: usize = 64 * 1024 + 1;

/// Work that the thread waiting at a mailbox does between its polls.
pub trait Helper: Send + Sync {
    /// Do the work that is pending, unless another thread does it.
    fn help(&self) -> Helped;
    /// Whether there will be no more work.
    fn is_useless(&self) -> bool;
}

/// The outcome of one call of a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helped {
    /// Nothing that the waiting thread has to act on.
    Nothing,
    /// Something arrived while a response of the driver was outstanding; it may be that response.
    Heard,
}

/// The posting end, for native threads.
#[derive(Clone, Default)]
pub struct MailboxHandle(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    helpers: Mutex<Vec<Box<dyn Helper>>>,
    /// Threads that poll here, and call the helpers meanwhile.
    polling: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    woken: bool,
}

/// Marks a thread that polls at a mailbox for as long as it exists.
pub struct Polling<'a>(&'a AtomicUsize);

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
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

    /// Add work for the thread that waits here.
    pub fn add_helper(&self, helper: Box<dyn Helper>) {
        let mut helpers = self.helpers();
        helpers.retain(|each| !each.is_useless());
        helpers.push(helper);
    }

    /// Call all helpers; whether any of them received something.
    pub fn help_all(&self) -> Helped {
        let helpers = self.helpers();
        let heard = helpers.iter().filter(|each| each.help() == Helped::Heard);
        match heard.count() {
            0 => Helped::Nothing,
            _ => Helped::Heard,
        }
    }

    /// Whether a thread polls here and calls the helpers meanwhile.
    pub fn is_polled(&self) -> bool {
        self.0.polling.load(Ordering::SeqCst) > 0
    }

    pub fn begin_polling(&self) -> Polling<'_> {
        self.0.polling.fetch_add(1, Ordering::SeqCst);
        Polling(&self.0.polling)
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
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn helpers(&self) -> MutexGuard<'_, Vec<Box<dyn Helper>>> {
        let helpers = self.0.helpers.lock();
        helpers.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `wake` was called, which is forgotten.
    #[cfg(test)]
    pub fn was_woken(&self) -> bool {
        std::mem::take(&mut self.lock().woken)
    }

    /// Take the events that were posted.
    #[cfg(test)]
    pub fn posted(&self) -> Vec<Event> {
        self.lock().events.drain(..).collect()
    }
}
