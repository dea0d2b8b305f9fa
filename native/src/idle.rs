//! Idle strategy of polling threads, and precise sleeps.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A park lasts for this part of the time waited so far.
const DIVISOR: u32 = 4;

/// Spin, then yield, then park, in proportion to the time waited so far.
///
/// So what arrives after a gap is noticed later by at most a quarter of the gap, and the number of
/// wake-ups grows with the logarithm of the gap. Agrona's backoff doubles its parks instead: the
/// park in progress lasts for half of the time waited.
#[derive(Clone, Debug)]
pub struct Backoff {
    max_spins: u32,
    max_yields: u32,
    min_park: Duration,
    max_park: Duration,
    rounds: u32,
    /// When the first park began.
    since: Option<Instant>,
}

impl Backoff {
    pub fn new(max_spins: u32, max_yields: u32, min_park: Duration, max_park: Duration) -> Self {
        Self {
            max_spins,
            max_yields,
            min_park,
            max_park,
            rounds: 0,
            since: None,
        }
    }

    /// There was work: the next idle starts from spinning again.
    #[inline]
    pub fn reset(&mut self) {
        self.rounds = 0;
        self.since = None;
    }

    /// How to wait now, for a caller that parks in its own way: `None` when this call has
    /// already spun or yielded.
    pub fn next_park(&mut self) -> Option<Duration> {
        if self.rounds < self.max_spins {
            self.rounds += 1;
            std::hint::spin_loop();
            return None;
        }
        if self.rounds < self.max_spins.saturating_add(self.max_yields) {
            self.rounds += 1;
            std::thread::yield_now();
            return None;
        }
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        Some((waited / DIVISOR).clamp(self.min_park, self.max_park))
    }

    pub fn idle(&mut self) {
        if let Some(park) = self.next_park() {
            std::thread::sleep(park);
        }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(10, 20, Duration::from_micros(1), Duration::from_millis(1))
    }
}

/// End the sleeps of this thread on time.
///
/// Linux lets them last 50 microseconds longer, many times the first parks of a backoff.
pub fn sleep_precisely() {
    thread_local!(static IS_PRECISE: Cell<bool> = const { Cell::new(false) });
    if !IS_PRECISE.replace(true) {
        timer_slack::shorten();
    }
}

/// End the sleeps of threads that `start` starts on time; those of this thread do not change.
pub fn starting_precise_sleepers<T>(start: impl FnOnce() -> T) -> T {
    let before = timer_slack::shorten();
    let started = start();
    timer_slack::set(before);
    started
}

/// The timer slack of this thread: how late its sleeps may end. New threads inherit it.
mod timer_slack {
    use nix::sys::prctl;

    const SHORT_NS: std::ffi::c_ulong = 1_000;

    /// Shorten it, and return the previous value, nanoseconds. After a failure only the sleeps are
    /// longer.
    pub fn shorten() -> Option<std::ffi::c_ulong> {
        let before = prctl::get_timerslack().ok();
        set(Some(SHORT_NS));
        before.and_then(|slack_ns| slack_ns.try_into().ok())
    }

    pub fn set(slack_ns: Option<std::ffi::c_ulong>) {
        if let Some(slack_ns) = slack_ns {
            let _ = prctl::set_timerslack(slack_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parks_are_a_part_of_the_time_waited() {
        let (min, max) = (Duration::from_millis(2), Duration::from_millis(10));
        let gap = Duration::from_millis(4) * DIVISOR;
        let mut idle = Backoff::new(1, 1, min, max);
        for _ in 0..2 {
            assert_eq!(idle.next_park(), None);
            assert_eq!(idle.next_park(), None);
            let begun = Instant::now();
            assert_eq!(idle.next_park(), Some(min));
            std::thread::sleep(gap);
            let park = idle.next_park().unwrap();
            assert!(park >= (gap / DIVISOR).min(max));
            assert!(park <= (begun.elapsed() / DIVISOR).clamp(min, max));
            std::thread::sleep(max * DIVISOR);
            assert_eq!(idle.next_park(), Some(max));
            idle.reset();
        }
    }
}
