//! Records of a raft journal, one in each payload, as Arrow columns.
//!
//! `record` parses, `python` builds the columns. The layout is that of `codecs/schemas/raft-*.xml`.

mod python;
mod record;

pub use python::register;
