//! Frame checksums: what `aeron.archive.record.checksum` puts in place of a frame's sessionId.
//!
//! The sum covers the frame after its header up to the aligned end, so padding bytes count.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    Crc32,
    Crc32c,
}

impl Checksum {
    /// Parse a name as the Python side gives it: "crc-32" or "crc-32c"; `None` for "none".
    pub fn parse(name: &str) -> PyResult<Option<Self>> {
        match name {
            "none" => Ok(None),
            "crc-32" => Ok(Some(Self::Crc32)),
            "crc-32c" => Ok(Some(Self::Crc32c)),
            other => Err(PyValueError::new_err(format!(
                "unknown checksum {other:?}: use \"none\", \"crc-32\" or \"crc-32c\""
            ))),
        }
    }

    #[inline]
    pub fn compute(self, bytes: &[u8]) -> i32 {
        match self {
            Self::Crc32 => crc32fast::hash(bytes) as i32,
            Self::Crc32c => crc32c::crc32c(bytes) as i32,
        }
    }
}

/// Compute the checksum of `data` as a signed 32-bit integer, as it stands in a frame.
#[pyfunction]
fn checksum(name: &str, data: &[u8]) -> PyResult<i32> {
    Ok(Checksum::parse(name)?.map_or(0, |kind| kind.compute(data)))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(checksum, module)?)
}
