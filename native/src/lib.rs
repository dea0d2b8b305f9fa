//! `aerotape._native`: everything in aerotape that must not wait for the interpreter.
//!
//! Each folder or file is one concept; `aerotape/_native/` is the interface for Python. What needs no
//! Python is in the crate `aerotape-format`. Unsafe code is confined to `aeron/` (the C client and
//! driver), to `arrow_capsules.rs` and to the fork handler in `fork.rs`; each block states why it is sound.

#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

#[allow(unsafe_code)]
pub mod aeron;
#[allow(unsafe_code)]
mod arrow_capsules;
pub mod assembly;
mod bindings;
mod catalog;
mod entity;
#[allow(unsafe_code)]
mod fork;
pub mod idle;
mod ledger;
pub mod mailbox;
#[cfg(test)]
#[path = "../format/src/test_support/mod.rs"]
mod test_support;
mod time_points;
pub mod worker;

use aerotape_format::{checksum, errors, frame, geometry, no_follow, segment};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

#[pymodule]
mod _native {
    use super::{Bound, PyModule, PyModuleMethods, PyResult, PyTuple};

    #[pymodule_export]
    use super::aeron::{
        AeronClient, BulkOffer, Counter, CountersReader, ExclusivePublication, Image, Publication,
        Subscription,
        destination::PendingDestination,
        driver::{MediaDriver, recordings::recordings_in},
        message_reader::MessageReader,
        pending::{
            PendingCounter, PendingExclusivePublication, PendingPublication, PendingSubscription,
        },
    };
    #[pymodule_export]
    use super::bindings::raft_journal::{
        decode_raft_records, raft_record_schema, scan_raft_records, verify_raft_segments,
    };
    #[pymodule_export]
    use super::bindings::segment::{
        check_segments, checksum, list_segments, reference_check, rewrite_checksums, walk_segment,
    };
    #[pymodule_export]
    use super::bindings::{
        sbe::SbeDecoder,
        scan::SegmentScan,
        statistics::{RecordingCounts, RecordingPass},
    };
    #[pymodule_export]
    use super::catalog::{
        descriptors::find_descriptors, entries::sound_entries, regular::irregular_recordings,
    };
    #[pymodule_export]
    use super::entity::{
        fold::{Effect, Fold},
        journals::entity_journals,
        json::{check_json, json_events, json_members},
        lower_case_hash, single_append, string_hash,
    };
    #[pymodule_export]
    use super::ledger::{
        LedgerWriter,
        entry::python::{decode_entry, decode_entry_header, encode_entry},
    };
    #[pymodule_export]
    use super::mailbox::{
        Mailbox,
        event::{
            ClientClosed, ClientError, ControlMessage, ImageAvailable, ImageUnavailable,
            RecordingStopped, RecordingSynced, ReplayDone, ReplayReady, TimeIndexFailed,
            WorkerFailed,
        },
    };
    #[pymodule_export]
    use super::time_points::{decode_time_points, last_times_us, running_extremes};
    #[pymodule_export]
    use super::worker::{ReplayProgress, SessionWorker};
    #[pymodule_export]
    use aerotape_format::raft_journal::{scan::RaftRecords, verify::RaftSegmentCheck};
    #[pymodule_export]
    use aerotape_format::segment::{
        archive_tool_check::ReferenceCheck,
        check::{BadFrame, SegmentCheck},
        rewrite::RewrittenSegment,
        walk::SegmentWalk,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::fork::watch();
        let columns = aerotape_format::scan::columns::COLUMNS.map(|(name, _)| name);
        module.add("SCAN_COLUMNS", PyTuple::new(module.py(), columns)?)
    }
}
