//! Threads that wait for counters: of those of one client, one polls for all and the others park.
//!
//! If each of a hundred threads polled, no processor would be left for the threads that move the
//! counters.

use crate::aeron::lock;
use crate::idle::Backoff;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The longest sleep of the thread that polls.
const LONGEST_PARK: Duration = Duration::from_micros(50);

/// A value that a counter has to reach.
#[derive(Clone, Copy)]
pub struct Goal {
    pub counter_id: i32,
    pub registration_id: i64,
    pub least: i64,
}

/// The threads of a client that wait.
#[derive(Default)]
pub struct Waits(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    /// Whether a thread polls, or has been woken to do so. Always, while others are parked.
    is_polled: bool,
    parked: Vec<Arc<Parked>>,
}

struct Parked {
    goal: Goal,
    thread: Thread,
    state: AtomicU8,
}

const PARKED: u8 = 0;
const IS_OVER: u8 = 1;
const POLLS: u8 = 2;

impl Parked {
    fn wake(&self, state: u8) {
        self.state.store(state, Ordering::Release);
        self.thread.unpark();
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }
}

impl Waits {
    /// Wait until `is_over` holds for the goal, or until the deadline.
    pub fn wait(&self, goal: Goal, deadline: Instant, is_over: impl Fn(&Goal) -> bool) {
        if let Some(parked) = self.join(goal)
            && !self.park(&parked, deadline)
        {
            return;
        }
        let _polling = Polling(self);
        let mut idle = Backoff::new(10, 20, Duration::from_micros(1), LONGEST_PARK);
        while !is_over(&goal) && Instant::now() < deadline {
            idle.idle();
            self.wake_those(&is_over);
        }
    }

    /// Wait in the queue; `None`: no thread polls, so this one has to.
    fn join(&self, goal: Goal) -> Option<Arc<Parked>> {
        let mut queue = lock(&self.0);
        if !queue.is_polled {
            queue.is_polled = true;
            return None;
        }
        let parked = Arc::new(Parked {
            goal,
            thread: thread::current(),
            state: AtomicU8::new(PARKED),
        });
        queue.parked.push(Arc::clone(&parked));
        Some(parked)
    }

    /// Park until the wait is over; whether this thread has to poll from now on.
    fn park(&self, parked: &Arc<Parked>, deadline: Instant) -> bool {
        while parked.state() == PARKED {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                lock(&self.0)
                    .parked
                    .retain(|each| !Arc::ptr_eq(each, parked));
                break;
            }
            thread::park_timeout(left);
        }
        parked.state() == POLLS
    }

    fn wake_those(&self, is_over: impl Fn(&Goal) -> bool) {
        lock(&self.0).parked.retain(|each| {
            let ends = is_over(&each.goal);
            if ends {
                each.wake(IS_OVER);
            }
            !ends
        });
    }
}

/// The one thread that polls; when it ends, another one does.
struct Polling<'a>(&'a Waits);

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        let mut queue = lock(&self.0.0);
        // The newest, because it probably waits the longest.
        match queue.parked.pop() {
            Some(next) => next.wake(POLLS),
            None => queue.is_polled = false,
        }
    }
}
