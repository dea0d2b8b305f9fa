//! SBE payloads to Arrow columns.
//!
//! `plan` is what Python has compiled from a schema. `walk` goes through each payload once and
//! notes where its blocks and variable data lie; it alone decides whether a payload is sound, so
//! whatever reads afterwards stays within the payload. `columns` then builds one column after the
//! other from these places, `values` the leaves of it, and `python` is what the interpreter sees.

mod columns;
mod plan;
mod python;
mod values;
mod walk;

pub use python::register;
