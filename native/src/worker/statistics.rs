//! Counters of the bytes that a worker has moved and of the time that it took.
//!
//! Only the worker's thread adds to them. It has the sums in memory, and writes them to the counters
//! once a millisecond while it is busy, and when it becomes idle.

use crate::aeron::Counter;
use std::time::{Duration, Instant};

const PUBLISH_INTERVAL: Duration = Duration::from_millis(1);

/// The longest time for a block, the total bytes and the total time, of either all writes of
/// recordings or all reads of replays.
pub type TrafficCounters = (Counter, Counter, Counter);

/// The bytes moved and the time spent on it: the total, and the maximum for one block.
pub struct Traffic {
    counters: Option<TrafficCounters>,
    max_time_ns: i64,
    total_bytes: i64,
    total_time_ns: i64,
    /// When a block was last added.
    added: Instant,
    /// The `added` that the counters include.
    published: Instant,
}

impl Traffic {
    pub fn new(counters: Option<TrafficCounters>) -> Self {
        let now = Instant::now();
        Self {
            counters,
            max_time_ns: 0,
            total_bytes: 0,
            total_time_ns: 0,
            added: now,
            published: now,
        }
    }

    /// Add a block that it has taken until now, since `began`, to move.
    #[inline]
    pub fn add(&mut self, bytes: usize, began: Instant) {
        self.added = Instant::now();
        let time_ns = nanoseconds(self.added - began);
        self.max_time_ns = self.max_time_ns.max(time_ns);
        self.total_time_ns += time_ns;
        self.total_bytes += bytes as i64;
    }

    pub fn total_bytes(&self) -> i64 {
        self.total_bytes
    }

    /// Add syncs of what was written, during which other blocks may have been moved.
    pub fn add_syncs(&mut self, took: &[Duration]) {
        self.added = Instant::now();
        for &each in took {
            self.max_time_ns = self.max_time_ns.max(nanoseconds(each));
            self.total_time_ns += nanoseconds(each);
        }
    }

    /// Show what was added since the last time; of a busy worker, not in every duty cycle.
    pub fn publish(&mut self, is_busy: bool) {
        let since = self.added - self.published;
        if since.is_zero() || (is_busy && since < PUBLISH_INTERVAL) {
            return;
        }
        self.published = self.added;
        if let Some((max_time, total_bytes, total_time)) = &self.counters {
            total_bytes.set_release(self.total_bytes);
            total_time.set_release(self.total_time_ns);
            max_time.set_release(self.max_time_ns);
        }
    }
}

/// The total time of all syncs in nanoseconds, and the counts of those that took no longer than a
/// bound, nanoseconds, and longer than the bound before. Bounds ascend; the last is `i64::MAX`.
pub type SyncCounters = (Counter, Vec<(i64, Counter)>);

/// Count syncs by how long they took.
pub fn count_syncs(counters: &SyncCounters, took: &[Duration]) {
    let (total_time, counts) = counters;
    for &each in took {
        let time_ns = nanoseconds(each);
        total_time.add(time_ns);
        if let Some((_, count)) = counts.iter().find(|(bound, _)| time_ns <= *bound) {
            count.add(1);
        }
    }
}

/// Longest duty cycle, count of those longer than the threshold, and that threshold in nanoseconds.
/// Other workers may use them too.
pub type CycleCounters = (Counter, Counter, u64);

/// Times the duty cycles of a thread, from the beginning of one to that of the next.
pub struct CycleTime {
    counters: Option<CycleCounters>,
    began: Option<Instant>,
    longest: Duration,
}

impl CycleTime {
    pub fn new(counters: Option<CycleCounters>) -> Self {
        Self {
            counters,
            began: None,
            longest: Duration::ZERO,
        }
    }

    /// A duty cycle begins, and so the one before has ended.
    pub fn begin(&mut self) {
        let Some((max_time, exceeded_count, threshold_ns)) = &self.counters else {
            return;
        };
        let now = Instant::now();
        if let Some(began) = self.began.replace(now) {
            let took = now - began;
            if took > self.longest {
                self.longest = took;
                max_time.propose_max(nanoseconds(took));
            }
            if took > Duration::from_nanos(*threshold_ns) {
                exceeded_count.add(1);
            }
        }
    }

    /// The thread will sleep until there is a command, which is no part of a duty cycle.
    pub fn rest(&mut self) {
        self.began = None;
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
