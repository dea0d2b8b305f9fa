//! Records of a segment as columns, without their payloads.

use std::path::PathBuf;

use super::Finding;
use super::entry::{self, Entry};
use super::record::{self, Problem};
use crate::errors::Error;
use crate::segment::open_regular;
use crate::segment::reader::Reader;

/// A run of records; `aerotape/_native/` describes the fields.
#[cfg_attr(
    feature = "python",
    pyo3::pyclass(frozen, get_all, module = "aerotape._native")
)]
#[derive(Default)]
pub struct RaftRecords {
    rows: usize,
    index: Vec<u8>,
    asqn: Vec<u8>,
    checksum: Vec<u8>,
    term: Vec<u8>,
    entry_type: Vec<u8>,
    lowest_asqn: Vec<u8>,
    highest_asqn: Vec<u8>,
    offset: Vec<u8>,
    length: Vec<u8>,
    data: Vec<u8>,
    next_offset: u64,
    next_index: u64,
    ended: bool,
    problem: Option<Finding>,
}

/// A run of records to read.
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct RaftScan {
    pub path: PathBuf,
    /// Offset of the first record, bytes.
    pub offset: u64,
    /// The segment's end, bytes.
    pub limit: u64,
    /// The index that the first record must have.
    pub first_index: u64,
    /// At most so many records are read, and none that begins after so many bytes.
    pub rows: usize,
    pub bytes: usize,
    /// Whether the bytes of the records are returned too.
    pub with_data: bool,
}

pub fn scan(scan: &RaftScan) -> Result<RaftRecords, Error> {
    let RaftScan {
        ref path,
        offset,
        limit,
        first_index,
        rows,
        bytes,
        with_data,
    } = *scan;
    let io = |error| Error::io(path, &error);
    let file = open_regular(path).map_err(io)?;
    let mut reader = Reader::new(&file, limit);
    let mut found = RaftRecords {
        next_offset: offset,
        next_index: first_index,
        ..RaftRecords::default()
    };
    let stop = offset.saturating_add(bytes as u64);
    while found.rows < rows && found.next_offset < stop {
        let offset = found.next_offset;
        let record = match record::read(&mut reader, offset, limit).map_err(io)? {
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
        let length = record.bytes.len() as u64;
        for (column, number) in [
            (&mut found.index, record.index),
            (&mut found.asqn, record.asqn as u64),
            (&mut found.checksum, record.checksum as u64),
            (&mut found.term, entry.term),
            (&mut found.lowest_asqn, entry.lowest_asqn),
            (&mut found.highest_asqn, entry.highest_asqn),
            (&mut found.offset, offset),
            (&mut found.length, length),
        ] {
            column.extend_from_slice(&number.to_ne_bytes());
        }
        found.entry_type.push(entry.kind);
        found.rows += 1;
        if with_data {
            found.data.extend_from_slice(record.bytes);
        }
        found.next_offset = offset + length;
        found.next_index = found.next_index.wrapping_add(1);
    }
    Ok(found)
}
