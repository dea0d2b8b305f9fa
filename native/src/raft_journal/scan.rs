//! Records of a segment as columns, without their payloads.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::Finding;
use super::entry::{self, Entry};
use super::record::{self, Problem};
use crate::errors::Error;
use crate::segment::open_regular;
use crate::segment::reader::Reader;

/// A run of records; `aerotape/_native/` describes the fields.
#[pyclass(frozen, get_all, module = "aerotape._native")]
pub struct RaftRecords {
    rows: usize,
    index: Py<PyBytes>,
    asqn: Py<PyBytes>,
    checksum: Py<PyBytes>,
    term: Py<PyBytes>,
    entry_type: Py<PyBytes>,
    lowest_asqn: Py<PyBytes>,
    highest_asqn: Py<PyBytes>,
    offset: Py<PyBytes>,
    length: Py<PyBytes>,
    data: Py<PyBytes>,
    next_offset: u64,
    next_index: u64,
    ended: bool,
    problem: Option<Finding>,
}

#[derive(Default)]
struct Columns {
    index: Vec<u64>,
    asqn: Vec<i64>,
    checksum: Vec<i64>,
    term: Vec<u64>,
    entry_type: Vec<u8>,
    lowest_asqn: Vec<u64>,
    highest_asqn: Vec<u64>,
    offset: Vec<u64>,
    length: Vec<u64>,
    data: Vec<u8>,
    next_offset: u64,
    next_index: u64,
    ended: bool,
    problem: Option<Finding>,
}

/// Where a scan reads.
struct Range {
    path: PathBuf,
    offset: u64,
    limit: u64,
    first_index: u64,
    rows: usize,
    bytes: usize,
    with_data: bool,
}

fn scan(range: &Range) -> Result<Columns, Error> {
    let io = |error| Error::io(&range.path, &error);
    let file = open_regular(&range.path).map_err(io)?;
    let mut reader = Reader::new(&file, range.limit);
    let mut found = Columns {
        next_offset: range.offset,
        next_index: range.first_index,
        ..Columns::default()
    };
    let stop = range.offset.saturating_add(range.bytes as u64);
    while found.index.len() < range.rows && found.next_offset < stop {
        let offset = found.next_offset;
        let record = match record::read(&mut reader, offset, range.limit).map_err(io)? {
            Ok(Some(record)) => record,
            Ok(None) => {
                found.ended = true;
                break;
            }
            Err(damage) => {
                found.problem = Some((offset, found.next_index, damage.problem.name(), damage.why));
                break;
            }
        };
        if record.index != found.next_index {
            let why = format!(
                "the index is {}, expected {}, the one after the previous record's",
                record.index, found.next_index
            );
            found.problem = Some((offset, found.next_index, Problem::InvalidIndex.name(), why));
            break;
        }
        let entry = entry::parse(record.blob).unwrap_or(Entry::NONE);
        found.index.push(record.index);
        found.asqn.push(record.asqn);
        found.checksum.push(record.checksum);
        found.term.push(entry.term);
        found.entry_type.push(entry.kind);
        found.lowest_asqn.push(entry.lowest_asqn);
        found.highest_asqn.push(entry.highest_asqn);
        found.offset.push(offset);
        found.length.push(record.bytes.len() as u64);
        if range.with_data {
            found.data.extend_from_slice(record.bytes);
        }
        found.next_offset = offset + record.bytes.len() as u64;
        found.next_index = found.next_index.wrapping_add(1);
    }
    Ok(found)
}

/// See `aerotape/_native/`.
#[pyfunction]
#[pyo3(signature = (path, *, offset, limit, first_index, rows = 65_536, bytes = 8 << 20, with_data = false))]
#[expect(
    clippy::too_many_arguments,
    reason = "keyword arguments of the Python contract"
)]
pub fn scan_raft_records(
    py: Python<'_>,
    path: PathBuf,
    offset: u64,
    limit: u64,
    first_index: u64,
    rows: usize,
    bytes: usize,
    with_data: bool,
) -> PyResult<RaftRecords> {
    let range = Range {
        path,
        offset,
        limit,
        first_index,
        rows,
        bytes,
        with_data,
    };
    let found = py.detach(|| scan(&range))?;
    let u64s = |numbers: &[u64]| column(py, numbers, u64::to_ne_bytes);
    let i64s = |numbers: &[i64]| column(py, numbers, i64::to_ne_bytes);
    Ok(RaftRecords {
        rows: found.index.len(),
        index: u64s(&found.index)?,
        asqn: i64s(&found.asqn)?,
        checksum: i64s(&found.checksum)?,
        term: u64s(&found.term)?,
        entry_type: PyBytes::new(py, &found.entry_type).unbind(),
        lowest_asqn: u64s(&found.lowest_asqn)?,
        highest_asqn: u64s(&found.highest_asqn)?,
        offset: u64s(&found.offset)?,
        length: u64s(&found.length)?,
        data: PyBytes::new(py, &found.data).unbind(),
        next_offset: found.next_offset,
        next_index: found.next_index,
        ended: found.ended,
        problem: found.problem,
    })
}

/// Numbers as bytes in the machine's order.
fn column<T: Copy>(
    py: Python<'_>,
    numbers: &[T],
    encode: impl Fn(T) -> [u8; 8],
) -> PyResult<Py<PyBytes>> {
    let bytes = PyBytes::new_with(py, numbers.len() * 8, |place| {
        for (target, number) in place.chunks_exact_mut(8).zip(numbers) {
            target.copy_from_slice(&encode(*number));
        }
        Ok(())
    })?;
    Ok(bytes.unbind())
}
