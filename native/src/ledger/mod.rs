//! Ledgers: the layout of their entries, and the writer that adds them to a publication.

pub mod entry;
mod writer;

pub use writer::LedgerWriter;
