//! The progress of work on files, which another thread reads and may cancel.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The progress of the work, and whether it is cancelled.
#[derive(Debug, Default)]
pub struct Progress {
    bytes: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    pub fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The bytes done so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
