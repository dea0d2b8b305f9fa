//! Detects that a process was forked.
//!
//! A child has a copy of every object and none of their threads, while the memory shared with the
//! media driver is its parent's. Closing an object there would wait forever for a thread that does
//! not exist, or report to the driver that the parent has closed. So objects remember the process
//! that created them and are "closed" in any other.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Forks between the process that loaded the module and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn on_fork_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Count forks from now on. Idempotent.
pub fn watch() {
    static ONCE: Once = Once::new();
    // SAFETY: the handler only adds to an atomic, which may be done in a child of many threads.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(on_fork_in_child));
    });
}

/// The process that created an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    pub fn this() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    #[inline]
    pub fn is_this(self) -> bool {
        self == Self::this()
    }
}
