//! Reading recordings offline: from segment files to messages, as Arrow columns or tuples.
//!
//! `recording` maps positions to segment files, `window` reads bytes from them, `walk` iterates
//! over the frames and reassembles fragmented messages, `columns` lays messages out as Arrow
//! arrays, and `batches` cuts them into batches. Only `window` reads files.
//!
//! `statistics` counts on the same walk instead (`histogram`), and continues after gaps (`gap`).

pub mod batches;
pub mod columns;
mod gap;
mod histogram;
pub mod recording;
pub mod statistics;
pub mod walk;
mod window;
