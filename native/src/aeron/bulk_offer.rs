//! Many messages with a common prefix, offered as the subscriber makes room for them.

use super::publication::{BACK_PRESSURED, ERROR, ExclusivePublication, Lent, int64s, is_held_up};
use crate::errors::Result;
use crate::idle::Backoff;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Messages offered in one iteration of a wait, so that other work is not delayed for longer.
const MAX_SENT_PER_CYCLE: usize = 256;

/// Messages that are offered while the conductor waits.
#[pyclass(frozen, module = "aerotape._native")]
pub struct BulkOffer {
    publication: Py<ExclusivePublication>,
    prefix: Vec<u8>,
    /// The messages without their prefix, one after the other, and the end of each.
    bodies: Vec<u8>,
    ends: Vec<usize>,
    is_last: bool,
    sent: AtomicUsize,
    result: AtomicI64,
    failure: OnceLock<String>,
}

#[pymethods]
impl BulkOffer {
    #[new]
    #[pyo3(signature = (publication, prefix, source, slices, *, skip=0, is_last=false))]
    fn new(
        publication: Py<ExclusivePublication>,
        prefix: Vec<u8>,
        source: &Bound<'_, PyAny>,
        slices: &Bound<'_, PyAny>,
        skip: usize,
        is_last: bool,
    ) -> PyResult<Self> {
        let source = Lent::new(source)?;
        let slices = int64s(slices)?;
        let (mut bodies, mut ends) = (Vec::new(), Vec::with_capacity(slices.len() / 2));
        for body in slice_all(source.as_slice(), &slices, skip)? {
            bodies.extend_from_slice(body);
            ends.push(bodies.len());
        }
        Ok(Self {
            publication,
            prefix,
            bodies,
            ends,
            is_last,
            sent: AtomicUsize::new(0),
            result: AtomicI64::new(BACK_PRESSURED),
            failure: OnceLock::new(),
        })
    }

    fn offer(&self, py: Python<'_>) -> usize {
        py.detach(|| self.work())
    }

    #[getter]
    fn sent(&self) -> usize {
        self.sent.load(Ordering::Acquire)
    }

    #[getter]
    fn result(&self) -> i64 {
        self.result.load(Ordering::Acquire)
    }

    #[getter(is_over)]
    fn has_ended(&self) -> bool {
        self.is_over()
    }

    #[getter]
    fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}

impl BulkOffer {
    /// Offer what there is room for in one iteration; the number of messages sent.
    pub fn work(&self) -> usize {
        if self.is_over() {
            return 0;
        }
        let first = self.sent();
        let end = self.ends.len().min(first + MAX_SENT_PER_CYCLE);
        let bodies = (first..end).map_while(|index| self.body(index));
        let publication = self.publication.get();
        let offered = publication.offer_each(&self.prefix, bodies);
        let (count, result) = offered.unwrap_or_else(|error| {
            let _ = self.failure.set(error.message());
            (0, ERROR)
        });
        self.sent.store(first + count, Ordering::Release);
        self.result.store(result, Ordering::Release);
        count
    }

    /// Whether Python has to act: all is sent and more is to follow, or the rest cannot be sent.
    pub fn is_awaited(&self) -> bool {
        self.is_over() && !(self.is_complete() && self.is_last)
    }

    fn is_over(&self) -> bool {
        let result = self.result();
        self.is_complete() || (result <= 0 && !is_held_up(result))
    }

    fn is_complete(&self) -> bool {
        self.sent() == self.ends.len()
    }

    fn body(&self, index: usize) -> Option<&[u8]> {
        let begin = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bodies.get(begin..*self.ends.get(index)?)
    }
}

/// The bytes of all slices of `source`, each an offset and a length, without the first `skip`.
pub(super) fn slice_all<'a>(
    source: &'a [u8],
    slices: &[i64],
    skip: usize,
) -> PyResult<Vec<&'a [u8]>> {
    let bodies = slices.chunks(2).map(|slice| {
        body(source, slice, skip).ok_or_else(|| {
            PyValueError::new_err(format!(
                "{slice:?} is not an offset and length within {} bytes",
                source.len()
            ))
        })
    });
    bodies.collect()
}

/// Offer `bodies` in order, each for up to `patience` where there is no room; the number sent and
/// the result of the last offer, which is 0 where the next one is too long for a message.
pub(super) fn offer_patiently(
    publication: &ExclusivePublication,
    prefix: &[u8],
    bodies: &[&[u8]],
    patience: Duration,
) -> Result<(usize, i64)> {
    let (mut sent, mut idle) = (0, Backoff::default());
    let mut deadline = Instant::now() + patience;
    loop {
        let left = bodies.iter().skip(sent).copied();
        let (more, last) = publication.offer_each(prefix, left)?;
        sent += more;
        if !is_held_up(last) {
            return Ok((sent, last));
        }
        let now = Instant::now();
        if more > 0 {
            idle.reset();
            deadline = now + patience;
        }
        if now >= deadline {
            return Ok((sent, last));
        }
        idle.idle();
    }
}

fn body<'a>(source: &'a [u8], slice: &[i64], skip: usize) -> Option<&'a [u8]> {
    let begin = usize::try_from(*slice.first()?).ok()?;
    let length = usize::try_from(*slice.get(1)?).ok()?;
    source.get(begin..begin.checked_add(length)?)?.get(skip..)
}
