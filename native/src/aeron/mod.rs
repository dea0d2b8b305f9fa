//! Safe wrappers of the Aeron C client and media driver: the only module with C pointers.
//!
//! Every object of a client keeps that client alive through an `Arc`. C frees all of a client's
//! objects when the client closes, so each call on an object first enters the client (a read lock
//! that closing takes for writing) and then reads its pointer, which closing takes away. After that
//! a call returns "closed" instead of touching freed memory.
//!
//! # Locks
//!
//! A thread that holds a lock of this table waits only for those below it:
//!
//! | lock | guards | held for |
//! |------|--------|----------|
//! | `Slot`, `Image::handle`, `MessageReader`, `Waits` | the state of one Python object | a call of that object |
//! | `Conducting::aeron` | the work of C's conductor, callbacks included | one `aeron_main_do_work`; only the client's own thread waits for it, others try |
//! | `ImageListener::images` | C's list of a subscription's images, unfinished messages | a poll, a callback |
//! | `Guarded::pointer`, `Outstanding::command` | one C object, one C command | a C call; to write, while the object is closed |
//! | `Shared::listenings` of a client, `Mailbox`, `MediaDriver::running` | what they contain | no call |
//!
//! Two locks are in no order, because who uses what they guard only tries to read them, and takes
//! a failure for "closed". So they may be read with any other lock held, and none may be held by
//! who waits to write them:
//!
//! | lock | guards | read | written |
//! |------|--------|------|---------|
//! | `Shared::aeron` of a client | the C client | for each C call (`enter`) | when the client is closed: waits for the calls under way |
//! | `Retained::count` of an image | one count of a C image | for a poll, and for as long as a block of it takes to record | when the subscription is closed: waits for that disk |
//!
//! No thread waits with the interpreter's lock held (`interpreter.rs`), nor for that lock with one
//! of these.
//!
//! Callbacks that C calls on its own threads are `extern "C"`: a panic in one ends the process.
//! Those of a poll are `extern "C-unwind"`: a panic ends the poll, and the caller's `catch_unwind`
//! has it.

mod bulk_offer;
mod client;
mod conductor;
mod counter;
mod deferred_response;
pub mod destination;
pub mod driver;
mod guarded;
mod image;
mod image_listener;
mod interpreter;
pub mod message_reader;
pub mod pending;
mod publication;
mod subscription;
mod waiting;

pub use bulk_offer::BulkOffer;
pub use client::AeronClient;
pub use counter::{Counter, CountersReader, ForeignCounter};
pub use deferred_response::DeferredResponse;
pub use image::{Image, ImageHandle};
pub use publication::{
    CLOSED, ExclusivePublication, ExclusivePublicationHandle, Lent, NOT_CONNECTED, Publication,
    int64s, is_held_up, retry_within,
};
pub use subscription::Subscription;

use crate::errors::Error;
use rusteron_client::bindings as c;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The C client's last error on this thread.
pub(crate) fn last_error(what: &str) -> Error {
    // SAFETY: the functions work on thread-local state of the C library; the message is a
    // NUL-terminated string, copied before the state is cleared.
    let (code, text) = unsafe {
        let text = c::aeron_errmsg();
        let text = if text.is_null() {
            String::new()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        };
        let code = c::aeron_errcode();
        // Returned once: a later failure without a message must not repeat this one.
        c::aeron_err_clear();
        (code, text)
    };
    Error::Aeron {
        code,
        message: format!("{what}: {}", tidy(&text)),
    }
}

/// What C fills in about an object that does not change.
///
/// # Safety
/// `read` fills in the whole struct, or returns less than 0.
unsafe fn constants<T>(read: impl FnOnce(*mut T) -> i32) -> Result<T, Error> {
    let mut raw = MaybeUninit::uninit();
    if read(raw.as_mut_ptr()) < 0 {
        return Err(last_error("cannot read the constants of an Aeron object"));
    }
    // SAFETY: filled in, by the contract of this function.
    Ok(unsafe { raw.assume_init() })
}

/// Keep the first line of a C error, without the stack of file names under it, but with the
/// text that follows the location, since that is where the reason stands.
fn tidy(text: &str) -> String {
    let reasons: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once("] ").map(|(_, reason)| reason.trim()))
        .filter(|reason| !reason.is_empty())
        .collect();
    let head = text.lines().next().unwrap_or("unknown error").trim();
    if reasons.is_empty() {
        head.to_owned()
    } else {
        format!("{head}: {}", reasons.join("; "))
    }
}

/// Lock `mutex`, also if it is poisoned.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lock for reading, also if the lock is poisoned.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Lock for writing, also if the lock is poisoned.
fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn c_string(text: &str, what: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::Aeron {
        code: libc::EINVAL,
        message: format!("{what} {text:?} contains a NUL character"),
    })
}

/// Escape what could control a terminal or forge a line: a driver's error may quote a channel.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\'' | '\\' => shown.push(character),
            _ => shown.extend(character.escape_debug()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("it's \"a\\b\" é"), "it's \"a\\b\" é");
        assert_eq!(
            printable("\u{1b}[2J\r\n\u{9b}\u{202e}\u{2028}"),
            "\\u{1b}[2J\\r\\n\\u{9b}\\u{202e}\\u{2028}"
        );
    }
}
