//! Asynchronous adds: what was asked of the driver and is not there yet.

use super::client::ClientHandle;
use super::conducting::Awaiting;
use super::counter::Counter;
use super::listening::{Listening, on_closed};
use super::publication::{ExclusivePublication, Publication};
use super::subscription::Subscription;
use super::{c_string, last_error, lock};
use crate::errors::{Error, Result};
use crate::mailbox::MailboxHandle;
use pyo3::prelude::*;
use rusteron_client::bindings as c;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex};

/// A C add command whose answer is outstanding; cancelled when dropped before it came.
struct Outstanding<A> {
    client: ClientHandle,
    command: Mutex<Option<Command<A>>>,
    registration_id: i64,
    what: String,
    cancel: unsafe extern "C" fn(*mut c::aeron_t, *mut A) -> i32,
    /// Of a subscription.
    listening: Option<Arc<Listening>>,
}

struct Command<A> {
    pointer: *mut A,
    /// While this is there the conductor's thread is attentive.
    _awaiting: Option<Awaiting>,
}
// SAFETY: the C client hands commands between its threads itself; the mutex allows one caller.
unsafe impl<A> Send for Command<A> {}

impl<A> Outstanding<A> {
    /// Poll once: `poll` is the C function that fills in the object.
    fn poll<T>(
        &self,
        poll: unsafe extern "C" fn(*mut *mut T, *mut A) -> i32,
    ) -> Result<Option<*mut T>> {
        let _entered = self.client.enter_or_closed()?;
        let mut command = lock(&self.command);
        let Some(Command { pointer, .. }) = command.as_ref() else {
            return Err(Error::Closed(format!(
                "{}: was answered or cancelled before",
                self.what
            )));
        };
        let mut object = null_mut();
        // SAFETY: the command pointer is valid until C answers non-zero, after which it is
        // taken out below; the client is open while entered.
        match unsafe { poll(&mut object, *pointer) } {
            0 => Ok(None),
            1 => {
                *command = None;
                Ok(Some(object))
            }
            _ => {
                *command = None;
                let error = last_error(&self.what);
                if let Some(listening) = &self.listening {
                    // There is no C subscription, so nobody calls.
                    self.client.forget(Arc::as_ptr(listening));
                }
                Err(error)
            }
        }
    }

    fn cancel(&self) {
        let Some(Command { pointer, .. }) = lock(&self.command).take() else {
            return;
        };
        if let Some(listening) = &self.listening {
            // C may have made the subscription already, and images of it.
            listening.close_images();
        }
        let Some(entered) = self.client.enter() else {
            return;
        };
        match &self.listening {
            // SAFETY: the client is open; C calls back when there is no such subscription any more.
            Some(listening) if listening.has_callbacks() => unsafe {
                c::aeron_async_remove_subscription(
                    self.registration_id,
                    entered.aeron(),
                    Some(on_closed),
                    listening.clientd(),
                );
            },
            // SAFETY: the command was not answered, so C still owns it and accepts a cancel.
            _ => unsafe {
                (self.cancel)(entered.aeron(), pointer);
            },
        }
    }
}

impl<A> Drop for Outstanding<A> {
    fn drop(&mut self) {
        self.cancel();
    }
}

macro_rules! pending_class {
    ($class:ident, $object:ident, $command:ty, $poll:path, $make:expr) => {
        #[pyclass(frozen, module = "aerotape._native")]
        pub struct $class {
            outstanding: Outstanding<$command>,
        }

        impl $class {
            pub fn poll_once(&self) -> Result<Option<$object>> {
                let found = self.outstanding.poll($poll)?;
                let make: fn(&Outstanding<$command>, *mut _) -> $object = $make;
                Ok(found.map(|pointer| make(&self.outstanding, pointer)))
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
    c::aeron_async_add_publication_t,
    c::aeron_async_add_publication_poll,
    |asked, pointer| Publication::new(asked.client.clone(), pointer)
);
pending_class!(
    PendingExclusivePublication,
    ExclusivePublication,
    c::aeron_async_add_exclusive_publication_t,
    c::aeron_async_add_exclusive_publication_poll,
    |asked, pointer| ExclusivePublication::new(asked.client.clone(), pointer)
);
pending_class!(
    PendingSubscription,
    Subscription,
    c::aeron_async_add_subscription_t,
    c::aeron_async_add_subscription_poll,
    |asked, pointer| {
        let listening = asked.listening.clone();
        let listening = listening.unwrap_or_else(|| Listening::new(&asked.client, None));
        Subscription::new(asked.client.clone(), pointer, listening)
    }
);
pending_class!(
    PendingCounter,
    Counter,
    c::aeron_async_add_counter_t,
    c::aeron_async_add_counter_poll,
    |asked, pointer| Counter::new(asked.client.clone(), pointer)
);

impl PendingPublication {
    pub fn start(client: &ClientHandle, channel: &str, stream_id: i32) -> Result<Self> {
        let what = format!("cannot add a publication to {channel} stream {stream_id}");
        let uri = c_string(channel, "the channel")?;
        let entered = client.enter_or_closed()?;
        let mut command = null_mut();
        // SAFETY: the client is open while entered; C copies the channel.
        let registration_id = unsafe {
            if c::aeron_async_add_publication(
                &mut command,
                entered.aeron(),
                uri.as_ptr(),
                stream_id,
            ) < 0
            {
                return Err(last_error(&what));
            }
            c::aeron_async_add_publication_get_registration_id(command)
        };
        let command = Command {
            pointer: command,
            _awaiting: entered.awaiting(),
        };
        drop(entered);
        let outstanding = Outstanding {
            client: client.clone(),
            command: Mutex::new(Some(command)),
            registration_id,
            what,
            cancel: c::aeron_async_add_publication_cancel,
            listening: None,
        };
        Ok(Self { outstanding })
    }
}

impl PendingExclusivePublication {
    pub fn start(client: &ClientHandle, channel: &str, stream_id: i32) -> Result<Self> {
        let what = format!("cannot add an exclusive publication to {channel} stream {stream_id}");
        let uri = c_string(channel, "the channel")?;
        let entered = client.enter_or_closed()?;
        let mut command = null_mut();
        // SAFETY: the client is open while entered; C copies the channel.
        let registration_id = unsafe {
            if c::aeron_async_add_exclusive_publication(
                &mut command,
                entered.aeron(),
                uri.as_ptr(),
                stream_id,
            ) < 0
            {
                return Err(last_error(&what));
            }
            c::aeron_async_add_exclusive_publication_get_registration_id(command)
        };
        let command = Command {
            pointer: command,
            _awaiting: entered.awaiting(),
        };
        drop(entered);
        let outstanding = Outstanding {
            client: client.clone(),
            command: Mutex::new(Some(command)),
            registration_id,
            what,
            cancel: c::aeron_async_add_exclusive_publication_cancel,
            listening: None,
        };
        Ok(Self { outstanding })
    }
}

impl PendingSubscription {
    pub fn start(
        client: &ClientHandle,
        channel: &str,
        stream_id: i32,
        mailbox: Option<MailboxHandle>,
    ) -> Result<Self> {
        let what = format!("cannot add a subscription to {channel} stream {stream_id}");
        let uri = c_string(channel, "the channel")?;
        let entered = client.enter_or_closed()?;
        let listening = Listening::new(client, mailbox);
        let (available, unavailable, clientd) = listening.callbacks();
        let mut command = null_mut();
        // SAFETY: the client is open while entered; C copies the channel; what clientd points at
        // is kept by the client until C calls no more.
        let registration_id = unsafe {
            if c::aeron_async_add_subscription(
                &mut command,
                entered.aeron(),
                uri.as_ptr(),
                stream_id,
                available,
                clientd,
                unavailable,
                clientd,
            ) < 0
            {
                let error = last_error(&what);
                client.forget(Arc::as_ptr(&listening));
                return Err(error);
            }
            c::aeron_async_add_subscription_get_registration_id(command)
        };
        let command = Command {
            pointer: command,
            _awaiting: entered.awaiting(),
        };
        drop(entered);
        let outstanding = Outstanding {
            client: client.clone(),
            command: Mutex::new(Some(command)),
            registration_id,
            what,
            cancel: c::aeron_async_add_subscription_cancel,
            listening: Some(listening),
        };
        Ok(Self { outstanding })
    }
}

impl PendingCounter {
    pub fn start(client: &ClientHandle, type_id: i32, key: &[u8], label: &str) -> Result<Self> {
        let what = format!("cannot add a counter {label:?}");
        let entered = client.enter_or_closed()?;
        let mut command = null_mut();
        // SAFETY: the client is open while entered; C copies key and label, whose lengths are
        // given.
        let registration_id = unsafe {
            if c::aeron_async_add_counter(
                &mut command,
                entered.aeron(),
                type_id,
                key.as_ptr(),
                key.len(),
                label.as_ptr().cast(),
                label.len(),
            ) < 0
            {
                return Err(last_error(&what));
            }
            c::aeron_async_add_counter_get_registration_id(command)
        };
        let command = Command {
            pointer: command,
            _awaiting: entered.awaiting(),
        };
        drop(entered);
        let outstanding = Outstanding {
            client: client.clone(),
            command: Mutex::new(Some(command)),
            registration_id,
            what,
            cancel: c::aeron_async_add_counter_cancel,
            listening: None,
        };
        Ok(Self { outstanding })
    }
}
