//! `aerotape._native`: everything in aerotape that must not wait for the interpreter.
//!
//! Each folder or file is one concept; `aerotape/_native/` is the interface for Python. Unsafe
//! code is confined to `aeron/` (the C client and driver), to the processor instruction in
//! `checksum.rs`, to the fork handler in `fork.rs` and to the advice for the kernel in
//! `large_pages.rs`; each block states why it is sound.

#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod aeron;
pub mod assembly;
#[allow(unsafe_code)]
pub mod checksum;
mod descriptors;
mod entity;
pub mod errors;
#[allow(unsafe_code)]
mod fork;
pub mod frame;
pub mod geometry;
pub mod idle;
#[allow(unsafe_code)]
mod large_pages;
mod ledger;

pub mod mailbox;
mod no_follow;
mod raft_journal;
mod sbe;
mod scan;
pub mod segment;
#[cfg(test)]
mod test_support;
mod time_points;
pub mod worker;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::fork::watch();
        super::aeron::register(module)?;
        super::checksum::register(module)?;
        super::mailbox::register(module)?;
        module.add_function(wrap_pyfunction!(
            super::descriptors::find_descriptors,
            module
        )?)?;
        super::entity::register(module)?;
        super::ledger::entry::register(module)?;
        module.add_class::<super::ledger::LedgerWriter>()?;
        super::sbe::register(module)?;
        super::scan::register(module)?;
        super::raft_journal::register(module)?;
        super::time_points::register(module)?;
        super::worker::register(module)?;
        super::segment::register(module)?;
        Ok(())
    }
}
