//! The conductor of an Aeron client: it exchanges commands and events with the driver.
//!
//! A thread does that. C's conductor thread does not replace it. C's cannot be woken: a command
//! waits for the end of its sleep, and no thread is notified of the response. With it, at 100
//! microseconds of sleep, a recording's lifecycle takes about twice as long and the start of a
//! replay a third longer. Our thread is woken for a command, polls often soon after it, and wakes
//! the mailbox when something arrived while a response is outstanding.
//!
//! A thread that polls anyway, as the archive's does for its control streams, does the work in its
//! stead (`help`): what the driver sends then reaches it without a second thread, and ours sleeps.
//!
//! `use_conductor_agent_invoker` prevents C from starting its thread. It is set only after
//! `aeron_init`: a client that is created with it does not accept commands from several threads.

use super::lock;
use crate::idle::{Backoff, sleep_precisely};
use crate::mailbox::Mailbox;
use rusteron_client::bindings as c;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::{Builder, JoinHandle, park_timeout};
use std::time::{Duration, Instant};

/// Longest sleep in the first moments after a command.
const ATTENTIVE_PARK: Duration = Duration::from_micros(50);

/// A later sleep lasts at most for this part of the time since the last command. So a response is
/// noticed late by no more than that, and a result that is fetched late or never costs nothing.
const ATTENTION_DIVISOR: u32 = 16;

/// Sleep of the thread while another one helps; so long it takes to notice that none does any more.
const HELPED_PARK: Duration = Duration::from_millis(10);

/// A running conductor thread; `stop` ends it.
pub(super) struct ConductorThread {
    thread: JoinHandle<()>,
    conducting: Arc<Conducting>,
    awaited: Arc<Awaited>,
}

/// The work, which one thread at a time does.
struct Conducting {
    aeron: Mutex<AeronPointer>,
    is_stopping: AtomicBool,
    /// The driver is lost, or the client was timed out. C has called the error handler.
    is_lost: AtomicBool,
    /// Another thread has done the work since the last time that ours looked.
    is_helped: AtomicBool,
}

impl Conducting {
    /// Do the work with the lock held; how much was done.
    fn work(&self, aeron: &AeronPointer) -> usize {
        if self.is_lost.load(Ordering::SeqCst) {
            return 0;
        }
        // SAFETY: valid until `stop` has returned; the lock keeps other threads out.
        let worked = unsafe { c::aeron_main_do_work(aeron.0) };
        self.is_lost.fetch_or(worked < 0, Ordering::SeqCst);
        worked.max(0) as usize
    }
}

/// Commands without a response of the driver, or whose response was not fetched.
#[derive(Default)]
struct Awaited {
    count: AtomicUsize,
    /// Of all commands so far.
    total: AtomicUsize,
}

/// How long to sleep while responses are awaited.
struct Attention<'a> {
    awaited: &'a Awaited,
    total: usize,
    /// When the last command was noticed.
    since: Instant,
}

impl Attention<'_> {
    /// The longest sleep; `None`: nothing is awaited.
    fn longest_park(&mut self) -> Option<Duration> {
        if self.awaited.count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let total = self.awaited.total.load(Ordering::SeqCst);
        if total != self.total {
            self.total = total;
            self.since = Instant::now();
        }
        Some((self.since.elapsed() / ATTENTION_DIVISOR).max(ATTENTIVE_PARK))
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
    ) -> std::io::Result<Self> {
        // SAFETY: as promised by the caller. This cannot fail, as C starts no thread.
        unsafe {
            c::aeron_context_set_use_conductor_agent_invoker(context, true);
            c::aeron_start(aeron);
        }
        let conducting = Arc::new(Conducting {
            aeron: Mutex::new(AeronPointer(aeron)),
            is_stopping: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            is_helped: AtomicBool::new(false),
        });
        let awaited = Arc::new(Awaited::default());
        let thread = Builder::new().name("aeron-client".into()).spawn({
            let (conducting, awaited) = (conducting.clone(), awaited.clone());
            move || {
                let attention = Attention {
                    awaited: &awaited,
                    total: 0,
                    since: Instant::now(),
                };
                conduct(&conducting, attention, mailbox.as_ref());
            }
        })?;
        Ok(Self {
            thread,
            conducting,
            awaited,
        })
    }

    /// Send the command that was just added, and poll often soon after it, until the result is
    /// dropped.
    pub fn awaiting(&self) -> Awaiting {
        self.awaited.total.fetch_add(1, Ordering::SeqCst);
        self.awaited.count.fetch_add(1, Ordering::SeqCst);
        let is_sent = self.conducting.is_helped.load(Ordering::SeqCst) && self.try_work().is_some();
        if !is_sent {
            self.thread.thread().unpark();
        }
        Awaiting(self.awaited.clone())
    }

    /// Do the work, unless another thread is at it; whether something arrived while a response of
    /// the driver was outstanding.
    pub fn help(&self) -> bool {
        self.conducting.is_helped.store(true, Ordering::SeqCst);
        self.try_work().is_some_and(|worked| worked > 0)
            && self.awaited.count.load(Ordering::SeqCst) > 0
    }

    fn try_work(&self) -> Option<usize> {
        match self.conducting.aeron.try_lock() {
            Ok(aeron) => Some(self.conducting.work(&aeron)),
            Err(TryLockError::Poisoned(aeron)) => Some(self.conducting.work(&aeron.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// End the conductor's work. Must not be called by the thread that does it.
    pub fn stop(self) {
        self.conducting.is_stopping.store(true, Ordering::SeqCst);
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

fn conduct(conducting: &Conducting, mut attention: Attention<'_>, mailbox: Option<&Mailbox>) {
    sleep_precisely();
    let mut idle = Backoff::default();
    while !conducting.is_stopping.load(Ordering::SeqCst) {
        if conducting.is_helped.swap(false, Ordering::SeqCst) {
            park_timeout(HELPED_PARK);
            continue;
        }
        let worked = conducting.work(&lock(&conducting.aeron));
        if conducting.is_lost.load(Ordering::SeqCst) {
            return;
        }
        let longest = attention.longest_park();
        if worked > 0 {
            idle.reset();
            if let Some(mailbox) = mailbox.filter(|_| longest.is_some()) {
                mailbox.wake();
            }
        } else if let Some(park) = idle.next_park() {
            park_timeout(park.min(longest.unwrap_or(park)));
        }
    }
}
