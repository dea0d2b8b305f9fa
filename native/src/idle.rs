//! What a polling thread does when there is nothing to do.

use std::time::Duration;

/// Spin, then yield, then park for longer and longer: Agrona's backoff idle strategy.
#[derive(Clone, Debug)]
pub struct Backoff {
    max_spins: u32,
    max_yields: u32,
    min_park: Duration,
    max_park: Duration,
    rounds: u32,
    park: Duration,
}

impl Backoff {
    pub fn new(max_spins: u32, max_yields: u32, min_park: Duration, max_park: Duration) -> Self {
        Self {
            max_spins,
            max_yields,
            min_park,
            max_park,
            rounds: 0,
            park: min_park,
        }
    }

    /// There was work: the next idle starts from spinning again.
    #[inline]
    pub fn reset(&mut self) {
        self.rounds = 0;
        self.park = self.min_park;
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
        let park = self.park;
        self.park = self.park.saturating_mul(2).min(self.max_park);
        Some(park)
    }

    pub fn idle(&mut self) {
        if let Some(park) = self.next_park() {
            std::thread::sleep(park);
        }
    }
}

impl Default for Backoff {
    /// The defaults of the reference: 10 spins, 20 yields, 1 microsecond to 1 millisecond.
    fn default() -> Self {
        Self::new(10, 20, Duration::from_micros(1), Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parks_grow_to_the_maximum_and_start_again_after_work() {
        let mut idle = Backoff::new(1, 1, Duration::from_micros(1), Duration::from_micros(3));
        assert_eq!(idle.next_park(), None);
        assert_eq!(idle.next_park(), None);
        let parks: Vec<_> = (0..3).filter_map(|_| idle.next_park()).collect();
        let micros = |n| Duration::from_micros(n);
        assert_eq!(parks, [micros(1), micros(2), micros(3)]);
        idle.reset();
        assert_eq!(idle.next_park(), None);
    }
}
