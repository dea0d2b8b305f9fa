//! Counters: those of this client, and those that any client allocated in the driver.

mod waits;

pub(super) use waits::Waits;

use super::client::AeronClient;
use super::constants;
use super::guarded::Guarded;
use crate::errors::{Error, Result};
use crate::idle::sleep_precisely;
use pyo3::prelude::*;
use rusteron_client::bindings as c;
use std::borrow::Cow;
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};
use waits::Goal;

/// A counter of this client, shared between the threads that write and read it.
#[pyclass(frozen, from_py_object, module = "aerotape._native")]
#[derive(Clone)]
pub struct Counter(Arc<Shared>);

struct Shared {
    cell: Guarded<c::aeron_counter_t>,
    id: i32,
    registration_id: i64,
    /// The value when it was closed, for readers after that.
    last: AtomicI64,
    closed: AtomicBool,
}

/// # Safety
/// `counter` is a valid C counter; the returned reference must not outlive it.
unsafe fn value<'a>(counter: *mut c::aeron_counter_t) -> &'a AtomicI64 {
    // SAFETY: the address is that of an aligned 64-bit value in the mapped counters file,
    // which all processes access atomically.
    unsafe { AtomicI64::from_ptr(c::aeron_counter_addr(counter)) }
}

impl Counter {
    /// Call inside the client.
    pub(super) fn new(client: AeronClient, counter: *mut c::aeron_counter_t) -> Result<Self> {
        // SAFETY: the caller has entered the client, whose counter this is.
        let raw: c::aeron_counter_constants_t =
            unsafe { constants(|raw| c::aeron_counter_constants(counter, raw))? };
        Ok(Self(Arc::new(Shared {
            cell: Guarded::new(client, counter, "counter"),
            id: raw.counter_id,
            registration_id: raw.registration_id,
            last: AtomicI64::new(0),
            closed: AtomicBool::new(false),
        })))
    }
}

#[pymethods]
impl Counter {
    #[getter]
    fn id(&self) -> i32 {
        self.0.id
    }

    #[getter]
    fn registration_id(&self) -> i64 {
        self.0.registration_id
    }

    #[getter]
    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire) || !self.0.cell.is_open()
    }

    /// The value; once closed, the last one it had.
    #[inline]
    pub fn get(&self) -> i64 {
        // SAFETY: the pointer is valid within the call.
        let read = |counter| unsafe { value(counter).load(Ordering::Acquire) };
        self.0
            .cell
            .with(read)
            .unwrap_or_else(|| self.0.last.load(Ordering::Acquire))
    }

    #[inline]
    #[pyo3(name = "set")]
    pub fn set_release(&self, new: i64) {
        self.0.last.store(new, Ordering::Release);
        // SAFETY: the pointer is valid within the call.
        self.0
            .cell
            .with(|counter| unsafe { value(counter).store(new, Ordering::Release) });
    }

    /// Store what the counter belongs to, which readers see beside its value.
    fn set_reference_id(&self, reference_id: i64) {
        // SAFETY: the value is the first field of its whole record in the mapped counters file,
        // in which this client owns the reference id.
        self.0.cell.with(|counter| unsafe {
            let record =
                c::aeron_counter_addr(counter).cast::<c::aeron_counter_value_descriptor_t>();
            AtomicI64::from_ptr(&raw mut (*record).reference_id)
                .store(reference_id, Ordering::Release);
        });
    }

    pub fn add(&self, delta: i64) -> i64 {
        // SAFETY: the pointer is valid within the call.
        let add = |counter| unsafe { value(counter).fetch_add(delta, Ordering::AcqRel) };
        self.0
            .cell
            .with(add)
            .unwrap_or_else(|| self.0.last.load(Ordering::Acquire))
    }

    /// Set the value unless it is as high already.
    pub fn propose_max(&self, candidate: i64) {
        // SAFETY: the pointer is valid within the call.
        self.0
            .cell
            .with(|counter| unsafe { value(counter).fetch_max(candidate, Ordering::AcqRel) });
    }

    fn close(&self) {
        self.0.close();
    }
}

impl Shared {
    fn close(&self) {
        self.cell.take(|counter| {
            // SAFETY: taken out, so the counter is not used after this.
            unsafe {
                self.last
                    .store(value(counter).load(Ordering::Acquire), Ordering::Release);
                c::aeron_counter_close(counter, None, std::ptr::null_mut());
            }
        });
        self.closed.store(true, Ordering::Release);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.close();
    }
}

/// A counter that another client allocated, known by its id and registration id.
pub struct ForeignCounter {
    counters: CountersReader,
    counter_id: i32,
    registration_id: i64,
}

impl ForeignCounter {
    pub fn new(client: &AeronClient, counter_id: i32, registration_id: i64) -> Self {
        Self {
            counters: CountersReader::new(client.clone()),
            counter_id,
            registration_id,
        }
    }

    pub fn get(&self) -> i64 {
        self.counters.value(self.counter_id).unwrap_or(-1)
    }

    /// Whether the driver has freed it, or cannot be reached.
    pub fn is_freed(&self) -> bool {
        self.counters.state(self.counter_id) != Ok(ALLOCATED)
    }

    /// Whether value and id still belong to the registration. This is so for a while after the
    /// counter was freed: the driver clears them when it uses the id again.
    pub fn is_registered(&self) -> bool {
        self.counters.registration_id(self.counter_id) == Ok(self.registration_id)
    }
}

const ALLOCATED: i32 = 1;
/// Bytes of key in a counter's metadata record.
const KEY_LENGTH: usize = 112;

type Row = (i32, i32, Cow<'static, [u8]>, String, i64, i64, i64, i64);

/// Reads the counters that all clients of the driver share.
#[pyclass(frozen, module = "aerotape._native")]
pub struct CountersReader {
    client: AeronClient,
}

impl CountersReader {
    pub(super) fn new(client: AeronClient) -> Self {
        Self { client }
    }

    fn with<R>(&self, read: impl FnOnce(*mut c::aeron_counters_reader_t) -> R) -> Result<R> {
        let entered = self.client.enter_or_closed()?;
        // SAFETY: the client is open while entered, and so is its counters reader.
        Ok(read(unsafe { c::aeron_counters_reader(entered.aeron()) }))
    }

    /// Refuse ids that the C functions would use as an index without a check.
    fn checked(&self, counter_id: i32) -> Result<()> {
        let max = self.max_counter_id()?;
        if (0..=max).contains(&counter_id) {
            return Ok(());
        }
        let message = format!("there is no counter {counter_id}: ids go from 0 to {max}");
        Err(Error::Aeron {
            code: libc::EINVAL,
            message,
        })
    }

    /// The value of a counter; `None` where it will not change any more.
    fn reached(&self, goal: &Goal) -> Result<Option<i64>> {
        let counter_id = goal.counter_id;
        // The value first: it is that of the registration if this is still the same.
        let value = self.value(counter_id)?;
        if self.registration_id(counter_id)? != goal.registration_id {
            return Ok(None);
        }
        let is_final = value < goal.least && self.state(counter_id)? != ALLOCATED;
        Ok((!is_final).then_some(value))
    }

    fn field<T: Default>(
        &self,
        counter_id: i32,
        read: unsafe extern "C" fn(*mut c::aeron_counters_reader_t, i32, *mut T) -> i32,
    ) -> Result<T> {
        self.checked(counter_id)?;
        let mut out = T::default();
        // SAFETY: the reader is valid, the id in range, `out` a place for the answer.
        self.with(|reader| unsafe { read(reader, counter_id, &mut out) })?;
        Ok(out)
    }
}

#[pymethods]
impl CountersReader {
    #[getter]
    fn max_counter_id(&self) -> Result<i32> {
        // SAFETY: the reader is valid within the call.
        self.with(|reader| unsafe { c::aeron_counters_reader_max_counter_id(reader) })
    }

    #[pyo3(signature = (type_id=None))]
    fn rows(&self, type_id: Option<i32>) -> Result<Vec<Row>> {
        unsafe extern "C" fn on_counter(
            value: i64,
            id: i32,
            type_id: i32,
            key: *const u8,
            key_length: usize,
            label: *const c_char,
            label_length: usize,
            clientd: *mut c_void,
        ) {
            // SAFETY: clientd is the state below; key and label are valid for this call.
            unsafe {
                let (wanted, rows) = &mut *clientd.cast::<(Option<i32>, Vec<Row>)>();
                if wanted.is_some_and(|wanted| wanted != type_id) {
                    return;
                }
                let key = std::slice::from_raw_parts(key, key_length).to_vec();
                let label = std::slice::from_raw_parts(label.cast::<u8>(), label_length);
                let label = String::from_utf8_lossy(label).into_owned();
                rows.push((id, type_id, key.into(), label, 0, 0, 0, value));
            }
        }
        let mut state = (type_id, Vec::<Row>::new());
        let clientd = (&raw mut state).cast::<c_void>();
        self.with(|counters| {
            // SAFETY: the reader is valid within the call and the state outlives it.
            unsafe {
                c::aeron_counters_reader_foreach_counter(counters, Some(on_counter), clientd);
            }
        })?;
        for row in &mut state.1 {
            row.4 = self.registration_id(row.0)?;
            row.5 = self.field(row.0, c::aeron_counters_reader_counter_owner_id)?;
            row.6 = self.field(row.0, c::aeron_counters_reader_counter_reference_id)?;
        }
        Ok(state.1)
    }

    fn value(&self, counter_id: i32) -> Result<i64> {
        self.checked(counter_id)?;
        // SAFETY: the id is in range, so the address is that of an aligned value in the map.
        self.with(|reader| unsafe {
            AtomicI64::from_ptr(c::aeron_counters_reader_addr(reader, counter_id))
                .load(Ordering::Acquire)
        })
    }

    fn await_value(
        &self,
        py: Python<'_>,
        counter_id: i32,
        registration_id: i64,
        least: i64,
        timeout_ns: u64,
    ) -> Result<Option<i64>> {
        let goal = Goal {
            counter_id,
            registration_id,
            least,
        };
        py.detach(|| {
            sleep_precisely();
            let deadline = Instant::now() + Duration::from_nanos(timeout_ns);
            loop {
                match self.reached(&goal)? {
                    Some(value) if value < least && Instant::now() < deadline => {}
                    found => return Ok(found),
                }
                let is_over = |goal: &Goal| {
                    let found = self.reached(goal);
                    !matches!(found, Ok(Some(value)) if value < goal.least)
                };
                self.client.waits().wait(goal, deadline, is_over);
            }
        })
    }

    fn state(&self, counter_id: i32) -> Result<i32> {
        self.field(counter_id, c::aeron_counters_reader_counter_state)
    }

    fn type_id(&self, counter_id: i32) -> Result<i32> {
        self.field(counter_id, c::aeron_counters_reader_counter_type_id)
    }

    fn registration_id(&self, counter_id: i32) -> Result<i64> {
        self.field(counter_id, c::aeron_counters_reader_counter_registration_id)
    }

    fn key(&self, counter_id: i32) -> Result<Cow<'static, [u8]>> {
        self.checked(counter_id)?;
        self.with(|reader| {
            let mut key = std::ptr::null_mut();
            // SAFETY: the id is in range; a key is always KEY_LENGTH bytes of mapped metadata.
            unsafe {
                c::aeron_counters_reader_metadata_key(reader, counter_id, &mut key);
                std::slice::from_raw_parts(key, KEY_LENGTH).to_vec().into()
            }
        })
    }
}
