//! Asynchronous adds: what was asked of the driver and is not there yet.

use super::client::ClientHandle;
use super::counter::Counter;
use super::publication::{ExclusivePublication, Publication};
use super::subscription::{ImageListener, Subscription};
use super::{c_string, last_error};
use crate::errors::{Error, Result};
use crate::mailbox::MailboxHandle;
use pyo3::prelude::*;
use rusteron_client::bindings as c;
use std::ptr::null_mut;
use std::sync::Mutex;

/// A C add command whose answer is outstanding; cancelled when dropped before it came.
struct Outstanding<A> {
    client: ClientHandle,
    command: Mutex<Option<Command<A>>>,
    registration_id: i64,
    what: String,
    cancel: unsafe extern "C" fn(*mut c::aeron_t, *mut A) -> i32,
}

struct Command<A>(*mut A);
// SAFETY: the C client hands commands between its threads itself; the mutex allows one caller.
unsafe impl<A> Send for Command<A> {}

impl<A> Outstanding<A> {
    /// Poll once: `poll` is the C function that fills in the object.
    fn poll<T>(
        &self,
        poll: unsafe extern "C" fn(*mut *mut T, *mut A) -> i32,
    ) -> Result<Option<*mut T>> {
        let _entered = self.client.enter_or_closed()?;
        let mut command = match self.command.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        };
        let Some(Command(pointer)) = command.as_ref() else {
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
                Err(last_error(&self.what))
            }
        }
    }

    fn cancel(&self) {
        let Some(entered) = self.client.enter() else {
            return;
        };
        let command = match self.command.lock() {
            Ok(mut guard) => guard.take(),
            Err(poisoned) => poisoned.into_inner().take(),
        };
        if let Some(Command(pointer)) = command {
            // SAFETY: the command was not answered, so C still owns it and accepts a cancel.
            unsafe { (self.cancel)(entered.aeron(), pointer) };
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
            #[allow(dead_code)]
            listener: Option<ImageListener>,
        }

        impl $class {
            pub fn poll_once(&self) -> Result<Option<$object>> {
                let found = self.outstanding.poll($poll)?;
                Ok(found.map(|pointer| {
                    let make: fn(ClientHandle, *mut _, Option<ImageListener>) -> $object = $make;
                    make(
                        self.outstanding.client.clone(),
                        pointer,
                        self.listener.clone(),
                    )
                }))
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
    |client, pointer, _| Publication::new(client, pointer)
);
pending_class!(
    PendingExclusivePublication,
    ExclusivePublication,
    c::aeron_async_add_exclusive_publication_t,
    c::aeron_async_add_exclusive_publication_poll,
    |client, pointer, _| ExclusivePublication::new(client, pointer)
);
pending_class!(
    PendingSubscription,
    Subscription,
    c::aeron_async_add_subscription_t,
    c::aeron_async_add_subscription_poll,
    |client, pointer, listener| Subscription::new(client, pointer, listener)
);
pending_class!(
    PendingCounter,
    Counter,
    c::aeron_async_add_counter_t,
    c::aeron_async_add_counter_poll,
    |client, pointer, _| Counter::new(client, pointer)
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
        drop(entered);
        let outstanding = Outstanding {
            client: client.clone(),
            command: Mutex::new(Some(Command(command))),
            registration_id,
            what,
            cancel: c::aeron_async_add_publication_cancel,
        };
        Ok(Self {
            outstanding,
            listener: None,
        })
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
        drop(entered);
        let outstanding = Outstanding {
            client: client.clone(),
            command: Mutex::new(Some(Command(command))),
            registration_id,
            what,
            cancel: c::aeron_async_add_exclusive_publication_cancel,
        };
        Ok(Self {
            outstanding,
            listener: None,
        })
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
        let listener = mailbox.map(|mailbox| ImageListener::new(client, mailbox));
        let (available, unavailable, clientd) = match &listener {
            Some(listener) => listener.callbacks(),
            None => (None, None, null_mut()),
        };
        let entered = client.enter_or_closed()?;
        let mut command = null_mut();
        // SAFETY: the client is open while entered; C copies the channel; the listener behind
        // clientd is never freed before the C subscription (see ImageListener).
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
                return Err(last_error(&what));
            }
            c::aeron_async_add_subscription_get_registration_id(command)
        };
        drop(entered);
        let outstanding = Outstanding {
            client: client.clone(),
            command: Mutex::new(Some(Command(command))),
            registration_id,
            what,
            cancel: c::aeron_async_add_subscription_cancel,
        };
        Ok(Self {
            outstanding,
            listener,
        })
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
        drop(entered);
        let outstanding = Outstanding {
            client: client.clone(),
            command: Mutex::new(Some(Command(command))),
            registration_id,
            what,
            cancel: c::aeron_async_add_counter_cancel,
        };
        Ok(Self {
            outstanding,
            listener: None,
        })
    }
}
