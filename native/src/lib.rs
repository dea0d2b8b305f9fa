//! `aerotape._native`: everything in aerotape that must not wait for the interpreter.
//!
//! Each folder or file is one concept; `aerotape/_native/` is the interface for Python. What needs no
//! Python is in the crate `aerotape-format`. Unsafe code is confined to `aeron/` (the C client and
//! driver) and to the fork handler in `fork.rs`; each block states why it is sound.

#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

#[allow(unsafe_code)]
pub mod aeron;
pub mod assembly;
mod descriptors;
mod entity;
#[allow(unsafe_code)]
mod fork;
mod format;
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

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::fork::watch();
        super::aeron::register(module)?;
        super::mailbox::register(module)?;
        module.add_function(wrap_pyfunction!(
            super::descriptors::find_descriptors,
            module
        )?)?;
        super::entity::register(module)?;
        super::ledger::entry::register(module)?;
        module.add_class::<super::ledger::LedgerWriter>()?;
        super::time_points::register(module)?;
        super::worker::register(module)?;
        super::format::register(module)?;
        Ok(())
    }
}
