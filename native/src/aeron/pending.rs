//! Asynchronous commands: those to which the driver has not responded yet.

use super::client::{AeronClient, Entered};
use super::conductor::Awaiting;
use super::counter::Counter;
use super::image_listener::{Audience, ImageListener, on_closed};
use super::interpreter::released;
use super::publication::{ExclusivePublication, Publication};
use super::subscription::Subscription;
use super::waiting::wait_within;
use super::{c_string, last_error, lock};
use crate::errors::{Error, Result};
use pyo3::prelude::*;
use rusteron_client::bindings as c;
use std::ffi::c_char;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex};

/// The C client's record of a command under way: one type for all commands.
pub(super) type Record = c::aeron_client_registering_resource_stct;

type CancelRecord = unsafe extern "C" fn(*mut c::aeron_t, *mut Record) -> i32;
type RegistrationId = unsafe extern "C" fn(*mut Record) -> i64;

/// A C command without a response of the driver yet; cancelled when dropped before that.
pub(super) struct Outstanding {
    client: AeronClient,
    command: Mutex<Option<Command>>,
    registration_id: i64,
    what: String,
    withdraw: Withdraw,
}

/// A command that C knows; C owns its record again after the response.
struct Command {
    record: *mut Record,
    /// While this exists the conductor thread polls often.
    _awaiting: Option<Awaiting>,
}
// SAFETY: the C client hands commands between its threads itself; the mutex allows one caller.
unsafe impl Send for Command {}

/// The cancellation of a command whose result is no longer wanted.
pub(super) enum Withdraw {
    Cancel(CancelRecord),
    Subscription(CancelRecord, Arc<ImageListener>),
    /// C cannot cancel it: it retains the record until the client closes.
    Never,
}

impl Outstanding {
    /// Let `ask` pass a command to C.
    fn ask(
        client: &AeronClient,
        what: String,
        registration_id: RegistrationId,
        withdraw: Withdraw,
        ask: impl FnOnce(*mut *mut Record, *mut c::aeron_t) -> i32,
    ) -> Result<Self> {
        let mut record = null_mut();
        let entered = client.enter_or_closed()?;
        if ask(&mut record, entered.aeron()) < 0 {
            drop(entered);
            let error = last_error(&what);
            if let Withdraw::Subscription(_, listening) = &withdraw {
                client.forget(Arc::as_ptr(listening));
            }
            return Err(error);
        }
        Ok(Self::new(
            client,
            &entered,
            what,
            record,
            registration_id,
            withdraw,
        ))
    }

    /// For the `record` of a command that C has accepted.
    pub fn new(
        client: &AeronClient,
        entered: &Entered<'_>,
        what: String,
        record: *mut Record,
        registration_id: RegistrationId,
        withdraw: Withdraw,
    ) -> Self {
        Self {
            client: client.clone(),
            // SAFETY: no other thread polls the command, so its record exists.
            registration_id: unsafe { registration_id(record) },
            command: Mutex::new(Some(Command {
                record,
                _awaiting: entered.awaiting(),
            })),
            what,
            withdraw,
        }
    }

    pub fn registration_id(&self) -> i64 {
        self.registration_id
    }

    /// Poll once with the C function, which returns 0 until there is a response, and let `make`
    /// use what it has found while the client cannot be closed.
    pub fn poll<P, T>(
        &self,
        poll: impl FnOnce(*mut Record) -> std::result::Result<Option<P>, ()>,
        make: impl FnOnce(P) -> Result<T>,
    ) -> Result<Option<T>> {
        let entered = self.client.enter_or_closed()?;
        let mut command = lock(&self.command);
        let Some(Command { record, .. }) = command.as_ref() else {
            return Err(Error::Closed(format!(
                "{}: completed or cancelled before",
                self.what
            )));
        };
        let found = match poll(*record) {
            Ok(None) if entered.has_closed_itself() => {
                return Err(Error::Closed(format!(
                    "{}: the media driver in {} is gone, or its client was timed out",
                    self.what,
                    self.client.aeron_dir()
                )));
            }
            Ok(None) => return Ok(None),
            Ok(Some(found)) => found,
            Err(()) => {
                *command = None;
                let error = last_error(&self.what);
                if let Withdraw::Subscription(_, listening) = &self.withdraw {
                    // There is no C subscription, so there are no callbacks.
                    self.client.forget(Arc::as_ptr(listening));
                }
                return Err(error);
            }
        };
        *command = None;
        make(found).map(Some)
    }

    pub fn cancel(&self) {
        let Some(command) = lock(&self.command).take() else {
            return;
        };
        if let Withdraw::Subscription(_, listening) = &self.withdraw {
            // C may have made the subscription already, and images of it: one may be recorded.
            released(|| listening.close_images());
        }
        let Some(entered) = self.client.enter() else {
            return;
        };
        match &self.withdraw {
            // SAFETY: the client is open; C calls back when there is no such subscription any more.
            Withdraw::Subscription(_, listening) if listening.has_callbacks() => unsafe {
                c::aeron_async_remove_subscription(
                    self.registration_id,
                    entered.aeron(),
                    Some(on_closed),
                    listening.clientd(),
                );
            },
            // SAFETY: the response was not fetched, so C still owns the record, and removes by its
            // id what was added meanwhile.
            Withdraw::Subscription(cancel, _) | Withdraw::Cancel(cancel) => unsafe {
                cancel(entered.aeron(), command.record);
            },
            Withdraw::Never => {}
        }
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Wait for the response to a command with the interpreter released.
pub(super) fn wait_for<T>(
    py: Python<'_>,
    timeout_ns: u64,
    what: &str,
    mut poll: impl FnMut() -> Result<Option<T>> + Send,
) -> PyResult<T>
where
    T: Send,
{
    wait_within(py, timeout_ns, |_| poll())?.ok_or_else(|| {
        let why = format!(
            "the media driver did not respond within {} ms: {what}",
            timeout_ns / 1_000_000
        );
        Error::Timeout(why).into()
    })
}

macro_rules! pending_class {
    ($class:ident, $object:ident, $poll:path, $make:expr) => {
        #[pyclass(frozen, module = "aerotape._native")]
        pub struct $class {
            outstanding: Outstanding,
        }

        impl $class {
            pub fn poll_once(&self) -> Result<Option<$object>> {
                let mut object = null_mut();
                // SAFETY: the client is open and the record valid while polled.
                let poll = |command| match unsafe { $poll(&mut object, command) } {
                    0 => Ok(None),
                    1 => Ok(Some(object)),
                    _ => Err(()),
                };
                let make: fn(&Outstanding, *mut _) -> Result<$object> = $make;
                self.outstanding
                    .poll(poll, |object| make(&self.outstanding, object))
            }

            pub fn wait(&self, py: Python<'_>, timeout_ns: u64, what: &str) -> PyResult<$object> {
                wait_for(py, timeout_ns, what, || self.poll_once())
            }
        }

        #[pymethods]
        impl $class {
            #[getter]
            fn registration_id(&self) -> i64 {
                self.outstanding.registration_id
            }

            fn poll(&self) -> PyResult<Option<$object>> {
                Ok(self.poll_once()?)
            }

            fn cancel(&self) {
                self.outstanding.cancel();
            }
        }
    };
}

pending_class!(
    PendingPublication,
    Publication,
    c::aeron_async_add_publication_poll,
    |asked, pointer| Publication::new(asked.client.clone(), pointer)
);
pending_class!(
    PendingExclusivePublication,
    ExclusivePublication,
    c::aeron_async_add_exclusive_publication_poll,
    |asked, pointer| ExclusivePublication::new(asked.client.clone(), pointer)
);
pending_class!(
    PendingSubscription,
    Subscription,
    c::aeron_async_add_subscription_poll,
    |asked, pointer| {
        let listening = match &asked.withdraw {
            Withdraw::Subscription(_, listening) => listening.clone(),
            _ => ImageListener::new(&asked.client, None),
        };
        Subscription::new(asked.client.clone(), pointer, listening)
    }
);
pending_class!(
    PendingCounter,
    Counter,
    c::aeron_async_add_counter_poll,
    |asked, pointer| Counter::new(asked.client.clone(), pointer)
);

type AddPublication =
    unsafe extern "C" fn(*mut *mut Record, *mut c::aeron_t, *const c_char, i32) -> i32;

/// Add a shared or an exclusive publication, with the C functions of its kind.
fn add_publication(
    client: &AeronClient,
    (channel, stream_id): (&str, i32),
    kind: &str,
    add: AddPublication,
    registration_id: RegistrationId,
    cancel: CancelRecord,
) -> Result<Outstanding> {
    let uri = c_string(channel, "the channel")?;
    Outstanding::ask(
        client,
        format!("cannot add {kind} to {channel} stream {stream_id}"),
        registration_id,
        Withdraw::Cancel(cancel),
        // SAFETY: the client is open for the call; C copies the channel.
        |command, aeron| unsafe { add(command, aeron, uri.as_ptr(), stream_id) },
    )
}

impl PendingPublication {
    pub fn start(client: &AeronClient, channel: &str, stream_id: i32) -> Result<Self> {
        let outstanding = add_publication(
            client,
            (channel, stream_id),
            "a publication",
            c::aeron_async_add_publication,
            c::aeron_async_add_publication_get_registration_id,
            c::aeron_async_add_publication_cancel,
        )?;
        Ok(Self { outstanding })
    }
}

impl PendingExclusivePublication {
    pub fn start(client: &AeronClient, channel: &str, stream_id: i32) -> Result<Self> {
        let outstanding = add_publication(
            client,
            (channel, stream_id),
            "an exclusive publication",
            c::aeron_async_add_exclusive_publication,
            c::aeron_async_add_exclusive_publication_get_registration_id,
            c::aeron_async_add_exclusive_publication_cancel,
        )?;
        Ok(Self { outstanding })
    }
}

impl PendingSubscription {
    pub fn start(
        client: &AeronClient,
        channel: &str,
        stream_id: i32,
        audience: Option<Audience>,
    ) -> Result<Self> {
        let uri = c_string(channel, "the channel")?;
        let listening = ImageListener::new(client, audience);
        let (available, unavailable, clientd) = listening.callbacks();
        let outstanding = Outstanding::ask(
            client,
            format!("cannot add a subscription to {channel} stream {stream_id}"),
            c::aeron_async_add_subscription_get_registration_id,
            Withdraw::Subscription(c::aeron_async_add_subscription_cancel, listening),
            // SAFETY: the client is open for the call; C copies the channel; what clientd points at
            // is retained by the client until C calls no more.
            |command, aeron| unsafe {
                c::aeron_async_add_subscription(
                    command,
                    aeron,
                    uri.as_ptr(),
                    stream_id,
                    available,
                    clientd,
                    unavailable,
                    clientd,
                )
            },
        )?;
        Ok(Self { outstanding })
    }
}

impl PendingCounter {
    pub fn start(client: &AeronClient, type_id: i32, key: &[u8], label: &str) -> Result<Self> {
        let outstanding = Outstanding::ask(
            client,
            format!("cannot add a counter {label:?}"),
            c::aeron_async_add_counter_get_registration_id,
            Withdraw::Cancel(c::aeron_async_add_counter_cancel),
            // SAFETY: the client is open for the call; C copies key and label, whose lengths are
            // given.
            |command, aeron| unsafe {
                c::aeron_async_add_counter(
                    command,
                    aeron,
                    type_id,
                    key.as_ptr(),
                    key.len(),
                    label.as_ptr().cast(),
                    label.len(),
                )
            },
        )?;
        Ok(Self { outstanding })
    }
}
