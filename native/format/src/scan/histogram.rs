//! How many messages there are of each length, in memory that does not grow with them.
//!
//! Buckets are exact up to 255 bytes; from there on each power of two is divided into 128 of them,
//! so a bucket is never wider than 1/128 of its lengths. Each also adds its lengths up: where all
//! of them are the same, as lengths of messages often are, their mean is that length.

const DIVISION_BITS: u32 = 7;
const DIVISIONS: usize = 1 << DIVISION_BITS;
/// A message lies in one term and is shorter than that: at most 1 GiB.
const MAX_LENGTH: u64 = (1 << 31) - 1;
const BUCKETS: usize = (31 - DIVISION_BITS as usize + 1) * DIVISIONS;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bucket {
    messages: u64,
    bytes: u64,
}

#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Vec<Bucket>,
    pub messages: u64,
    pub bytes: u64,
    /// Both are 0 while there is no message.
    pub shortest: u64,
    pub longest: u64,
}

impl Histogram {
    pub fn new() -> Self {
        Self {
            buckets: vec![Bucket::default(); BUCKETS],
            messages: 0,
            bytes: 0,
            shortest: 0,
            longest: 0,
        }
    }

    #[inline]
    pub fn add(&mut self, length: u64) {
        if let Some(bucket) = self.buckets.get_mut(index(length)) {
            bucket.messages += 1;
            bucket.bytes += length;
        }
        if self.messages == 0 || length < self.shortest {
            self.shortest = length;
        }
        self.longest = self.longest.max(length);
        self.messages += 1;
        self.bytes += length;
    }

    /// Take over what another one has counted, and leave that one empty.
    #[expect(
        clippy::indexing_slicing,
        reason = "`index` returns the index of a bucket"
    )]
    pub fn drain(&mut self, other: &mut Self) {
        if other.messages == 0 {
            return;
        }
        let used = index(other.shortest)..=index(other.longest);
        let pairs = self.buckets[used.clone()]
            .iter_mut()
            .zip(&mut other.buckets[used]);
        for (into, from) in pairs {
            into.messages += from.messages;
            into.bytes += from.bytes;
            *from = Bucket::default();
        }
        if self.messages == 0 || other.shortest < self.shortest {
            self.shortest = other.shortest;
        }
        self.longest = self.longest.max(other.longest);
        self.messages += other.messages;
        self.bytes += other.bytes;
        (other.messages, other.bytes) = (0, 0);
        (other.shortest, other.longest) = (0, 0);
    }

    /// The length that this share of the messages does not exceed, by the nearest rank; 0 when
    /// there is no message. Exact where its bucket holds one length only, else the bucket's mean.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = (share * self.messages as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for bucket in &self.buckets {
            seen += bucket.messages;
            if seen >= rank && bucket.messages > 0 {
                return bucket.bytes / bucket.messages;
            }
        }
        0
    }

    /// Buckets that are not empty: first length, first length of the next one, messages, bytes.
    pub fn rows(&self) -> Vec<(u64, u64, u64, u64)> {
        self.buckets
            .iter()
            .enumerate()
            .filter(|(_, bucket)| bucket.messages > 0)
            .map(|(at, bucket)| (lower(at), lower(at + 1), bucket.messages, bucket.bytes))
            .collect()
    }
}

#[inline]
fn index(length: u64) -> usize {
    let length = length.min(MAX_LENGTH);
    let octave = (length | 1).ilog2().saturating_sub(DIVISION_BITS);
    ((octave as usize) << DIVISION_BITS) + (length >> octave) as usize
}

fn lower(index: usize) -> u64 {
    let octave = (index >> DIVISION_BITS).saturating_sub(1);
    ((index - (octave << DIVISION_BITS)) as u64) << octave
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_touch_and_are_narrow() {
        let mut at = 0;
        while at < BUCKETS {
            let (from, to) = (lower(at), lower(at + 1));
            assert_eq!((index(from), index(to - 1)), (at, at), "{from}..{to}");
            assert!(to - from == 1 || (to - from) * 128 <= from, "{from}..{to}");
            at += 1;
        }
        assert_eq!(lower(BUCKETS), MAX_LENGTH + 1);
    }
}
