//! SBE payloads to Arrow columns.
//!
//! `plan` is compiled by Python from a schema. `walk` goes through each payload once and records
//! the places of its blocks and variable data; it alone decides whether a payload is sound, so
//! later reads stay within the payload. `columns` builds one column after the other from these
//! places, `values` their leaves, and `decoder` applies a plan to a batch.

mod columns;
pub mod decoded;
pub mod decoder;
pub mod plan;
#[cfg(feature = "python")]
mod python;
mod values;
mod walk;
