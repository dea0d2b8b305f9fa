//! Helpers of the crate's unit tests.

pub mod frames;
pub mod scratch_dir;
