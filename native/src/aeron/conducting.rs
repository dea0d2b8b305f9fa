//! The thread of a client's conductor: it talks to the driver for all others of the client.
//!
//! C has such a thread of its own, which can only sleep for a while and look again. This one is
//! woken when something is asked of the driver, looks often while an answer is outstanding, and
//! wakes who waits for it. C is kept from starting its thread by saying that the client's user
//! will do the conductor's work, but only after the client was made: one that knows this from the
//! start no longer takes commands from several threads.

use crate::idle::Backoff;
use crate::mailbox::MailboxHandle;
use rusteron_client::bindings as c;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle, park_timeout};
use std::time::Duration;

/// Longest sleep while the driver owes an answer.
const ATTENTIVE_PARK: Duration = Duration::from_micros(50);

#[derive(Default)]
struct Shared {
    is_stopping: AtomicBool,
    /// Adds that the driver has not answered, or whose answer nobody has fetched.
    awaited: AtomicUsize,
}

/// A running conductor thread; `stop` ends it.
pub(super) struct Conducting {
    thread: JoinHandle<()>,
    shared: Arc<Shared>,
}

struct AeronPointer(*mut c::aeron_t);
// SAFETY: the conductor's work may be done on any thread, one at a time, and only `conduct` does it.
unsafe impl Send for AeronPointer {}

impl Conducting {
    /// Start the conductor of a client that was made and not started.
    ///
    /// # Safety
    /// Both pointers are valid and belong together, and stay so until `stop` has returned.
    pub unsafe fn start(
        aeron: *mut c::aeron_t,
        context: *mut c::aeron_context_t,
        longest_park: Duration,
        mailbox: Option<MailboxHandle>,
    ) -> std::io::Result<Self> {
        // SAFETY: as promised by the caller. Without an own thread to start, this cannot fail.
        unsafe {
            c::aeron_context_set_use_conductor_agent_invoker(context, true);
            c::aeron_start(aeron);
        }
        let shared = Arc::<Shared>::default();
        let (pointer, for_thread) = (AeronPointer(aeron), Arc::clone(&shared));
        let thread = Builder::new()
            .name("aeron-client".into())
            .spawn(move || conduct(&pointer, &for_thread, longest_park, mailbox.as_ref()))?;
        Ok(Self { thread, shared })
    }

    /// Take note that an answer of the driver is awaited, until the result is dropped.
    pub fn awaiting(&self) -> Awaiting {
        self.shared.awaited.fetch_add(1, Ordering::SeqCst);
        self.thread.thread().unpark();
        Awaiting(Arc::clone(&self.shared))
    }

    /// End the thread. Must not be called on it.
    pub fn stop(self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        // Fails only when the thread has panicked, and then it has ended too.
        let _ = self.thread.join();
    }
}

/// Somebody awaits an answer of the driver.
pub(super) struct Awaiting(Arc<Shared>);

impl Drop for Awaiting {
    fn drop(&mut self) {
        self.0.awaited.fetch_sub(1, Ordering::SeqCst);
    }
}

fn conduct(
    aeron: &AeronPointer,
    shared: &Shared,
    longest_park: Duration,
    mailbox: Option<&MailboxHandle>,
) {
    let mut idle = Backoff::new(10, 20, Duration::from_micros(1), longest_park);
    while !shared.is_stopping.load(Ordering::SeqCst) {
        // SAFETY: valid until this thread has been joined; nobody else does this work.
        let worked = unsafe { c::aeron_main_do_work(aeron.0) };
        if worked < 0 {
            // The driver is lost, or the client was timed out: C has told the client's listener.
            // SAFETY: works on thread-local state.
            unsafe { c::aeron_err_clear() };
            return;
        }
        let is_awaited = shared.awaited.load(Ordering::SeqCst) > 0;
        if worked > 0 {
            idle.reset();
            if let Some(mailbox) = mailbox.filter(|_| is_awaited) {
                mailbox.wake();
            }
        } else if let Some(park) = idle.next_park() {
            park_timeout(if is_awaited {
                park.min(ATTENTIVE_PARK)
            } else {
                park
            });
        }
    }
}
