//! Reading recordings offline: from segment files to messages, as Arrow columns or tuples.
//!
//! `recording` says where a position lies, `window` reads bytes from segment files, `walk` goes
//! from frame to frame and puts fragments back together, `columns` lays messages out as Arrow
//! arrays, and `python` is what the interpreter sees. Only `window` knows of files.

mod columns;
mod python;
mod recording;
mod walk;
mod window;

pub use python::register;
