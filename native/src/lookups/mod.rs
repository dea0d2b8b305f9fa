//! Requests for descriptors that are answered without the interpreter.
//!
//! A client that asks for one recording after the other, or lists all of them again and again,
//! spends much of its time waiting for Python to take its request apart. So the conductor says
//! which sessions may have descriptors at once, and the catalog keeps an index of where they are;
//! what is not in the index, or cannot be sent at once, is the conductor's as before, and so is
//! the rest of a listing that does not get on. All requests and responses of the control protocol
//! begin alike, which is most of what is known of them here.

mod index;

use crate::aeron::{ExclusivePublication, MAX_SENT_PER_TURN, Slices, is_held_up};
use crate::mailbox::Event;
pub use index::{DescriptorIndex, Places};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

// Offsets in a request and in a response: template id and schema id in the SBE header, then the
// first fields of the body, the third of a request being the (first) recording id, and the fourth,
// where many are asked for, how many.
const KIND: usize = 2;
const CONTROL_SESSION_ID: usize = 8;
const CORRELATION_ID: usize = 16;
/// Where control session id and correlation id, which the answer repeats, end.
const ADDRESS_END: usize = 24;
const RECORDING_ID: usize = 24;
const RECORD_COUNT: usize = 32;
/// What of a descriptor in the catalog an answer has another value for.
const DESCRIPTOR_ADDRESS_LENGTH: usize = ADDRESS_END - CONTROL_SESSION_ID;

/// How long a listing may get no further before it is the conductor's, who knows what to do about
/// clients that do not read.
const MAX_HELD_UP: Duration = Duration::from_millis(20);

#[pyclass(frozen, module = "aerotape._native")]
pub struct Lookups {
    index: Py<DescriptorIndex>,
    schema_id: u16,
    one: u16,
    many: u16,
    descriptor: Message,
    unknown: Message,
    callers: Mutex<HashMap<i64, Caller>>,
}

struct Caller {
    image_correlation_id: i64,
    publication: Py<ExclusivePublication>,
    listing: Option<Listing>,
}

/// The beginning of a message, or a whole one, but for who it is for.
struct Message(Vec<u8>);

impl Message {
    fn new(bytes: Vec<u8>, length: usize) -> PyResult<Self> {
        if bytes.len() < length {
            return Err(PyValueError::new_err(format!(
                "a response begins with {length} bytes at least, not {}",
                bytes.len()
            )));
        }
        Ok(Self(bytes))
    }

    fn addressed(&self, control_session_id: i64, correlation_id: i64) -> Vec<u8> {
        let mut bytes = self.0.clone();
        put_i64(&mut bytes, CONTROL_SESSION_ID, control_session_id);
        put_i64(&mut bytes, CORRELATION_ID, correlation_id);
        bytes
    }
}

/// A listing under way.
struct Listing {
    correlation_id: i64,
    next_id: i64,
    remaining: i64,
    held_up_since: Option<Instant>,
}

/// What becomes of a listing after a turn.
enum Turn {
    GoesOn,
    IsOver,
    /// Something is in the way that is not for here.
    IsLeft,
}

impl Lookups {
    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Caller>> {
        match self.callers.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Answer what stands at the front of `events`, up to the first that is not for here; take
    /// these out and return how many they were.
    pub fn answer(&self, catalog: &[u8], events: &mut Vec<Event>) -> usize {
        if events.is_empty() {
            return 0;
        }
        let mut callers = self.lock();
        let places = self.index.get().places();
        let answered = events
            .iter()
            .take_while(|event| {
                self.answer_one(&mut callers, &places, catalog, event)
                    .is_some()
            })
            .count();
        drop((callers, places));
        events.drain(..answered);
        answered
    }

    fn answer_one(
        &self,
        callers: &mut HashMap<i64, Caller>,
        places: &Places,
        catalog: &[u8],
        event: &Event,
    ) -> Option<()> {
        let Event::Message {
            image_correlation_id,
            payload,
            ..
        } = event
        else {
            return None;
        };
        let template_id = read_u16(payload, KIND)?;
        if read_u16(payload, KIND + 2)? != self.schema_id
            || (template_id != self.one && template_id != self.many)
        {
            return None;
        }
        let session_id = read_i64(payload, CONTROL_SESSION_ID)?;
        let correlation_id = read_i64(payload, CORRELATION_ID)?;
        let recording_id = read_i64(payload, RECORDING_ID)?;
        let caller = callers.get_mut(&session_id)?;
        if caller.image_correlation_id != *image_correlation_id || caller.listing.is_some() {
            return None;
        }
        if template_id == self.many {
            let count = i64::from(read_i32(payload, RECORD_COUNT)?);
            caller.listing = Listing::new(places, correlation_id, recording_id, count);
            return caller.listing.as_ref().map(|_| ());
        }
        let first = places.first_from(recording_id);
        if places.id(first) != Some(recording_id) {
            return None;
        }
        let prefix = self.descriptor.addressed(session_id, correlation_id);
        let place = places.slices(first, 1);
        let message = Slices::new(&prefix, catalog, place, DESCRIPTOR_ADDRESS_LENGTH);
        let offered = message.offer_some(0, 1, caller.publication.get());
        offered.is_ok_and(|(sent, _)| sent == 1).then_some(())
    }

    /// Go on with all listings under way; how many messages went out. Those that cannot go on are
    /// added to `left`.
    pub fn go_on(&self, catalog: &[u8], left: &mut Vec<Event>) -> usize {
        let mut callers = self.lock();
        let places = self.index.get().places();
        let mut sent = 0;
        for (&control_session_id, caller) in callers.iter_mut() {
            let Some(listing) = &mut caller.listing else {
                continue;
            };
            let publication = caller.publication.get();
            let prefix = self
                .descriptor
                .addressed(control_session_id, listing.correlation_id);
            let (count, mut turn) = listing.send(&places, catalog, &prefix, publication);
            sent += count;
            if let Turn::GoesOn = turn
                && let Some(end_id) = listing.end(&places)
            {
                let mut message = self
                    .unknown
                    .addressed(control_session_id, listing.correlation_id);
                put_i64(&mut message, RECORDING_ID, end_id);
                if publication.offer_now(&message) {
                    sent += 1;
                    turn = Turn::IsOver;
                } else {
                    turn = listing.hold_up();
                }
            }
            if let Turn::IsLeft = turn {
                left.push(Event::ListingLeft {
                    control_session_id,
                    correlation_id: listing.correlation_id,
                    next_id: listing.next_id,
                    remaining: listing.remaining,
                });
            }
            if !matches!(turn, Turn::GoesOn) {
                caller.listing = None;
            }
        }
        sent
    }
}

impl Listing {
    /// A listing that can be answered from what is known; None where it takes more.
    fn new(places: &Places, correlation_id: i64, from_id: i64, count: i64) -> Option<Self> {
        (count > 0 && places.end_id().is_some()).then_some(Self {
            correlation_id,
            next_id: from_id,
            remaining: count,
            held_up_since: None,
        })
    }

    /// Send what there is room for of the next descriptors; how many went out.
    fn send(
        &mut self,
        places: &Places,
        catalog: &[u8],
        prefix: &[u8],
        publication: &ExclusivePublication,
    ) -> (usize, Turn) {
        let first = places.first_from(self.next_id);
        let limit = usize::try_from(self.remaining).map_or(MAX_SENT_PER_TURN, |remaining| {
            remaining.min(MAX_SENT_PER_TURN)
        });
        let slices = places.slices(first, limit);
        let messages = Slices::new(prefix, catalog, slices, DESCRIPTOR_ADDRESS_LENGTH);
        let offered = messages.offer_some(0, limit, publication);
        // What is wrong comes out when the conductor tries the same.
        let (sent, result) = offered.unwrap_or_default();
        if sent > 0 {
            self.held_up_since = None;
            self.remaining -= sent as i64;
            let last = places.id(first + sent - 1);
            self.next_id = last.map_or(self.next_id, |last| last.saturating_add(1));
        }
        let turn = if self.remaining == 0 {
            Turn::IsOver
        } else if 2 * sent == slices.len() {
            if first + sent == places.count() && places.end_id().is_none() {
                Turn::IsLeft
            } else {
                Turn::GoesOn
            }
        } else if !is_held_up(result) {
            Turn::IsLeft
        } else if sent > 0 {
            Turn::GoesOn
        } else {
            self.hold_up()
        };
        (sent, turn)
    }

    /// Where all have been sent that there are: the id that the client is told of.
    fn end(&self, places: &Places) -> Option<i64> {
        let end_id = places.end_id()?;
        let is_at_end = places.first_from(self.next_id) == places.count();
        is_at_end.then(|| end_id.max(self.next_id))
    }

    /// There was no room.
    fn hold_up(&mut self) -> Turn {
        let now = Instant::now();
        let since = self.held_up_since.get_or_insert(now);
        if now - *since > MAX_HELD_UP {
            Turn::IsLeft
        } else {
            Turn::GoesOn
        }
    }
}

fn read<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset + N)?.try_into().ok()
}

fn read_u16(bytes: &[u8], offset: usize) -> Option<u16> {
    read(bytes, offset).map(u16::from_le_bytes)
}

fn read_i32(bytes: &[u8], offset: usize) -> Option<i32> {
    read(bytes, offset).map(i32::from_le_bytes)
}

fn read_i64(bytes: &[u8], offset: usize) -> Option<i64> {
    read(bytes, offset).map(i64::from_le_bytes)
}

fn put_i64(bytes: &mut [u8], offset: usize, value: i64) {
    if let Some(place) = bytes.get_mut(offset..offset + 8) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

#[pymethods]
impl Lookups {
    #[new]
    #[pyo3(signature = (index, *, schema_id, one, many, descriptor, unknown))]
    fn new(
        index: Py<DescriptorIndex>,
        schema_id: u16,
        one: u16,
        many: u16,
        descriptor: Vec<u8>,
        unknown: Vec<u8>,
    ) -> PyResult<Self> {
        Ok(Self {
            index,
            schema_id,
            one,
            many,
            descriptor: Message::new(descriptor, ADDRESS_END)?,
            unknown: Message::new(unknown, RECORDING_ID + 8)?,
            callers: Mutex::default(),
        })
    }

    fn serve(
        &self,
        control_session_id: i64,
        image_correlation_id: i64,
        publication: Py<ExclusivePublication>,
    ) {
        let caller = Caller {
            image_correlation_id,
            publication,
            listing: None,
        };
        let before = self.lock().insert(control_session_id, caller);
        drop(before);
    }

    fn leave(&self, control_session_id: i64) -> Option<(i64, i64, i64)> {
        let left = self.lock().remove(&control_session_id)?;
        let listing = left.listing?;
        Some((listing.correlation_id, listing.next_id, listing.remaining))
    }

    fn list(&self, control_session_id: i64, correlation_id: i64, from_id: i64, count: i64) -> bool {
        let mut callers = self.lock();
        let Some(caller) = callers.get_mut(&control_session_id) else {
            return false;
        };
        if caller.listing.is_none() {
            let places = self.index.get().places();
            caller.listing = Listing::new(&places, correlation_id, from_id, count);
            return caller.listing.is_some();
        }
        false
    }

    fn is_listing(&self, control_session_id: i64) -> bool {
        let callers = self.lock();
        let caller = callers.get(&control_session_id);
        caller.is_some_and(|caller| caller.listing.is_some())
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DescriptorIndex>()?;
    module.add_class::<Lookups>()
}
