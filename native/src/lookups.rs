//! Requests whose answer is at hand: sent without the interpreter.
//!
//! A client that asks for one recording after the other spends most of its time waiting for
//! Python to take its request apart and to put the same descriptor together again. So the
//! conductor leaves descriptors that it has sent here, and says which sessions may have them; what
//! is not here, or cannot be sent at once, is the conductor's as before. All requests and
//! responses of the control protocol begin alike, which is all that is known of them here.

use crate::aeron::ExclusivePublication;
use crate::mailbox::Event;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

// Offsets in a request and in a response: template id and schema id in the SBE header, then the
// first fields of the body, the third of a request being the recording id.
const KIND: usize = 2;
const CONTROL_SESSION_ID: usize = 8;
const RECORDING_ID: usize = 24;
const REQUEST_LENGTH: usize = 32;
/// Where control session id and correlation id, which the answer repeats, end.
const ADDRESS_END: usize = 24;

/// Most bytes of answers that are kept; with more all are dropped, and come again as asked for.
const MAX_KEPT_BYTES: usize = 32 << 20;

#[pyclass(frozen, module = "aerotape._native")]
pub struct Lookups {
    template_id: u16,
    schema_id: u16,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    callers: HashMap<i64, Caller>,
    answers: HashMap<i64, Box<[u8]>>,
    answer_bytes: usize,
    message: Vec<u8>,
}

struct Caller {
    image_correlation_id: i64,
    publication: Py<ExclusivePublication>,
}

impl Kept {
    fn forget(&mut self, recording_id: i64) {
        if let Some(answer) = self.answers.remove(&recording_id) {
            self.answer_bytes -= answer.len();
        }
    }
}

impl Lookups {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        match self.kept.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Answer what stands at the front of `events`, up to the first that is not for here; take
    /// these out and return how many they were.
    pub fn answer(&self, events: &mut Vec<Event>) -> usize {
        if events.is_empty() {
            return 0;
        }
        let mut kept = self.lock();
        let answered = events
            .iter()
            .take_while(|event| self.answer_one(&mut kept, event).is_some())
            .count();
        drop(kept);
        events.drain(..answered);
        answered
    }

    fn answer_one(&self, kept: &mut Kept, event: &Event) -> Option<()> {
        let Event::Message {
            image_correlation_id,
            payload,
            ..
        } = event
        else {
            return None;
        };
        if payload.len() < REQUEST_LENGTH
            || payload.get(KIND..KIND + 2)? != self.template_id.to_le_bytes()
            || payload.get(KIND + 2..KIND + 4)? != self.schema_id.to_le_bytes()
        {
            return None;
        }
        let caller = kept.callers.get(&read_i64(payload, CONTROL_SESSION_ID)?)?;
        if caller.image_correlation_id != *image_correlation_id {
            return None;
        }
        let answer = kept.answers.get(&read_i64(payload, RECORDING_ID)?)?;
        kept.message.clear();
        kept.message.extend_from_slice(answer);
        kept.message
            .get_mut(CONTROL_SESSION_ID..ADDRESS_END)?
            .copy_from_slice(payload.get(CONTROL_SESSION_ID..ADDRESS_END)?);
        caller
            .publication
            .get()
            .offer_now(&kept.message)
            .then_some(())
    }
}

fn read_i64(bytes: &[u8], offset: usize) -> Option<i64> {
    let bytes = bytes.get(offset..offset + 8)?;
    Some(i64::from_le_bytes(bytes.try_into().ok()?))
}

#[pymethods]
impl Lookups {
    #[new]
    fn new(template_id: u16, schema_id: u16) -> Self {
        Self {
            template_id,
            schema_id,
            kept: Mutex::default(),
        }
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
        };
        self.lock().callers.insert(control_session_id, caller);
    }

    fn leave(&self, control_session_id: i64) {
        let left = self.lock().callers.remove(&control_session_id);
        drop(left);
    }

    fn keep(&self, recording_id: i64, response: &[u8]) -> PyResult<()> {
        if response.len() < ADDRESS_END {
            return Err(PyValueError::new_err(format!(
                "a response has {ADDRESS_END} bytes at least, not {}",
                response.len()
            )));
        }
        let mut kept = self.lock();
        kept.forget(recording_id);
        if kept.answer_bytes + response.len() > MAX_KEPT_BYTES {
            kept.answers.clear();
            kept.answer_bytes = 0;
        }
        kept.answer_bytes += response.len();
        kept.answers.insert(recording_id, response.into());
        Ok(())
    }

    fn forget(&self, recording_id: i64) {
        self.lock().forget(recording_id);
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Lookups>()
}
