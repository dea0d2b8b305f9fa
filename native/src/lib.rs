//! `aerotape._native`: everything in aerotape that must not wait for the interpreter.
//!
//! One folder or file here is one concept; `aerotape/_native.pyi` is the contract that the Python
//! side relies on. Unsafe code is confined to `aeron/` (the C client and driver), to the processor
//! instruction in `checksum.rs`, to the fork handler in `fork.rs` and to the kernel's advice in
//! `large_pages.rs`; each block says why it is sound.

#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod aeron;
pub mod assembly;
#[allow(unsafe_code)]
pub mod checksum;
pub mod errors;
#[allow(unsafe_code)]
mod fork;
pub mod frame;
pub mod idle;
#[allow(unsafe_code)]
mod large_pages;
pub mod lookups;
pub mod mailbox;
mod no_follow;
mod sbe;
mod scan;
pub mod segment;
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
        module.add_class::<super::mailbox::Mailbox>()?;
        super::lookups::register(module)?;
        super::sbe::register(module)?;
        super::scan::register(module)?;
        super::time_points::register(module)?;
        super::worker::register(module)?;
        super::segment::register(module)?;
        Ok(())
    }
}
