//! Finds the recording descriptors that a listing sends in the mapped catalog file.
//!
//! An entry of the catalog is a header of 32 bytes, which begins with the length of the descriptor,
//! and the descriptor: an SBE message body of fixed fields and three strings with 32-bit lengths
//! (`catalog/layout.py`).

use crate::aeron::{Lent, int64s};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Offsets in an entry, relative to the descriptor.
const ENTRY_HEADER_LENGTH: usize = 32;
const RECORDING_ID_OFFSET: usize = 16;
const STREAM_ID_OFFSET: usize = 76;
const BLOCK_LENGTH: usize = 80;

/// A stream id and a fragment of the original channel that listed recordings must have.
struct Filter<'a> {
    stream_id: Option<i32>,
    channel_fragment: &'a [u8],
}

/// A descriptor without the padding that follows it in the catalog.
struct Descriptor {
    recording_id: i64,
    length: usize,
}

/// See `aerotape/_native/`.
#[pyfunction]
#[pyo3(signature = (catalog, offsets, limit, *, stream_id=None, channel_fragment=None))]
pub fn find_descriptors<'py>(
    py: Python<'py>,
    catalog: &Bound<'py, PyAny>,
    offsets: &Bound<'py, PyAny>,
    limit: usize,
    stream_id: Option<i32>,
    channel_fragment: Option<&[u8]>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, usize)> {
    let catalog = Lent::new(catalog)?;
    let offsets = int64s(offsets)?;
    let filter = Filter {
        stream_id,
        channel_fragment: channel_fragment.unwrap_or_default(),
    };
    let (mut ids, mut slices, mut scanned) = (Vec::new(), Vec::new(), 0);
    for offset in offsets {
        if ids.len() == limit {
            break;
        }
        scanned += 1;
        if let Some(found) = read(catalog.as_slice(), offset, &filter) {
            ids.push(found.recording_id);
            slices.extend([offset, found.length as i64]);
        }
    }
    Ok((array(py, &ids)?, array(py, &slices)?, scanned))
}

/// Read the descriptor at an offset; `None` when it does not pass the filter or is damaged.
fn read(catalog: &[u8], offset: i64, filter: &Filter<'_>) -> Option<Descriptor> {
    let begin = usize::try_from(offset).ok()?;
    let header = begin.checked_sub(ENTRY_HEADER_LENGTH)?;
    let length = usize::try_from(i32::from_le_bytes(field(catalog, header)?)).ok()?;
    let body = catalog.get(begin..begin.checked_add(length)?)?;
    let stream_id = i32::from_le_bytes(field(body, STREAM_ID_OFFSET)?);
    if filter.stream_id.is_some_and(|wanted| wanted != stream_id) {
        return None;
    }
    let (_stripped_channel, end) = string(body, BLOCK_LENGTH)?;
    let (original_channel, end) = string(body, end)?;
    let (_source_identity, end) = string(body, end)?;
    let fragment = filter.channel_fragment;
    let is_match = fragment.is_empty()
        || original_channel
            .windows(fragment.len())
            .any(|window| window == fragment);
    is_match.then_some(Descriptor {
        recording_id: i64::from_le_bytes(field(body, RECORDING_ID_OFFSET)?),
        length: end,
    })
}

/// The string whose length is at `offset`, and the offset after it.
fn string(body: &[u8], offset: usize) -> Option<(&[u8], usize)> {
    let length = u32::from_le_bytes(field(body, offset)?) as usize;
    let begin = offset + size_of::<u32>();
    let end = begin.checked_add(length)?;
    Some((body.get(begin..end)?, end))
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
