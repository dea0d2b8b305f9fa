//! Raft journals as Zeebe writes them: records scanned without their payloads, segments verified,
//! records of recordings decoded into columns.
//!
//! `record` has the layout of a record and of the raft entry in it; segment descriptors are read
//! by Python (`codecs/raft/descriptor.py`), which also encodes and decodes single records. Files
//! are only read.

pub mod entry;
pub mod record;
pub mod rows;
pub mod scan;
pub mod verify;

/// A place where a journal is not as it must be: offset, index, problem, why.
pub type Finding = (u64, u64, &'static str, String);
