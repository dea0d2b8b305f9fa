//! The conductor of an Aeron client: it exchanges commands and events with the driver.
//!
//! C's own conductor thread only sleeps for a fixed time between polls. This one polls often while
//! a response is outstanding and wakes the thread that waits for it; and a thread that waits at a
//! mailbox does the conductor's work itself meanwhile, which saves thread switches on the way to
//! the driver and back. `use_conductor_agent_invoker` prevents C from starting its thread. It is
//! set only after `aeron_init`: a client that is created with it does not accept commands from
//! several threads.

use crate::fork::Process;
use crate::idle::{Backoff, sleep_precisely};
use crate::mailbox::{Helped, Helper, MailboxHandle};
use rusteron_client::bindings as c;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::thread::{Builder, JoinHandle, park_timeout};
use std::time::Duration;

/// Driver events processed per call. C processes one per duty cycle, and all clients share the
/// driver's broadcast buffer: a client that is lapped by it fails.
const MAX_EVENTS: usize = 1_000;
/// Longest sleep while a response of the driver is outstanding.
const ATTENTIVE_PARK: Duration = Duration::from_micros(50);

struct Shared {
    /// Held by the thread that does the conductor's work.
    aeron: Mutex<AeronPointer>,
    is_stopping: AtomicBool,
    /// Commands without a response of the driver, or whose response was not fetched.
    awaited: AtomicUsize,
    /// Where a thread may wait that does the work meanwhile.
    mailbox: Option<MailboxHandle>,
    /// A forked child has no conductor thread.
    process: Process,
}

impl Shared {
    fn is_awaited(&self) -> bool {
        self.awaited.load(Ordering::SeqCst) > 0
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// Do the conductor's work once, unless another thread does it; the amount of work done.
    fn try_work(&self) -> i32 {
        let aeron = match self.aeron.try_lock() {
            Ok(aeron) => aeron,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return 0,
        };
        if self.is_stopping() {
            return 0;
        }
        self.work(&aeron)
    }

    /// Send a command to the driver at once, and wake the mailbox if an event arrived with it.
    fn hand_on(&self) {
        let Some(mailbox) = &self.mailbox else {
            return;
        };
        // C counts the command that it takes and the events that it receives. A command that
        // another thread has taken counts there, and the mailbox is woken.
        if self.try_work() > 1 {
            mailbox.wake();
        }
    }

    /// Do the conductor's work once; negative when the driver is lost.
    fn work(&self, aeron: &MutexGuard<'_, AeronPointer>) -> i32 {
        // SAFETY: valid until `stop`, which sets `is_stopping` and then waits for the mutex; the
        // holder of the mutex has checked it. One thread at a time does this work.
        unsafe {
            let worked = c::aeron_main_do_work(aeron.0);
            if worked < 0 {
                // C has called the client's error handler. The state cleared is thread-local.
                c::aeron_err_clear();
            }
            worked
        }
    }
}

/// The work of a conductor, done by the thread that waits at the client's mailbox.
struct ConductorHelper(Weak<Shared>);

impl Helper for ConductorHelper {
    fn help(&self) -> Helped {
        let Some(shared) = self.0.upgrade() else {
            return Helped::Nothing;
        };
        if !shared.process.is_this() {
            return Helped::Nothing;
        }
        let is_awaited = shared.is_awaited();
        let heard = (0..MAX_EVENTS)
            .take_while(|_| shared.try_work() > 0)
            .count();
        if is_awaited && heard > 0 {
            Helped::Heard
        } else {
            Helped::Nothing
        }
    }

    fn is_useless(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// A running conductor thread; `stop` ends it.
pub(super) struct ConductorThread {
    thread: JoinHandle<()>,
    shared: Arc<Shared>,
}

struct AeronPointer(*mut c::aeron_t);
// SAFETY: the conductor's work may be done on any thread, one at a time.
unsafe impl Send for AeronPointer {}

impl ConductorThread {
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
        let shared = Arc::new(Shared {
            aeron: Mutex::new(AeronPointer(aeron)),
            is_stopping: AtomicBool::new(false),
            awaited: AtomicUsize::new(0),
            mailbox,
            process: Process::this(),
        });
        if let Some(mailbox) = &shared.mailbox {
            mailbox.add_helper(Box::new(ConductorHelper(Arc::downgrade(&shared))));
        }
        let for_thread = Arc::clone(&shared);
        let thread = Builder::new()
            .name("aeron-client".into())
            .spawn(move || conduct(&for_thread, longest_park))?;
        Ok(Self { thread, shared })
    }

    /// Count an outstanding response of the driver, until the result is dropped.
    pub fn awaiting(&self) -> Awaiting {
        self.shared.awaited.fetch_add(1, Ordering::SeqCst);
        if self.shared.mailbox.is_none() {
            self.hurry();
        }
        Awaiting(Arc::clone(&self.shared))
    }

    /// Wake the thread.
    pub fn hurry(&self) {
        self.thread.thread().unpark();
    }

    /// End the conductor's work. Must not be called by the thread that does it.
    pub fn stop(self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        self.hurry();
        // Fails only when the thread has panicked, and then it has ended too.
        let _ = self.thread.join();
        // A helper at work has not seen `is_stopping`; no other begins any more.
        drop(self.shared.aeron.lock());
    }
}

/// A response of the driver is outstanding as long as this exists.
pub(super) struct Awaiting(Arc<Shared>);

impl Awaiting {
    /// A function that sends the command to the driver at once, in place of the thread that polls
    /// at the mailbox. To be called outside of the client.
    pub fn handing_on(&self) -> impl FnOnce() + use<> {
        let shared = Arc::clone(&self.0);
        move || shared.hand_on()
    }
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        self.0.awaited.fetch_sub(1, Ordering::SeqCst);
    }
}

fn conduct(shared: &Shared, longest_park: Duration) {
    sleep_precisely();
    let mailbox = shared.mailbox.as_ref();
    let mut idle = Backoff::new(10, 20, Duration::from_micros(1), longest_park);
    while !shared.is_stopping() {
        let worked = match shared.aeron.lock() {
            Ok(aeron) => shared.work(&aeron),
            Err(poisoned) => shared.work(&poisoned.into_inner()),
        };
        if worked < 0 {
            // The driver is lost, or the client was timed out.
            return;
        }
        let is_awaited = shared.is_awaited();
        if worked > 0 {
            idle.reset();
            if let Some(mailbox) = mailbox.filter(|_| is_awaited) {
                mailbox.wake();
            }
        }
        if worked > 0 {
            continue;
        }
        if mailbox.is_some_and(MailboxHandle::is_polled) {
            // The thread that polls there does this work, more often than this thread would.
            park_timeout(longest_park);
        } else if let Some(park) = idle.next_park() {
            park_timeout(if is_awaited {
                park.min(ATTENTIVE_PARK)
            } else {
                park
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::MediaDriver;
    use super::*;
    use std::collections::BTreeMap;
    use std::ffi::CString;
    use std::path::PathBuf;
    use std::ptr::null_mut;
    use std::thread::sleep;

    const COUNTER_TYPE: i32 = 4242;

    /// A C client whose conductor works only when it is called.
    struct Client {
        shared: Arc<Shared>,
        context: *mut c::aeron_context_t,
    }

    impl Client {
        fn connect(aeron_dir: &str, mailbox: MailboxHandle) -> Self {
            let dir = CString::new(aeron_dir).expect("no NUL");
            let (mut context, mut aeron) = (null_mut(), null_mut());
            // SAFETY: plain C construction; C copies the directory.
            unsafe {
                assert_eq!(c::aeron_context_init(&mut context), 0);
                c::aeron_context_set_dir(context, dir.as_ptr());
                assert_eq!(c::aeron_init(&mut aeron, context), 0);
                c::aeron_context_set_use_conductor_agent_invoker(context, true);
                c::aeron_start(aeron);
            }
            let shared = Shared {
                aeron: Mutex::new(AeronPointer(aeron)),
                is_stopping: AtomicBool::new(false),
                awaited: AtomicUsize::new(0),
                mailbox: Some(mailbox),
                process: Process::this(),
            };
            let shared = Arc::new(shared);
            Self { shared, context }
        }

        fn aeron(&self) -> *mut c::aeron_t {
            self.shared.aeron.lock().expect("no panic").0
        }

        fn ask_for_counter(&self) {
            let mut record = null_mut();
            let label = c"asked for";
            // SAFETY: the client is open; C copies the label.
            let asked = unsafe {
                c::aeron_async_add_counter(
                    &mut record,
                    self.aeron(),
                    COUNTER_TYPE,
                    std::ptr::null(),
                    0,
                    label.as_ptr(),
                    label.count_bytes(),
                )
            };
            assert_eq!(asked, 0);
        }

        /// How many counters the driver has made, as its own memory shows.
        fn counters(&self) -> usize {
            // SAFETY: the reader and its numbers are the client's, which is open.
            unsafe {
                let reader = c::aeron_counters_reader(self.aeron());
                (0..c::aeron_counters_reader_max_counter_id(reader))
                    .filter(|id| {
                        let mut type_id = 0;
                        c::aeron_counters_reader_counter_type_id(reader, *id, &mut type_id) == 0
                            && type_id == COUNTER_TYPE
                    })
                    .count()
            }
        }
    }

    impl Drop for Client {
        fn drop(&mut self) {
            // SAFETY: no thread uses it any more.
            unsafe {
                c::aeron_close(self.aeron());
                c::aeron_context_close(self.context);
            }
        }
    }

    /// A driver with a directory that is removed with it.
    struct Driver {
        folder: PathBuf,
        driver: Option<MediaDriver>,
    }

    impl Driver {
        fn start(name: &str) -> Self {
            let folder =
                std::env::temp_dir().join(format!("aerotape-{name}-{}", std::process::id()));
            let properties = [
                ("aeron.dir", folder.to_str().expect("text")),
                ("aeron.threading.mode", "SHARED"),
            ];
            let driver = MediaDriver::start(&BTreeMap::from(
                properties.map(|(name, value)| (name.to_owned(), value.to_owned())),
            ));
            Self {
                folder,
                driver: Some(driver.expect("a driver")),
            }
        }

        fn aeron_dir(&self) -> &str {
            self.folder.to_str().expect("text")
        }
    }

    impl Drop for Driver {
        fn drop(&mut self) {
            drop(self.driver.take());
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn a_helper_processes_all_events_of_the_driver() {
        let driver = Driver::start("hearing");
        let [helped, other] =
            [(); 2].map(|()| Client::connect(driver.aeron_dir(), MailboxHandle::default()));
        for _ in 0..50 {
            other.ask_for_counter();
            other.shared.hand_on();
        }
        while helped.counters() < 50 {
            other.shared.hand_on();
            sleep(Duration::from_millis(1));
        }
        // The driver has created them and sends the responses next.
        sleep(Duration::from_millis(50));
        assert_eq!(
            ConductorHelper(Arc::downgrade(&helped.shared)).help(),
            Helped::Nothing
        );
        assert_eq!(helped.shared.try_work(), 0);
        drop((helped, other));
    }

    #[test]
    fn a_response_that_arrives_while_a_command_is_sent_wakes_the_mailbox() {
        let driver = Driver::start("conducting");
        let mailbox = MailboxHandle::default();
        let client = Client::connect(driver.aeron_dir(), mailbox.clone());
        client.ask_for_counter();
        client.shared.hand_on();
        while client.counters() == 0 {
            sleep(Duration::from_millis(1));
        }
        // The driver has created it and sends the response next.
        sleep(Duration::from_millis(50));
        mailbox.was_woken();
        client.ask_for_counter();
        client.shared.hand_on();
        assert!(mailbox.was_woken());
        drop(client);
        drop(driver);
    }
}
