//! The writer of a ledger: numbers payloads, encodes them as entries and offers them.
//!
//! The publication is an exclusive one of which every message is an entry. The writer remembers
//! where entries end, so that a confirmed position of the recording becomes the id of the last
//! confirmed entry, which every later entry carries.

use super::entry::{Digest, DigestType, Header, Prefix, prefix_length};
use crate::aeron::{ExclusivePublication, Lent, lock, retry_within};
use crate::errors::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PySequence;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

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
    /// Locked once for all entries of a call.
    adding: Mutex<Adding>,
    last_add_pushed: AtomicI64,
    last_add_confirmed: AtomicI64,
}

/// What the next entry continues, and the entries that are not confirmed.
struct Adding {
    next_entry_id: i64,
    length: i64,
    unconfirmed: Ends,
}

#[pymethods]
impl LedgerWriter {
    #[new]
    fn new(
        publication: Py<ExclusivePublication>,
        id: (u64, u64),
        digest_type: &str,
        password: &[u8],
        next_entry_id: i64,
        length: i64,
        last_add_confirmed: i64,
    ) -> PyResult<Self> {
        let (scope_id, ledger_id) = id;
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
            adding: Mutex::new(Adding {
                next_entry_id,
                length,
                unconfirmed,
            }),
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
        payloads: &Bound<'_, PySequence>,
        timeout_ns: u64,
    ) -> PyResult<(i64, i64)> {
        let lent = payloads.try_iter()?.map(|payload| Lent::of(payload?));
        let lent = lent.collect::<PyResult<Vec<_>>>()?;
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

    fn confirm(&self, py: Python<'_>, position: i64) -> i64 {
        py.detach(|| {
            if let Some(entry_id) = lock(&self.adding).unconfirmed.take_up_to(position) {
                self.last_add_confirmed
                    .fetch_max(entry_id, Ordering::AcqRel);
            }
        });
        self.last_add_confirmed()
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
        Err(Error::Entry {
            class: "ConfigurationError",
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
        let mut adding = lock(&self.adding);
        let Adding {
            next_entry_id,
            length,
            unconfirmed,
        } = &mut *adding;
        let mut prefix = Prefix::new();
        self.publication.get().offering(|offer| {
            let (mut added, mut result) = (0, 0);
            for payload in payloads {
                let header = Header {
                    scope_id: self.scope_id,
                    ledger_id: self.ledger_id,
                    entry_id: *next_entry_id,
                    last_add_confirmed: self.last_add_confirmed(),
                    length: length.saturating_add_unsigned(payload.len() as u64),
                };
                header.write_prefix(&self.digest, payload, &mut prefix);
                result = offer(prefix.as_slice(), payload);
                if result <= 0 {
                    break;
                }
                unconfirmed.push(result, header.entry_id);
                *next_entry_id += 1;
                *length = header.length;
                added += 1;
            }
            self.last_add_pushed
                .store(*next_entry_id - 1, Ordering::Release);
            (added, result)
        })
    }
}

/// Where entries end, positions and ids, both ascending.
///
/// A ledger may have any number of unconfirmed entries. Of too many every second one is forgotten;
/// a position in it then stands for the entry before it, except for the newest one.
#[derive(Default)]
struct Ends(VecDeque<(i64, i64)>);

impl Ends {
    #[inline]
    fn push(&mut self, end: i64, entry_id: i64) {
        if self.0.len() >= MAX_ENDS {
            let mut index = 0;
            self.0.retain(|_| {
                index += 1;
                index % 2 == 0
            });
        }
        self.0.push_back((end, entry_id));
    }

    /// Forget the ends up to a position; the last entry of them.
    fn take_up_to(&mut self, position: i64) -> Option<i64> {
        let count = self.0.partition_point(|(end, _)| *end <= position);
        self.0.drain(..count).next_back().map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_ends_takes_limited_memory_and_none_is_confirmed_early() {
        let mut remembered = Ends::default();
        let count = 5 * MAX_ENDS as i64;
        for id in 0..count {
            remembered.push(32 * (id + 1), id);
        }
        assert!(remembered.0.len() <= MAX_ENDS);
        let mut last = -1;
        for id in (0..count).step_by(7) {
            if let Some(found) = remembered.take_up_to(32 * (id + 1)) {
                assert!(found > last && found <= id);
                last = found;
            }
        }
        assert_eq!(remembered.take_up_to(i64::MAX), Some(count - 1));
    }
}
