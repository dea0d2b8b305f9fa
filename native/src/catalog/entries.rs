//! Follows the chain of entries in the catalog as long as they are sound.

use super::{
    BLOCK_LENGTH, ENTRY_HEADER_LENGTH, RECORDING_ID_OFFSET, STATE_OFFSET, STATES, array, int32,
    int64, strings,
};
use crate::aeron::Lent;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// See `aerotape/_native/`.
#[pyfunction]
pub fn sound_entries<'py>(
    py: Python<'py>,
    catalog: &Bound<'py, PyAny>,
    offset: usize,
    alignment: usize,
) -> PyResult<(Bound<'py, PyBytes>, usize)> {
    let catalog = Lent::new(catalog)?;
    let (mut found, mut at) = (Vec::new(), offset);
    while let Some(entry) = read(catalog.as_slice(), at, alignment) {
        found.extend([at as i64, entry.length as i64, entry.recording_id]);
        at = entry.end;
    }
    Ok((array(py, &found)?, at))
}

struct Entry {
    length: usize,
    recording_id: i64,
    /// Offset of the next one.
    end: usize,
}

/// Read the entry at an offset; `None` if it is not one whose strings fill what its header claims.
fn read(catalog: &[u8], offset: usize, alignment: usize) -> Option<Entry> {
    let length = usize::try_from(int32(catalog, offset)?).ok()?;
    let begin = offset + ENTRY_HEADER_LENGTH;
    if length < BLOCK_LENGTH || !STATES.contains(&int32(catalog, offset + STATE_OFFSET)?) {
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
        recording_id: int64(body, RECORDING_ID_OFFSET)?,
        end,
    })
}
