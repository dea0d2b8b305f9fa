//! The conductor thread of an Aeron client: it exchanges commands and events with the driver.
//!
//! C's conductor thread does not replace this one. It cannot be woken: a command waits for the end
//! of its sleep, and no thread is notified of the response. With it, at 100 microseconds of sleep,
//! a recording's lifecycle takes about twice as long and the start of a replay a third longer.
//! This thread is woken for a command, polls often while a response is outstanding, and wakes the
//! mailbox when something arrived meanwhile.
//!
//! `use_conductor_agent_invoker` prevents C from starting its thread. It is set only after
//! `aeron_init`: a client that is created with it does not accept commands from several threads.

use crate::idle::{Backoff, sleep_precisely};
use crate::mailbox::Mailbox;
use rusteron_client::bindings as c;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle, park_timeout};
use std::time::{Duration, Instant};

/// Longest sleep while a response of the driver is outstanding.
const ATTENTIVE_PARK: Duration = Duration::from_micros(50);

/// A running conductor thread; `stop` ends it.
pub(super) struct ConductorThread {
    thread: JoinHandle<()>,
    is_stopping: Arc<AtomicBool>,
    awaited: Arc<Awaited>,
}

/// Commands without a response of the driver, or whose response was not fetched.
#[derive(Default)]
struct Awaited {
    count: AtomicUsize,
    /// Of all commands so far.
    total: AtomicUsize,
}

/// Polling often, while responses are awaited.
struct Attention<'a> {
    awaited: &'a Awaited,
    /// How long after the last command: the driver has responded by then, or is lost. The results
    /// of some commands are not fetched for long.
    longest: Duration,
    total: usize,
    until: Instant,
}

impl Attention<'_> {
    fn is_needed(&mut self) -> bool {
        if self.awaited.count.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let total = self.awaited.total.load(Ordering::SeqCst);
        let now = Instant::now();
        if total != self.total {
            self.total = total;
            self.until = now + self.longest;
        }
        now < self.until
    }
}

struct AeronPointer(*mut c::aeron_t);
// SAFETY: passed to the one thread that does the conductor's work.
unsafe impl Send for AeronPointer {}

impl ConductorThread {
    /// Start the conductor of a client that was initialised and not started.
    ///
    /// # Safety
    /// Both pointers are valid and belong together, and stay so until `stop` has returned.
    pub unsafe fn start(
        aeron: *mut c::aeron_t,
        context: *mut c::aeron_context_t,
        mailbox: Option<Mailbox>,
        driver_timeout_ms: u64,
    ) -> std::io::Result<Self> {
        // SAFETY: as promised by the caller. This cannot fail, as C starts no thread.
        unsafe {
            c::aeron_context_set_use_conductor_agent_invoker(context, true);
            c::aeron_start(aeron);
        }
        let is_stopping = Arc::new(AtomicBool::new(false));
        let awaited = Arc::new(Awaited::default());
        let aeron = AeronPointer(aeron);
        let thread = Builder::new().name("aeron-client".into()).spawn({
            let (is_stopping, awaited) = (is_stopping.clone(), awaited.clone());
            move || {
                let attention = Attention {
                    awaited: &awaited,
                    longest: Duration::from_millis(driver_timeout_ms),
                    total: 0,
                    until: Instant::now(),
                };
                conduct(aeron, &is_stopping, attention, mailbox.as_ref());
            }
        })?;
        Ok(Self {
            thread,
            is_stopping,
            awaited,
        })
    }

    /// Send the command that was just added, and poll often until the result is dropped.
    pub fn awaiting(&self) -> Awaiting {
        self.awaited.total.fetch_add(1, Ordering::SeqCst);
        self.awaited.count.fetch_add(1, Ordering::SeqCst);
        self.thread.thread().unpark();
        Awaiting(self.awaited.clone())
    }

    /// End the conductor's work. Must not be called by the thread that does it.
    pub fn stop(self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        // Fails only when the thread has panicked, and then it has ended too.
        let _ = self.thread.join();
    }
}

/// A response of the driver is outstanding as long as this exists.
pub(super) struct Awaiting(Arc<Awaited>);

impl Drop for Awaiting {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
    }
}

fn conduct(
    aeron: AeronPointer,
    is_stopping: &AtomicBool,
    mut attention: Attention<'_>,
    mailbox: Option<&Mailbox>,
) {
    sleep_precisely();
    let mut idle = Backoff::default();
    while !is_stopping.load(Ordering::SeqCst) {
        // SAFETY: valid until `stop` has joined this thread, the only one that does this work.
        let worked = unsafe { c::aeron_main_do_work(aeron.0) };
        if worked < 0 {
            // The driver is lost, or the client was timed out. C has called the error handler.
            return;
        }
        let is_awaited = attention.is_needed();
        if worked > 0 {
            idle.reset();
            if let Some(mailbox) = mailbox.filter(|_| is_awaited) {
                mailbox.wake();
            }
        } else if let Some(park) = idle.next_park() {
            let longest = if is_awaited { ATTENTIVE_PARK } else { park };
            park_timeout(park.min(longest));
        }
    }
}
