//! Messages that are many: each a piece of one buffer behind a common beginning, sent as there is
//! room for them.

use super::publication::{BACK_PRESSURED, ERROR, ExclusivePublication, Lent, int64s, is_held_up};
use crate::errors::Result;
use crate::idle::Backoff;
use pyo3::prelude::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Most messages in one turn: then others that are waited for get a look.
pub const MAX_SENT_PER_TURN: usize = 256;

/// Messages that share their beginning, each with bytes of its own from one buffer.
pub struct Slices<'a> {
    prefix: &'a [u8],
    source: &'a [u8],
    /// An offset and a length for each message, of which `skip` bytes are left out.
    places: &'a [i64],
    skip: usize,
}

impl<'a> Slices<'a> {
    /// Slices at any places: what is not within the source is not sent, nor what follows it.
    pub fn new(prefix: &'a [u8], source: &'a [u8], places: &'a [i64], skip: usize) -> Self {
        Self {
            prefix,
            source,
            places,
            skip,
        }
    }

    /// The same, if all are within the source.
    pub(super) fn checked(self) -> PyResult<Self> {
        if let Some(place) = self.places.chunks(2).find(|it| self.body(it).is_none()) {
            return Err(pyo3::exceptions::PyValueError::new_err(format!(
                "{place:?} is no offset and length within {} bytes",
                self.source.len()
            )));
        }
        Ok(self)
    }

    fn body(&self, place: &[i64]) -> Option<&'a [u8]> {
        let begin = usize::try_from(*place.first()?).ok()?;
        let length = usize::try_from(*place.get(1)?).ok()?;
        self.source
            .get(begin..begin.checked_add(length)?)?
            .get(self.skip..)
    }

    fn count(&self) -> usize {
        self.places.len() / 2
    }

    /// Offer up to `limit` of them in order, from `first` on; how many went out, and the result of
    /// the last offer, which is 0 where the next one is longer than a message may be.
    pub fn offer_some(
        &self,
        first: usize,
        limit: usize,
        publication: &ExclusivePublication,
    ) -> Result<(usize, i64)> {
        let places = self.places.chunks(2).skip(first).take(limit);
        let bodies = places.map_while(|place| self.body(place));
        publication.offer_each(self.prefix, bodies)
    }

    /// Offer all in order, each for as long as the patience lasts where there is no room; as
    /// `offer_some`.
    pub fn offer_to(
        &self,
        patience: Duration,
        publication: &ExclusivePublication,
    ) -> Result<(usize, i64)> {
        let (mut sent, mut idle) = (0, Backoff::default());
        let mut deadline = None;
        loop {
            let (more, last) = self.offer_some(sent, usize::MAX, publication)?;
            sent += more;
            if !is_held_up(last) {
                return Ok((sent, last));
            }
            let now = Instant::now();
            if more > 0 || deadline.is_none() {
                idle.reset();
                deadline = Some(now + patience);
            }
            if deadline.is_none_or(|deadline| now >= deadline) {
                return Ok((sent, last));
            }
            idle.idle();
        }
    }
}

/// Messages that go out while their sender waits at its mailbox.
#[pyclass(frozen, module = "aerotape._native")]
pub struct Sending {
    publication: Py<ExclusivePublication>,
    prefix: Vec<u8>,
    source: Py<PyAny>,
    slices: Py<PyAny>,
    skip: usize,
    is_last: bool,
    sent: AtomicUsize,
    result: AtomicI64,
    failure: OnceLock<String>,
}

#[pymethods]
impl Sending {
    #[new]
    #[pyo3(signature = (publication, prefix, source, slices, *, skip=0, is_last=false))]
    fn new(
        publication: Py<ExclusivePublication>,
        prefix: Vec<u8>,
        source: Py<PyAny>,
        slices: Py<PyAny>,
        skip: usize,
        is_last: bool,
    ) -> Self {
        Self {
            publication,
            prefix,
            source,
            slices,
            skip,
            is_last,
            sent: AtomicUsize::new(0),
            result: AtomicI64::new(BACK_PRESSURED),
            failure: OnceLock::new(),
        }
    }

    #[getter]
    fn sent(&self) -> usize {
        self.sent.load(Ordering::Acquire)
    }

    #[getter]
    fn result(&self) -> i64 {
        self.result.load(Ordering::Acquire)
    }

    #[getter]
    fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}

/// What a sending sends from, held in place for one wait.
pub struct Held<'py> {
    source: Lent<'py>,
    places: Vec<i64>,
}

impl Sending {
    pub fn hold<'py>(&self, py: Python<'py>) -> PyResult<Held<'py>> {
        Ok(Held {
            source: Lent::new(self.source.bind(py))?,
            places: int64s(self.slices.bind(py))?,
        })
    }

    /// Go on where the last wait has ended.
    pub fn resume<'a>(&'a self, held: &'a Held<'_>) -> PyResult<SendingRun<'a>> {
        let source = held.source.as_slice();
        Ok(SendingRun {
            sending: self,
            messages: Slices::new(&self.prefix, source, &held.places, self.skip).checked()?,
            is_over: false,
            is_awaited: false,
        })
    }

    /// It cannot go on, for a reason that offering does not know.
    pub fn give_up(&self, why: String) {
        self.result.store(ERROR, Ordering::Release);
        let _ = self.failure.set(why);
    }
}

/// A sending at work.
pub struct SendingRun<'a> {
    sending: &'a Sending,
    messages: Slices<'a>,
    is_over: bool,
    is_awaited: bool,
}

impl SendingRun<'_> {
    /// Send what there is room for in one turn; how many messages.
    pub fn work(&mut self) -> usize {
        if self.is_over {
            return 0;
        }
        let first = self.sending.sent();
        let publication = self.sending.publication.get();
        let offered = self
            .messages
            .offer_some(first, MAX_SENT_PER_TURN, publication);
        let (count, result) = offered.unwrap_or_else(|error| {
            self.sending.give_up(error.message());
            (0, ERROR)
        });
        self.sending.sent.store(first + count, Ordering::Release);
        self.sending.result.store(result, Ordering::Release);
        let is_complete = first + count == self.messages.count();
        self.is_over = is_complete || (result <= 0 && !is_held_up(result));
        self.is_awaited = self.is_over && !(is_complete && self.sending.is_last);
        count
    }

    /// Whether all is sent and something is to follow, or the rest never can be sent.
    pub fn is_awaited(&self) -> bool {
        self.is_awaited
    }
}
