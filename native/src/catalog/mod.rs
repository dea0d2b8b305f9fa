//! The mapped catalog file: its chain of entries, their descriptors, and their segment files.
//!
//! An entry is a header of 32 bytes, which begins with the length of the descriptor and the state,
//! and the descriptor: an SBE message body of fixed fields and three strings with 32-bit lengths.
//! `catalog/layout.py` has all fields; here are the offsets that are needed, relative to the entry
//! or to the descriptor.

pub mod descriptors;
pub mod entries;
pub mod regular;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

const ENTRY_HEADER_LENGTH: usize = 32;
const STATE_OFFSET: usize = 4;
const STATES: std::ops::RangeInclusive<u8> = 0..=2;
const VALID: u8 = 1;

const RECORDING_ID_OFFSET: usize = 16;
const START_POSITION_OFFSET: usize = 40;
const STOP_POSITION_OFFSET: usize = 48;
const SEGMENT_FILE_LENGTH_OFFSET: usize = 60;
const TERM_BUFFER_LENGTH_OFFSET: usize = 64;
const STREAM_ID_OFFSET: usize = 76;
const BLOCK_LENGTH: usize = 80;

/// The descriptor at an offset in the catalog, padding included; `None` when it is not wholly there.
fn descriptor(catalog: &[u8], offset: i64) -> Option<&[u8]> {
    let begin = usize::try_from(offset).ok()?;
    let header = begin.checked_sub(ENTRY_HEADER_LENGTH)?;
    let length = usize::try_from(int32(catalog, header)?).ok()?;
    catalog.get(begin..begin.checked_add(length)?)
}

/// The three strings of a descriptor and the offset after them; `None` when they do not fit.
fn strings(descriptor: &[u8]) -> Option<([&[u8]; 3], usize)> {
    let mut found = [&[][..]; 3];
    let mut end = BLOCK_LENGTH;
    for string in &mut found {
        let length = u32::from_le_bytes(field(descriptor, end)?) as usize;
        let begin = end + size_of::<u32>();
        end = begin.checked_add(length)?;
        *string = descriptor.get(begin..end)?;
    }
    Some((found, end))
}

fn int32(bytes: &[u8], offset: usize) -> Option<i32> {
    Some(i32::from_le_bytes(field(bytes, offset)?))
}

fn int64(bytes: &[u8], offset: usize) -> Option<i64> {
    Some(i64::from_le_bytes(field(bytes, offset)?))
}

fn field<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}

/// Numbers as the memory of Python's `array("q")`.
fn array<'py>(py: Python<'py>, numbers: &[i64]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, size_of_val(numbers), |bytes| {
        for (place, number) in bytes.chunks_exact_mut(size_of::<i64>()).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        Ok(())
    })
}
