//! The queue of events from native threads to the conductor.
//!
//! `conductor_wait` takes them out; `aeron` and `worker` only post here.

mod conductor_wait;
pub mod event;

pub use event::{
    ClientClosed, ClientError, ControlMessage, Event, ImageUnavailable, RecordingStopped,
    RecordingSynced, ReplayDone, ReplayReady, TimeIndexFailed, WorkerFailed,
};

use crate::aeron::lock;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Longest part of a request that is assembled: one byte more than the conductor accepts, so that
/// it can recognise a message that is too long.
pub const MAX_REQUEST_LENGTH: usize = 64 * 1024 + 1;

/// The queue, shared by Python's conductor and the native threads that post.
#[pyclass(frozen, from_py_object, module = "aerotape._native")]
#[derive(Clone, Default)]
pub struct Mailbox(Arc<Shared>);

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

impl Mailbox {
    pub fn post(&self, event: Event) {
        self.lock().events.push_back(event);
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
