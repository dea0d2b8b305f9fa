//! The writer of a ledger: numbers payloads, encodes them as entries and offers them.
//!
//! The publication is an exclusive one of which every message is an entry. The writer remembers
//! where entries end, so that a confirmed position of the recording becomes the id of the last
//! confirmed entry, which every later entry carries.

use super::entry::{Digest, DigestType, Header, prefix_length};
use crate::aeron::{ExclusivePublication, Lent, retry_within};
use crate::errors::{Error, Result};
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ends of entries that are remembered; then every second one is forgotten.
const MAX_ENDS: usize = 1 << 20;

/// See `aerotape/_native/`.
#[pyclass(frozen, module = "aerotape._native")]
pub struct LedgerWriter {
    publication: Py<ExclusivePublication>,
    scope_id: u64,
    ledger_id: u64,
    digest: Digest,
    max_payload_length: usize,
    adding: Mutex<Next>,
    unconfirmed: Mutex<Ends>,
    last_add_pushed: AtomicI64,
    last_add_confirmed: AtomicI64,
}

/// What the next entry continues.
struct Next {
    entry_id: i64,
    length: i64,
}

#[pymethods]
impl LedgerWriter {
    #[new]
    #[allow(clippy::too_many_arguments, reason = "the state of a ledger")]
    fn new(
        publication: Py<ExclusivePublication>,
        scope_id: u64,
        ledger_id: u64,
        digest_type: &str,
        password: &[u8],
        next_entry_id: i64,
        length: i64,
        last_add_confirmed: i64,
    ) -> PyResult<Self> {
        let kind = DigestType::parse(digest_type)?;
        let longest = publication.get().longest_message();
        let mut unconfirmed = Ends::default();
        if last_add_confirmed < next_entry_id - 1 {
            // Entries of an earlier writer: all of them end where this one begins.
            unconfirmed.push(publication.get().current_position(), next_entry_id - 1);
        }
        Ok(Self {
            publication,
            scope_id,
            ledger_id,
            digest: Digest::new(kind, password),
            max_payload_length: longest.saturating_sub(prefix_length(scope_id, kind)),
            adding: Mutex::new(Next {
                entry_id: next_entry_id,
                length,
            }),
            unconfirmed: Mutex::new(unconfirmed),
            last_add_pushed: AtomicI64::new(next_entry_id - 1),
            last_add_confirmed: AtomicI64::new(last_add_confirmed),
        })
    }

    #[pyo3(signature = (payload, timeout_ns=0))]
    fn add(
        &self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        timeout_ns: u64,
    ) -> PyResult<(i64, i64)> {
        let payload = Lent::new(payload)?;
        let payload = payload.as_slice();
        self.check_length(payload)?;
        let attempt = || self.add_each(&[payload]).map(|(_, result)| result);
        let first = attempt()?;
        let result = retry_within(py, first, timeout_ns, attempt)?;
        Ok((self.last_add_pushed(), result))
    }

    #[pyo3(signature = (payloads, timeout_ns=0))]
    fn add_many(
        &self,
        py: Python<'_>,
        payloads: Vec<Bound<'_, PyAny>>,
        timeout_ns: u64,
    ) -> PyResult<(i64, i64)> {
        let lent: Vec<Lent<'_>> = payloads.iter().map(Lent::new).collect::<PyResult<_>>()?;
        let payloads: Vec<&[u8]> = lent.iter().map(Lent::as_slice).collect();
        for payload in &payloads {
            self.check_length(payload)?;
        }
        if payloads.is_empty() {
            return Ok((self.last_add_pushed(), self.position()));
        }
        let added = AtomicUsize::new(0);
        let attempt = || {
            let begin = added.load(Ordering::Relaxed);
            let (count, result) = self.add_each(payloads.get(begin..).unwrap_or_default())?;
            added.store(begin + count, Ordering::Relaxed);
            Ok(result)
        };
        let first = py.detach(attempt)?;
        let result = retry_within(py, first, timeout_ns, attempt)?;
        Ok((self.last_add_pushed(), result))
    }

    fn confirm(&self, position: i64) -> i64 {
        if let Some(entry_id) = self.unconfirmed().take_up_to(position) {
            self.last_add_confirmed
                .fetch_max(entry_id, Ordering::AcqRel);
        }
        self.last_add_confirmed()
    }

    fn entry_at(&self, position: i64) -> i64 {
        let found = self.unconfirmed().last_up_to(position);
        found.unwrap_or_else(|| self.last_add_confirmed())
    }

    #[getter]
    fn last_add_pushed(&self) -> i64 {
        self.last_add_pushed.load(Ordering::Acquire)
    }

    #[getter]
    fn last_add_confirmed(&self) -> i64 {
        self.last_add_confirmed.load(Ordering::Acquire)
    }

    #[getter]
    fn position(&self) -> i64 {
        self.publication.get().current_position()
    }

    #[getter]
    fn length(&self, py: Python<'_>) -> i64 {
        py.detach(|| lock(&self.adding).length)
    }

    #[getter]
    fn max_payload_length(&self) -> usize {
        self.max_payload_length
    }
}

impl LedgerWriter {
    fn check_length(&self, payload: &[u8]) -> Result<()> {
        if payload.len() <= self.max_payload_length {
            return Ok(());
        }
        Err(Error::Aeron {
            code: libc::EINVAL,
            message: format!(
                "payload of {} bytes is too long for an entry of this ledger: at most {} bytes; \
                 use a channel with longer terms",
                payload.len(),
                self.max_payload_length
            ),
        })
    }

    /// Add payloads while there is room: how many, and the result of the last offer.
    fn add_each(&self, payloads: &[&[u8]]) -> Result<(usize, i64)> {
        let mut next = lock(&self.adding);
        self.publication.get().offering(|offer| {
            let (mut added, mut result) = (0, 0);
            for payload in payloads {
                let length = next.length.saturating_add_unsigned(payload.len() as u64);
                let header = Header {
                    scope_id: self.scope_id,
                    ledger_id: self.ledger_id,
                    entry_id: next.entry_id,
                    last_add_confirmed: self.last_add_confirmed(),
                    length,
                };
                let prefix = header.prefix(&self.digest, payload);
                result = offer(prefix.as_slice(), payload);
                if result <= 0 {
                    break;
                }
                self.unconfirmed().push(result, next.entry_id);
                self.last_add_pushed.store(next.entry_id, Ordering::Release);
                next.entry_id += 1;
                next.length = length;
                added += 1;
            }
            (added, result)
        })
    }

    fn unconfirmed(&self) -> MutexGuard<'_, Ends> {
        lock(&self.unconfirmed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where entries end, positions and ids, both ascending.
///
/// A ledger may have any number of unconfirmed entries. Of too many every second end is forgotten;
/// a position then stands for an entry before the last one that ends there, except for the newest.
#[derive(Default)]
struct Ends(VecDeque<(i64, i64)>);

impl Ends {
    fn push(&mut self, position: i64, entry_id: i64) {
        if self.0.len() >= MAX_ENDS {
            let mut index = 0;
            self.0.retain(|_| {
                index += 1;
                index % 2 == 0
            });
        }
        self.0.push_back((position, entry_id));
    }

    fn count_up_to(&self, position: i64) -> usize {
        self.0.partition_point(|(end, _)| *end <= position)
    }

    fn last_up_to(&self, position: i64) -> Option<i64> {
        let last = self.count_up_to(position).checked_sub(1)?;
        self.0.get(last).map(|(_, entry_id)| *entry_id)
    }

    /// Forget the ends up to a position; the last entry of them.
    fn take_up_to(&mut self, position: i64) -> Option<i64> {
        let count = self.count_up_to(position);
        self.0.drain(..count).next_back().map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(count: i64) -> Ends {
        let mut ends = Ends::default();
        (0..count).for_each(|id| ends.push(64 * (id + 1), id));
        ends
    }

    #[test]
    fn a_position_stands_for_the_last_entry_that_ends_up_to_it() {
        let mut ends = ends(10);
        for position in 0..700 {
            let expected = Some(position / 64 - 1).filter(|id| *id >= 0);
            let expected = expected.map(|id| id.min(9));
            assert_eq!(ends.last_up_to(position), expected, "{position}");
        }
        assert_eq!(ends.take_up_to(63), None);
        assert_eq!(ends.take_up_to(3 * 64 + 63), Some(2));
        assert_eq!(ends.take_up_to(3 * 64), None, "taken before");
        assert_eq!(ends.last_up_to(3 * 64), None);
        assert_eq!(ends.last_up_to(4 * 64), Some(3));
        assert_eq!(ends.take_up_to(i64::MAX), Some(9));
        assert_eq!(ends.take_up_to(i64::MAX), None);
    }

    #[test]
    fn any_number_of_ends_takes_limited_memory_and_none_is_confirmed_early() {
        let count = 5 * MAX_ENDS as i64 / 2;
        let mut ends = ends(count);
        assert!(ends.0.len() <= MAX_ENDS);
        let mut last = -1;
        for position in (0..64 * count).step_by(64 * 7 + 5) {
            if let Some(id) = ends.take_up_to(position) {
                assert!(id > last && id < position / 64);
                assert!(position / 64 - id < 32, "{id} at {position}");
                last = id;
            }
        }
        assert_eq!(ends.take_up_to(64 * count), Some(count - 1), "the newest");
    }
}
