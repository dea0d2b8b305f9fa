//! Finds the recordings that are not regular. For a regular one a start has nothing to do: it is
//! stopped, with possible figures, and with just the segment files that it should have, of the
//! length that they should have.
//!
//! `catalog/recovery/refresh.py` looks at those found, and says what is wrong with them.

use super::{
    RECORDING_ID_OFFSET, SEGMENT_FILE_LENGTH_OFFSET, START_POSITION_OFFSET, STOP_POSITION_OFFSET,
    TERM_BUFFER_LENGTH_OFFSET, VALID, array, descriptor, int32, int64, strings,
};
use crate::aeron::{Lent, int64s};
use crate::frame::FRAME_ALIGNMENT;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

const MIN_LENGTH: i64 = 64 << 10;
const MAX_LENGTH: i64 = 1 << 30;
/// A stream has at most 2^31 terms.
const MAX_TERMS_BITS: u32 = 31;

/// Indices into the names of files, by recording id, with the base position of each.
type Files = HashMap<i64, Vec<(i64, usize)>>;

/// See `aerotape/_native/`.
#[pyfunction]
pub fn irregular_recordings<'py>(
    py: Python<'py>,
    catalog: &Bound<'py, PyAny>,
    offsets: &Bound<'py, PyAny>,
    states: PyBackedBytes,
    archive_dir: PathBuf,
    names: Vec<OsString>,
) -> PyResult<(Bound<'py, PyBytes>, Vec<OsString>)> {
    let catalog = Lent::new(catalog)?;
    let offsets = int64s(offsets)?;
    let mut files = Files::new();
    for (index, name) in names.iter().enumerate() {
        if let Some((recording_id, base)) = parse(name) {
            files.entry(recording_id).or_default().push((base, index));
        }
    }
    let mut is_other = vec![true; names.len()];
    let mut irregular: Vec<i64> = Vec::new();
    let mut none = Vec::new();
    for ((number, offset), state) in (0..).zip(offsets).zip(states.iter()) {
        if *state != VALID {
            continue;
        }
        let is_regular = Recording::read(catalog.as_slice(), offset).is_some_and(|recording| {
            let own = files.get_mut(&recording.id).unwrap_or(&mut none);
            own.sort_unstable();
            let is_regular = recording.has_just(own, &archive_dir, &names);
            for (_, index) in own.iter().filter(|_| is_regular) {
                is_other
                    .get_mut(*index)
                    .into_iter()
                    .for_each(|it| *it = false);
            }
            is_regular
        });
        if !is_regular {
            irregular.push(number);
        }
    }
    let others = names.into_iter().zip(is_other);
    let others = others.filter(|(_, is_other)| *is_other);
    Ok((
        array(py, &irregular)?,
        others.map(|(name, _)| name).collect(),
    ))
}

/// The recording id and the base position in the name of a segment file, if it is in the form in
/// which an archive writes it.
fn parse(name: &OsStr) -> Option<(i64, i64)> {
    let name = name.to_str()?;
    let (recording_id, base) = name.strip_suffix(".rec")?.split_once('-')?;
    let (recording_id, base) = (recording_id.parse().ok()?, base.parse().ok()?);
    (name == format!("{recording_id}-{base}.rec")).then_some((recording_id, base))
}

struct Recording {
    id: i64,
    start: i64,
    stop: i64,
    term_length: i64,
    segment_length: i64,
}

impl Recording {
    /// Read a descriptor; `None` if it is damaged, has impossible figures or no stop position.
    fn read(catalog: &[u8], offset: i64) -> Option<Self> {
        let body = descriptor(catalog, offset)?;
        strings(body)?;
        let recording = Self {
            id: int64(body, RECORDING_ID_OFFSET)?,
            start: int64(body, START_POSITION_OFFSET)?,
            stop: int64(body, STOP_POSITION_OFFSET)?,
            term_length: i64::from(int32(body, TERM_BUFFER_LENGTH_OFFSET)?),
            segment_length: i64::from(int32(body, SEGMENT_FILE_LENGTH_OFFSET)?),
        };
        recording.is_possible().then_some(recording)
    }

    fn is_possible(&self) -> bool {
        let is_length =
            |length: i64| (MIN_LENGTH..=MAX_LENGTH).contains(&length) && length & (length - 1) == 0;
        let is_position = |position: i64| position & (FRAME_ALIGNMENT as i64 - 1) == 0;
        is_length(self.term_length)
            && is_length(self.segment_length)
            && self.segment_length >= self.term_length
            && (0..=self.stop).contains(&self.start)
            && is_position(self.start)
            && is_position(self.stop)
            && self.stop < self.term_length << MAX_TERMS_BITS
    }

    /// Whether these files are all of the recording, up to the one in which it would continue, or
    /// it is empty and has none.
    fn has_just(&self, files: &[(i64, usize)], archive_dir: &Path, names: &[OsString]) -> bool {
        if files.is_empty() {
            return self.start == self.stop;
        }
        let first = self.start & -self.term_length;
        let count = (self.stop - first) / self.segment_length + 1;
        files.len() as i64 == count
            && files.iter().zip(0..).all(|(&(base, index), number)| {
                base == first + number * self.segment_length
                    && names
                        .get(index)
                        .and_then(|name| archive_dir.join(name).symlink_metadata().ok())
                        .is_some_and(|file| {
                            file.is_file() && file.len() == self.segment_length as u64
                        })
            })
    }
}
