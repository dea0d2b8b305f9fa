//! Follows the chain of entries in the catalog as long as they are sound.

use super::{
    BLOCK_LENGTH, ENTRY_HEADER_LENGTH, RECORDING_ID_OFFSET, STATE_OFFSET, STATES, array, int32,
    int64, strings,
};
use crate::aeron::Lent;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Recording ids, offsets and lengths of descriptors, and states.
type Columns<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);

/// See `aerotape/_native/`.
#[pyfunction]
pub fn sound_entries<'py>(
    py: Python<'py>,
    catalog: &Bound<'py, PyAny>,
    offset: usize,
    alignment: usize,
) -> PyResult<(Columns<'py>, usize)> {
    let catalog = Lent::new(catalog)?;
    let (mut ids, mut offsets, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    let (mut states, mut at) = (Vec::new(), offset);
    while let Some(entry) = read(catalog.as_slice(), at, alignment) {
        ids.push(entry.recording_id);
        offsets.push((at + ENTRY_HEADER_LENGTH) as i64);
        lengths.push(entry.length as i64);
        states.push(entry.state);
        at = entry.end;
    }
    let columns = (
        array(py, &ids)?,
        array(py, &offsets)?,
        array(py, &lengths)?,
        PyBytes::new(py, &states),
    );
    Ok((columns, at))
}

struct Entry {
    length: usize,
    state: u8,
    recording_id: i64,
    /// Offset of the next one.
    end: usize,
}

/// Read the entry at an offset; `None` if it is not one whose strings fill what its header claims.
fn read(catalog: &[u8], offset: usize, alignment: usize) -> Option<Entry> {
    let length = usize::try_from(int32(catalog, offset)?).ok()?;
    let begin = offset + ENTRY_HEADER_LENGTH;
    let state = u8::try_from(int32(catalog, offset + STATE_OFFSET)?).ok()?;
    if length < BLOCK_LENGTH || !STATES.contains(&state) {
        return None;
    }
    let aligned = |length: usize| {
        (ENTRY_HEADER_LENGTH + length)
            .checked_next_multiple_of(alignment)
            .and_then(|taken| offset.checked_add(taken))
    };
    let end = aligned(length).filter(|&end| end <= catalog.len())?;
    // The strings may end in the padding, beyond the length that the header claims.
    let body = catalog.get(begin..end)?;
    let (_, needed) = strings(body)?;
    (aligned(needed) == Some(end)).then_some(Entry {
        length,
        state,
        recording_id: int64(body, RECORDING_ID_OFFSET)?,
        end,
    })
}
