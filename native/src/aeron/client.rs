//! The Aeron client: connection to a driver, and the factory of everything else.

use super::conductor::{Awaiting, ConductorThread};
use super::counter::{Counter, CountersReader, Waits};
use super::image_listener::{Audience, ImageListener};
use super::interpreter::released;
use super::pending::{
    PendingCounter, PendingExclusivePublication, PendingPublication, PendingSubscription,
};
use super::publication::{ExclusivePublication, Publication};
use super::subscription::Subscription;
use super::{c_string, last_error, lock, write};
use crate::errors::{Error, Result};
use crate::fork;
use crate::mailbox::{ClientClosed, ClientError, Event, Mailbox};
use pyo3::prelude::*;
use rusteron_client::bindings as c;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{ManuallyDrop, take};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, Weak};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A shared client; the C client is freed by `close` or with the last handle.
#[pyclass(frozen, module = "aerotape._native")]
#[derive(Clone)]
pub struct AeronClient(Arc<Shared>);

/// A weak handle, for what the client itself owns.
pub(super) struct WeakClient(Weak<Shared>);

impl WeakClient {
    pub fn upgrade(&self) -> Option<AeronClient> {
        self.0.upgrade().map(AeronClient)
    }
}

struct Shared {
    aeron: RwLock<Option<Raw>>,
    aeron_dir: String,
    /// What the image callbacks of C subscriptions point at, until C has closed each.
    listenings: Mutex<Vec<Arc<ImageListener>>>,
    /// The threads that wait for counters.
    waits: Waits,
    /// The process that created the client. In a forked child the client's thread does not run.
    process: fork::Process,
}

struct Raw {
    aeron: *mut c::aeron_t,
    context: *mut c::aeron_context_t,
    conducting: ConductorThread,
    /// What the C callbacks point at; freed after the C client.
    listener: *mut Listener,
}

struct Listener {
    mailbox: Option<Mailbox>,
}

// SAFETY: `aeron_t` with a conductor thread accepts calls from several threads; the RwLock in
// `Shared` keeps use and close apart.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

/// Proof that the client is open for as long as it is held.
pub(super) struct Entered<'a>(RwLockReadGuard<'a, Option<Raw>>);

impl Entered<'_> {
    pub fn aeron(&self) -> *mut c::aeron_t {
        self.0.as_ref().map_or(null_mut(), |raw| raw.aeron)
    }

    /// Whether C has closed the client because the driver is lost: no command gets a response.
    pub fn has_closed_itself(&self) -> bool {
        // SAFETY: the pointer is valid while entered.
        unsafe { c::aeron_is_closed(self.aeron()) }
    }

    /// Count an outstanding response of the driver, so that it is polled for often.
    pub fn awaiting(&self) -> Option<Awaiting> {
        self.0.as_ref().map(|raw| raw.conducting.awaiting())
    }
}

impl AeronClient {
    /// `None` at once where the client is closed or being closed. It does not wait for that,
    /// because closing waits for those inside: a worker that is writing, as long as its disk takes,
    /// and the interpreter lock may be held here.
    #[inline]
    pub(super) fn enter(&self) -> Option<Entered<'_>> {
        if !self.0.process.is_this() {
            return None;
        }
        let guard = self.0.aeron.try_read().ok()?;
        guard.is_some().then_some(Entered(guard))
    }

    pub(super) fn enter_or_closed(&self) -> Result<Entered<'_>> {
        self.enter()
            .ok_or_else(|| Error::Closed("the Aeron client is closed".into()))
    }

    /// Do the work of the client's conductor in this thread, which polls anyway; whether something
    /// arrived that is awaited.
    pub(super) fn help(&self) -> bool {
        self.enter()
            .is_some_and(|entered| entered.0.as_ref().is_some_and(|raw| raw.conducting.help()))
    }

    pub(super) fn waits(&self) -> &Waits {
        &self.0.waits
    }

    pub(super) fn downgrade(&self) -> WeakClient {
        WeakClient(Arc::downgrade(&self.0))
    }

    /// Retain what the callbacks of a C subscription point at, until `forget` or the client's end.
    pub(super) fn keep(&self, listening: Arc<ImageListener>) {
        lock(&self.0.listenings).push(listening);
    }

    /// C calls these callbacks no more.
    pub(super) fn forget(&self, listening: *const ImageListener) {
        let mut listenings = lock(&self.0.listenings);
        let index = listenings
            .iter()
            .position(|each| Arc::as_ptr(each) == listening);
        let forgotten = index.map(|index| listenings.swap_remove(index));
        drop(listenings);
        drop(forgotten);
    }

    fn connect(
        aeron_dir: &str,
        client_name: &str,
        driver_timeout_ms: u64,
        mailbox: Option<Mailbox>,
    ) -> Result<Self> {
        let dir = c_string(aeron_dir, "the Aeron directory")?;
        let name = c_string(client_name, "the client name")?;
        let what = format!("cannot connect to a media driver in {aeron_dir}");
        await_driver(&dir, driver_timeout_ms, &what)?;
        let mut context = null_mut();
        // SAFETY: plain C construction; every pointer passed is valid for the call, and the
        // listener outlives the client because it is freed only after `aeron_close`.
        unsafe {
            if c::aeron_context_init(&mut context) < 0 {
                return Err(last_error("cannot create an Aeron context"));
            }
            let listener = Box::into_raw(Box::new(Listener {
                mailbox: mailbox.clone(),
            }));
            let clientd = listener.cast::<c_void>();
            c::aeron_context_set_dir(context, dir.as_ptr());
            c::aeron_context_set_client_name(context, name.as_ptr());
            c::aeron_context_set_driver_timeout_ms(context, driver_timeout_ms);
            c::aeron_context_set_error_handler(context, Some(on_error), clientd);
            c::aeron_context_set_on_close_client(context, Some(on_close), clientd);
            let mut aeron = null_mut();
            if c::aeron_init(&mut aeron, context) < 0 {
                // The context is leaked: it may hold the address of a mapping that is gone, see
                // `await_driver`. Rare, because the driver was alive a moment ago.
                let error = last_error(&what);
                drop(Box::from_raw(listener));
                return Err(error);
            }
            let conducting = match ConductorThread::start(aeron, context, mailbox) {
                Ok(conducting) => conducting,
                Err(error) => {
                    c::aeron_close(aeron);
                    c::aeron_context_close(context);
                    drop(Box::from_raw(listener));
                    return Err(Error::Aeron {
                        code: error.raw_os_error().unwrap_or_default(),
                        message: format!("{what}: cannot start its thread: {error}"),
                    });
                }
            };
            Ok(Self(Arc::new(Shared {
                aeron: RwLock::new(Some(Raw {
                    aeron,
                    context,
                    conducting,
                    listener,
                })),
                aeron_dir: aeron_dir.to_owned(),
                listenings: Mutex::new(Vec::new()),
                waits: Waits::default(),
                process: fork::Process::this(),
            })))
        }
    }
}

/// Wait until the driver in `dir` has a heartbeat that is at most `timeout_ms` old.
///
/// `aeron_init` waits too, but is not safe in a process with several threads where it fails: it
/// unmaps `cnc.dat` (twice if the file is not initialised) and keeps the address, which
/// `aeron_context_close` unmaps once more. Meanwhile another thread may have a mapping there.
fn await_driver(dir: &CStr, timeout_ms: u64, what: &str) -> Result<()> {
    let timeout = Duration::from_millis(timeout_ms);
    let timeout_ms = i64::try_from(timeout_ms).unwrap_or(i64::MAX);
    let begun = Instant::now();
    loop {
        let left = timeout.saturating_sub(begun.elapsed()).as_millis();
        let mut cnc = null_mut();
        // SAFETY: the path is NUL-terminated; what `aeron_cnc_init` made is closed once.
        let age_ms = unsafe {
            let left_ms = i64::try_from(left).unwrap_or(i64::MAX);
            if c::aeron_cnc_init(&mut cnc, dir.as_ptr(), left_ms) < 0 {
                return Err(last_error(what));
            }
            let heartbeat_ms = c::aeron_cnc_to_driver_heartbeat(cnc);
            c::aeron_cnc_close(cnc);
            c::aeron_epoch_clock().saturating_sub(heartbeat_ms)
        };
        if age_ms <= timeout_ms {
            return Ok(());
        }
        if left == 0 {
            return Err(Error::Aeron {
                code: -(c::AERON_CLIENT_ERROR_DRIVER_TIMEOUT as i32),
                message: format!("{what}: no driver heartbeat detected for {timeout_ms} ms"),
            });
        }
        sleep(Duration::from_millis(10));
    }
}

/// A client that no thread can enter any more, to be freed.
struct Closing {
    raw: Raw,
    /// Dropped by `run` only: where that never runs, C may still call.
    listenings: ManuallyDrop<Vec<Arc<ImageListener>>>,
}

impl Closing {
    fn run(self) {
        let Self { raw, listenings } = self;
        raw.conducting.stop();
        // SAFETY: the pointers were created together and taken out once, and no thread is inside
        // the client any more, since the write lock was acquired after the last reader. A client
        // that cannot be closed still runs: what it points at stays.
        unsafe {
            if c::aeron_close(raw.aeron) < 0 {
                return;
            }
            c::aeron_context_close(raw.context);
            drop(Box::from_raw(raw.listener));
        }
        drop(ManuallyDrop::into_inner(listenings));
    }
}

impl Shared {
    fn close(&self) {
        if !self.process.is_this() {
            // The memory is shared with the parent, whose client would lose its objects.
            return;
        }
        let Some(raw) = write(&self.aeron).take() else {
            return;
        };
        let closing = Closing {
            raw,
            listenings: ManuallyDrop::new(take(&mut *lock(&self.listenings))),
        };
        if is_in_callback() {
            // The conductor's thread had the last handle, and closing waits for that thread.
            // If no thread can be started the client leaks: better than to free it while in use.
            let _ = std::thread::Builder::new()
                .name("aeron-close".into())
                .spawn(move || closing.run());
        } else {
            closing.run();
        }
    }
}

thread_local! {
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Run `body`, which the C client calls on its conductor's thread.
pub(super) fn in_callback(body: impl FnOnce()) {
    let before = IN_CALLBACK.replace(true);
    body();
    IN_CALLBACK.set(before);
}

fn is_in_callback() -> bool {
    IN_CALLBACK.get()
}

impl Drop for Shared {
    fn drop(&mut self) {
        released(|| self.close());
    }
}

unsafe extern "C" fn on_error(clientd: *mut c_void, code: c_int, message: *const c_char) {
    // SAFETY: clientd is the listener, alive until after the client closed.
    let listener = unsafe { &*clientd.cast::<Listener>() };
    let message = if message.is_null() {
        String::new()
    } else {
        // SAFETY: the C client passes a NUL-terminated string.
        unsafe { CStr::from_ptr(message) }
            .to_string_lossy()
            .into_owned()
    };
    let message = super::tidy(&message);
    match &listener.mailbox {
        Some(mailbox) => mailbox.post(Event::ClientError(ClientError { code, message })),
        None => eprintln!(
            "aerotape: Aeron client error {code}: {}",
            super::printable(&message)
        ),
    }
}

unsafe extern "C" fn on_close(clientd: *mut c_void) {
    // SAFETY: clientd is the listener, alive until after the client closed.
    let listener = unsafe { &*clientd.cast::<Listener>() };
    if let Some(mailbox) = &listener.mailbox {
        mailbox.post(Event::ClientClosed(ClientClosed {}));
    }
}

pub(super) const ADD_TIMEOUT_NS: u64 = 10_000_000_000;

#[pymethods]
impl AeronClient {
    #[new]
    #[pyo3(signature = (aeron_dir, *, client_name="", driver_timeout_ms=10_000, mailbox=None))]
    fn new(
        py: Python<'_>,
        aeron_dir: &str,
        client_name: &str,
        driver_timeout_ms: u64,
        mailbox: Option<Mailbox>,
    ) -> PyResult<Self> {
        Ok(py.detach(|| Self::connect(aeron_dir, client_name, driver_timeout_ms, mailbox))?)
    }

    #[getter]
    pub(super) fn aeron_dir(&self) -> &str {
        &self.0.aeron_dir
    }

    #[getter]
    fn client_id(&self) -> Result<i64> {
        let entered = self.enter_or_closed()?;
        // SAFETY: the pointer is valid while entered.
        Ok(unsafe { c::aeron_client_id(entered.aeron()) })
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.enter()
            .is_none_or(|entered| entered.has_closed_itself())
    }

    fn next_correlation_id(&self) -> Result<i64> {
        let entered = self.enter_or_closed()?;
        // SAFETY: the pointer is valid while entered.
        Ok(unsafe { c::aeron_next_correlation_id(entered.aeron()) })
    }

    fn counters(&self) -> CountersReader {
        CountersReader::new(self.clone())
    }

    fn async_add_publication(&self, channel: &str, stream_id: i32) -> Result<PendingPublication> {
        PendingPublication::start(self, channel, stream_id)
    }

    fn async_add_exclusive_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<PendingExclusivePublication> {
        PendingExclusivePublication::start(self, channel, stream_id)
    }

    #[pyo3(signature = (channel, stream_id, mailbox=None, *, report_unavailable=true))]
    fn async_add_subscription(
        &self,
        channel: &str,
        stream_id: i32,
        mailbox: Option<Mailbox>,
        report_unavailable: bool,
    ) -> Result<PendingSubscription> {
        let audience = mailbox.map(|mailbox| Audience {
            mailbox,
            with_losses: report_unavailable,
        });
        PendingSubscription::start(self, channel, stream_id, audience)
    }

    fn async_add_counter(&self, type_id: i32, key: &[u8], label: &str) -> Result<PendingCounter> {
        PendingCounter::start(self, type_id, key, label)
    }

    #[pyo3(signature = (channel, stream_id, timeout_ns=ADD_TIMEOUT_NS))]
    fn add_publication(
        &self,
        py: Python<'_>,
        channel: &str,
        stream_id: i32,
        timeout_ns: u64,
    ) -> PyResult<Publication> {
        let pending = PendingPublication::start(self, channel, stream_id)?;
        pending.wait(py, timeout_ns, channel)
    }

    #[pyo3(signature = (channel, stream_id, timeout_ns=ADD_TIMEOUT_NS))]
    fn add_exclusive_publication(
        &self,
        py: Python<'_>,
        channel: &str,
        stream_id: i32,
        timeout_ns: u64,
    ) -> PyResult<ExclusivePublication> {
        let pending = PendingExclusivePublication::start(self, channel, stream_id)?;
        pending.wait(py, timeout_ns, channel)
    }

    #[pyo3(signature = (channel, stream_id, mailbox=None, timeout_ns=ADD_TIMEOUT_NS))]
    fn add_subscription(
        &self,
        py: Python<'_>,
        channel: &str,
        stream_id: i32,
        mailbox: Option<Mailbox>,
        timeout_ns: u64,
    ) -> PyResult<Subscription> {
        let audience = mailbox.map(|mailbox| Audience {
            mailbox,
            with_losses: true,
        });
        let pending = PendingSubscription::start(self, channel, stream_id, audience)?;
        pending.wait(py, timeout_ns, channel)
    }

    #[pyo3(signature = (type_id, key, label, timeout_ns=ADD_TIMEOUT_NS))]
    fn add_counter(
        &self,
        py: Python<'_>,
        type_id: i32,
        key: &[u8],
        label: &str,
        timeout_ns: u64,
    ) -> PyResult<Counter> {
        let pending = PendingCounter::start(self, type_id, key, label)?;
        pending.wait(py, timeout_ns, label)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}
