//! Finds the recording descriptors that a listing sends in the mapped catalog file.

use super::{
    RECORDING_ID_OFFSET, STREAM_ID_OFFSET, VALID, array, descriptor, int32, int64, strings,
};
use crate::aeron::{Lent, int64s};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

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
#[pyo3(signature = (catalog, offsets, states, limit, *, stream_id=None, channel_fragment=None))]
pub fn find_descriptors<'py>(
    py: Python<'py>,
    catalog: &Bound<'py, PyAny>,
    offsets: &Bound<'py, PyAny>,
    states: PyBackedBytes,
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
    for (offset, state) in offsets.into_iter().zip(states.iter()) {
        if ids.len() == limit {
            break;
        }
        scanned += 1;
        if *state != VALID {
            continue;
        }
        if let Some(found) = read(catalog.as_slice(), offset, &filter) {
            ids.push(found.recording_id);
            slices.extend([offset, found.length as i64]);
        }
    }
    Ok((array(py, &ids)?, array(py, &slices)?, scanned))
}

/// Read the descriptor at an offset; `None` when it does not pass the filter or is damaged.
fn read(catalog: &[u8], offset: i64, filter: &Filter<'_>) -> Option<Descriptor> {
    let body = descriptor(catalog, offset)?;
    let stream_id = int32(body, STREAM_ID_OFFSET)?;
    if filter.stream_id.is_some_and(|wanted| wanted != stream_id) {
        return None;
    }
    let ([_stripped_channel, original_channel, _source_identity], end) = strings(body)?;
    let fragment = filter.channel_fragment;
    let is_match = fragment.is_empty()
        || original_channel
            .windows(fragment.len())
            .any(|window| window == fragment);
    is_match.then_some(Descriptor {
        recording_id: int64(body, RECORDING_ID_OFFSET)?,
        length: end,
    })
}
