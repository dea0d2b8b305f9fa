//! The formats that aerotape reads: frames and their checksums, segment files, recordings as Arrow
//! columns, SBE payloads, raft journals.
//!
//! It compiles without Python; the feature `python` adds the conversions of the types that
//! `aerotape-native` passes to and from Python. Unsafe code is confined to the processor
//! instruction in `checksum` and the advice for the kernel in `large_pages`.

#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

#[allow(unsafe_code)]
pub mod checksum;
#[cfg(test)]
mod damaged_input;
pub mod errors;
pub mod frame;
pub mod geometry;
#[allow(unsafe_code)]
mod large_pages;
pub mod no_follow;
pub mod raft_journal;
pub mod sbe;
pub mod scan;
pub mod segment;
#[cfg(test)]
mod test_support;
